/** Calls of tools: begins the run of a call, and follows it. */
import {
  defined,
  isJsonObject,
  isRecorded,
  type Json,
  type JsonObject,
  newRunId,
  PilotageError,
  type RunEvent,
  withTraceparent,
} from '#core';
import type { PauseNotice, Run, RunResult } from '#runtime';
import type { PartContext } from '../part.ts';
import { RequestRefused } from '../problem.ts';
import type { Visit } from '../visit.ts';
import { errorResult, type ResultWords } from './answers.ts';
import { type Askable, type AskedPause, answerOnce, elicitationOf, saidBy } from './questions.ts';
import { digestOf, principalOf, type Seal } from './seal.ts';
import { argsMisfit, RUN_RESULT, type ServedTool } from './tools.ts';

export interface Ground extends PartContext, ResultWords {
  readonly seal: Seal;
  readonly tools: readonly ServedTool[];
  /** How long the seal of a question is valid, in milliseconds. */
  readonly holdsMs: number;
  readonly onClosedCall: 'cancel' | 'leave';
}

/** The key of a call in its `_meta`: a call that is sent again with the same key finds its run. */
const KEY_META = 'pilotage/idempotencyKey';
const MAX_KEY_CHARS = 256;

/** The checked parameters of a `tools/call`. */
export interface CallParams {
  readonly name: string;
  readonly args: JsonObject;
  readonly key: string | undefined;
  readonly progressToken: string | number | undefined;
  /** The W3C traceparent of what asks. */
  readonly traceparent: string | undefined;
}

/** @throws RequestRefused `request_invalid`. */
export function callParams(params: unknown): CallParams {
  const { name, arguments: args = {}, _meta: meta } = (isJsonObject(params as Json) ? params : {}) as JsonObject;
  if (typeof name !== 'string' || !isJsonObject(args)) {
    throw new RequestRefused('request_invalid', 'A call has the name of a tool, and its arguments are an object.');
  }
  const { [KEY_META]: key, progressToken, traceparent } = meta !== undefined && isJsonObject(meta) ? meta : {};
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > MAX_KEY_CHARS)) {
    throw new RequestRefused('request_invalid', `${KEY_META} is a text of 1 to ${MAX_KEY_CHARS} characters.`);
  }
  const token = typeof progressToken === 'string' || typeof progressToken === 'number' ? progressToken : undefined;
  return {
    name,
    args,
    key,
    progressToken: token,
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
  };
}

export interface Begun {
  readonly run: Run;
  /** False when the call only looks a run up: then closing the call does not cancel the run. */
  readonly isOwn: boolean;
  /** The position behind which the call reads the run. */
  readonly from: number;
}

/** The result of a call that began nothing. */
export interface NotBegun {
  readonly result: JsonObject;
}

function notBegun(why: string): NotBegun {
  return { result: errorResult(why) };
}

/**
 * Begins the run of a call, or finds it again.
 * @param known the place of the call in its session, which also identifies a call that is sent again.
 * @throws RequestRefused, PilotageError.
 */
export async function begin(
  { tools, runtime }: Ground,
  visit: Visit,
  { name, args, key, traceparent }: CallParams,
  known?: { readonly place: string },
): Promise<Begun | NotBegun> {
  if (name === RUN_RESULT) return lookedUp(visit, args);
  const tool = tools.find((each) => each.name === name);
  // What is not listed for the visitor is not there for the visitor.
  if (tool === undefined || !(await visit.may('start', { agent: tool.agent })))
    throw new RequestRefused('request_invalid', `There is no tool ${JSON.stringify(name)}.`);
  const misfit = argsMisfit(tool.inputSchema, args);
  if (misfit !== undefined) return notBegun(`The arguments of ${name} do not fit: ${misfit}`);
  const owner = principalOf(visit);
  const at = key ?? (known && [known.place, name, digestOf(args)]);
  const run = at === undefined ? newRunId() : `mcp_${digestOf([...owner, typeof at === 'string' ? ['key', at] : at])}`;
  const { session = run } = visit.access.identity;
  try {
    const options = {
      agent: tool.agent,
      identity: { ...visit.owner, session, run },
      conversation: false,
      ...(tool.isPlain ? {} : { context: { args } }),
      ...defined({ labels: known && { [PLACE_LABEL]: known.place } }),
    };
    const started = await withTraceparent(traceparent, () => runtime.start(tool.query(args), options));
    return { run: visit.handle(started.id, session), from: 1, isOwn: true };
  } catch (error) {
    // A flow has refused the arguments.
    if (PilotageError.is(error, 'validation_failed')) return notBegun(error.message);
    throw error;
  }
}

