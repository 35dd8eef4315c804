/**
 * Messages of the AI SDK that end with answers to a run of an agent: to its approvals, and results of the client's own tools. The ids of calls name the run;
 * what it has asked, and what became of that, its journal says.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ModelMessage, ToolResultPart } from 'ai';
import { defined, type EventPayloads, type Identity, type Json, PilotageError } from '#core';
import { artifactUrl, clientCallId, TurnChunks } from '#messages';
import type { Run, Runtime } from '#runtime';
import { taken } from './answers.ts';
import type { HeldCalls } from './missed-calls.ts';

/** A run that goes on with the messages. */
export interface Going {
  readonly run: Run;
  /** The questions behind whose answers the caller has heard nothing. */
  readonly tokens: ReadonlySet<string>;
  readonly held: HeldCalls;
  /** The ids of the calls whose results the caller has. */
  readonly results: ReadonlySet<string>;
}

type Output = ToolResultPart['output'];
type Outcome =
  | { readonly value: Json }
  | { readonly error: string }
  | { readonly denied: true; readonly reason?: string };

/** An answer of the messages to one question of the run. */
interface Answer {
  readonly token: string;
  readonly give: (run: Run) => Promise<void>;
  /** What is to be said when the question has got another answer. */
  readonly conflictIn: (told: Told) => string | undefined;
  /** The caller has heard what came of it. */
  readonly isKnown: boolean;
}

/** What a run has asked, and what came of it. */
interface Told {
  /** Whether an approval was given, by its id. */
  readonly approvals: Map<string, boolean | undefined>;
  /** The questions about calls of the client's own tools, by the ids of the calls. */
  readonly clientCalls: Map<string, string>;
  /** The calls that have an outcome. */
  readonly over: Set<string>;
  /** The answers that were taken, by the questions. */
  readonly answered: Map<string, Pick<EventPayloads['pause.resumed'], 'verdict' | 'value'>>;
}

/** The ids of calls that begin with the run that made them, where the model has named the call itself. */
const NAMED_BY_MODEL = /^run_[0-9a-f-]{36}\.(?!\d+\.\d+$)(?=.)/;
const OF_RUN = /^run_[0-9a-f-]{36}(?=\.)/;
/** The verdicts on calls of client tools that come of what a client says. */
const BY_CLIENTS: ReadonlySet<string> = new Set(['answer', 'settle', 'reject']);
const OF_TASK = /^(.+)\.\d+\.\d+$/;

/** The id by which the model knows the call: its server may expect it back. */
export function modelCallId(id: string): string {
  return id.replace(NAMED_BY_MODEL, '');
}

/**
 * Gives the answers at the end of the messages to the run that asks. What was answered before, in the same way, changes nothing.
 * @returns `undefined` when the messages end with no answers.
 * @throws PilotageError `pause_not_found` for an approval that was not asked for, or another answer than the one before; and as `Run.answer`.
 */