/** The label of a run that names its call in a session. */
export const PLACE_LABEL = 'mcp.call';

async function lookedUp(visit: Visit, { runId }: JsonObject): Promise<Begun | NotBegun> {
  if (typeof runId !== 'string') return notBegun(`The arguments of ${RUN_RESULT} do not fit: runId is a text`);
  try {
    const { run, record } = await visit.run(runId);
    return { run, from: record.head + 1, isOwn: false };
  } catch (error) {
    if (PilotageError.is(error, 'run_not_found')) return notBegun(error.message);
    throw error;
  }
}

export interface CallProgress {
  readonly progress: number;
  readonly message: string;
  /** The position from which a client that has heard this reads on. */
  readonly next: number;
}

/** The result of a run that has ended or waits for somebody, and the position from which to read on. */
export interface Stands {
  readonly result: RunResult;
  readonly next: number;
}

/**
 * Follows the run until it has ended or waits for somebody. The numbers of its progress are positions in its journal, so that they only grow, whichever
 * process tells them.
 * @param tell makes what is told of a step of progress; `undefined` tells nothing.
 */
export async function* followed<T>(
  run: Run,
  from: number,
  signal: AbortSignal,
  tell: (progress: CallProgress) => T | undefined,
): AsyncGenerator<T, Stands> {
  let next = from;
  let told = from - 1;
  for await (const event of run.events({ from, signal })) {
    // Positions of a run that continues this one would begin anew, so that they are left out.
    if (event.identity.run !== run.id || !isRecorded(event)) continue;
    next = event.seq + 1;
    const message = wordsOf(event);
    if (message === undefined || event.seq <= told) continue;
    told = event.seq;
    const said = tell({ progress: told, message, next });
    if (said !== undefined) yield said;
  }
  signal.throwIfAborted();
  return { result: await run.result(), next };
}

/** Resolves at the next recorded event of a run that waits, or when the signal is aborted. */
export async function untilMoved(run: Run, next: number, signal: AbortSignal): Promise<void> {
  for await (const event of run.events({ from: next, overPauses: true, signal })) if (isRecorded(event)) return;
}

function wordsOf(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'run.started':
      return 'It begins.';
    case 'planner.decision':
      return `Step ${event.step + 1}: ${event.tool ?? event.decisionKind}`;
    case 'tool.completed':
      return `${event.tool} is done.`;
    case 'tool.failed':
      return `${event.tool} failed.`;
    case 'task.spawned':
      return event.description;
    default:
      return undefined;
  }
}

/** The questions of a paused run that the client can be asked, by their tokens. */
export function asksFor(pauses: readonly PauseNotice[], askable: Askable): ReadonlyMap<string, JsonObject> {
  const asked = pauses.map((pause) => [pause.token, elicitationOf(pause, askable)] as const);
  return new Map(asked.flatMap(([token, params]) => (params === undefined ? [] : [[token, params] as const])));
}

/**
 * Gives a client's answers to the run. @param pauses the questions that were asked.
 * @returns `later`: the tokens of the questions that the person does not want to answer now; `refused`: why answers were refused.
 */
export async function answered(
  run: Run,
  pauses: readonly AskedPause[],
  responses: Readonly<Record<string, unknown>>,
): Promise<{ readonly later: readonly string[]; readonly refused: readonly string[] }> {
  const later: string[] = [];
  const refused: string[] = [];
  for (const pause of pauses) {
    if (!Object.hasOwn(responses, pause.token)) continue;
    try {
      const said = saidBy(responses[pause.token], pause);
      if (said.kind === 'later') later.push(pause.token);
      else await answerOnce(run, pause.token, said);
    } catch (error) {
      if (PilotageError.is(error, 'payload_invalid')) refused.push(error.message);
      else if (isForOthers(error)) later.push(pause.token);
      else throw error;
    }
  }
  return { later, refused };
}

/** Whether somebody else has to answer the question. */
function isForOthers(error: unknown): boolean {
  return PilotageError.is(error, 'approver_refused') || PilotageError.is(error, 'scope_mismatch');
}