export async function giveAtEnd(
  runtime: Runtime,
  owner: Pick<Identity, 'tenant' | 'user'>,
  messages: readonly ModelMessage[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Going | undefined> {
  const last = messages.at(-1);
  if (last?.role !== 'tool') return undefined;
  const { requests, ...has } = heldIn(messages);
  const calls = last.content.map((part) =>
    part.type === 'tool-result' ? part.toolCallId : requests.get(part.approvalId),
  );
  const approvals = last.content.filter((part) => part.type === 'tool-approval-response');
  if (approvals.some(({ approvalId }) => !requests.has(approvalId)))
    throw notFound('The messages have an answer to an approval without its request. Give them back as they came.');
  const run = await runOf(runtime, owner, calls);
  if (run === undefined) {
    if (approvals.length === 0) return undefined;
    throw notFound('No run waits for one of these approvals.');
  }
  let told = await toldOf(run);
  const answers = [
    ...approvals.map((part) => approvalOf(part, !has.held.open.has(requests.get(part.approvalId) ?? ''))),
    ...last.content.flatMap((part) => (part.type === 'tool-result' ? outputOf(part, told) : [])),
  ];
  if (answers.length === 0) return undefined;
  if (answers.some(({ token }) => !told.approvals.has(token) && ![...told.clientCalls.values()].includes(token)))
    throw notFound('No run waits for one of these approvals.');
  const given = answers.filter(({ token }) => !told.answered.has(token) && told.approvals.get(token) === undefined);
  for (const answer of given) if (!(await isInTime(answer, run))) await taken(run, [answer.token], signal);
  if (given.length > 0) told = await toldOf(run);
  const conflict = answers.map(({ conflictIn }) => conflictIn(told)).find((words) => words !== undefined);
  if (conflict !== undefined) throw notFound(conflict);
  const unheard = answers.filter(({ isKnown }) => !isKnown);
  const from = [given, unheard, answers].find(({ length }) => length > 0) ?? [];
  return { run, tokens: new Set(from.map(({ token }) => token)), ...has };
}

function notFound(message: string): PilotageError {
  return new PilotageError('pause_not_found', message);
}

/** What the caller has: the calls with their approvals, and which of them have results. */
function heldIn(messages: readonly ModelMessage[]) {
  const requests = new Map<string, string>();
  const calls = new Set<string>();
  const results = new Set<string>();
  const over = new Set<string>();
  for (const { content } of messages) {
    for (const part of typeof content === 'string' ? [] : content) {
      if (part.type === 'tool-call') calls.add(part.toolCallId);
      else if (part.type === 'tool-approval-request') requests.set(part.approvalId, part.toolCallId);
      else if (part.type === 'tool-result') {
        results.add(part.toolCallId);
        // Clients put this beside a no that nobody has heard yet.
        if (part.output.type !== 'execution-denied') over.add(part.toolCallId);
      }
    }
  }
  const open = new Set([...calls].filter((id) => !over.has(id)));
  return { requests, results, held: { ids: new Set([...calls, ...requests.keys()]), open } };
}

/** The run, of this owner, that has made one of the calls, or from which the task comes that has. */
async function runOf(
  runtime: Runtime,
  { tenant, user }: Pick<Identity, 'tenant' | 'user'>,
  calls: readonly (string | undefined)[],
): Promise<Run | undefined> {
  for (const call of calls) {
    const id = call && (OF_RUN.exec(call)?.[0] ?? OF_TASK.exec(call)?.[1]);
    const record = id ? await recordOf(runtime.run(id)) : undefined;
    const { identity } = record ?? {};
    if (identity?.tenant === tenant && identity.user === user) return runtime.run(record?.root ?? identity.run);
  }
  return undefined;
}

async function recordOf(run: Run): Promise<Awaited<ReturnType<Run['record']>> | undefined> {
  try {
    return await run.record();
  } catch (error) {
    if (PilotageError.is(error, 'run_not_found')) return undefined;
    throw error;
  }
}

async function toldOf(run: Run): Promise<Told> {
  const told: Told = { approvals: new Map(), clientCalls: new Map(), over: new Set(), answered: new Map() };
  const { approvals, clientCalls, over, answered } = told;
  const chunks = new TurnChunks(
    {
      chunk: (chunk) => {
        if (chunk.type === 'tool-approval-request') approvals.set(chunk.approvalId, undefined);
        else if (chunk.type === 'tool-approval-response') approvals.set(chunk.approvalId, chunk.approved);
        else if (chunk.type === 'tool-output-error' || (chunk.type === 'tool-output-available' && !chunk.preliminary))
          over.add(chunk.toolCallId);
      },
    },
    { errorText: ({ message }) => message, fileUrl: artifactUrl },
  );
  for await (const event of run.events({ tasks: true, follow: false })) {
    if (event.type === 'pause.resumed') answered.set(event.token, event);
    if (event.type === 'pause.requested') {
      const call = clientCallId({ ...event, run: event.identity.run });
      if (call !== undefined) clientCalls.set(call, event.token);
    }
    chunks.hear(event);
  }
  return told;
}

function approvalOf(
  { approvalId: token, approved, reason }: { approvalId: string; approved: boolean; reason?: string },
  isKnown: boolean,
): Answer {
  return {
    token,
    isKnown,
    give: (run) => (approved ? run.approve(token, defined({ reason })) : run.reject(token, defined({ reason }))),
    conflictIn: ({ approvals, answered }) => {
      const before = approvals.get(token);
      if (before === undefined || before === approved) return undefined;
      const { verdict } = answered.get(token) ?? {};
      if (verdict === undefined || verdict === 'superseded' || verdict === 'timeout')
        return `The approval ${token} came too late: its call was over.`;
      return `The approval ${token} was answered before, with ${before ? 'yes' : 'no'}.`;
    },
  };
}

/** The answer to a call of one of the client's own tools; none for results that the run has made. */
function outputOf({ toolCallId, output }: ToolResultPart, { clientCalls }: Told): readonly Answer[] {
  const token = clientCalls.get(toolCallId);
  if (token === undefined) return [];
  const outcome = outcomeOf(output);
  return [
    {
      token,
      isKnown: true,
      give: (run) => giveOutcome(run, token, outcome),
      conflictIn: ({ over, answered }) => {
        const before = answered.get(token);
        if (before === undefined ? !over.has(toolCallId) : isSame(before, outcome)) return undefined;
        return before === undefined || !BY_CLIENTS.has(before.verdict)
          ? `The result of the call ${toolCallId} came too late: it was over.`
          : `The call ${toolCallId} was answered before, with another result.`;
      },
    },
  ];
}

function isSame({ verdict, value = null }: Pick<EventPayloads['pause.resumed'], 'verdict' | 'value'>, given: Outcome) {
  if ('denied' in given) return verdict === 'reject';
  if ('error' in given) return verdict === 'settle';
  return verdict === 'answer' && isDeepStrictEqual(value, given.value);
}

function outcomeOf(output: Output): Outcome {
  switch (output.type) {
    case 'error-text':
      return { error: output.value };
    case 'error-json':
      return { error: JSON.stringify(output.value) };
    case 'execution-denied':
      return { denied: true, ...defined({ reason: output.reason }) };
    default:
      return { value: (output.value ?? null) as Json };
  }
}

function giveOutcome(run: Run, token: string, outcome: Outcome): Promise<void> {
  if ('denied' in outcome) return run.reject(token, defined({ reason: outcome.reason }));
  if ('value' in outcome) return run.answer(token, { kind: 'answer', value: outcome.value });
  return run.settle(token, { happened: true, error: { code: 'client_failed', message: outcome.error } });
}

/** @returns false when somebody else was faster, or the run has ended. */
async function isInTime({ give }: Answer, run: Run): Promise<boolean> {
  try {
    await give(run);
    return true;
  } catch (error) {
    if (PilotageError.is(error, 'pause_not_found') || PilotageError.is(error, 'run_ended')) return false;
    throw error;
  }
}
