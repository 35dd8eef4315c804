/**
 * Runs as tasks of the extension `io.modelcontextprotocol/tasks` (2026-07-28). A call returns the id of its run as soon as the run is stored, and the client
 * polls. The package does not know the extension, so that these requests are answered before it sees them.
 */
import { isJsonObject, type Json, type JsonObject, PilotageError } from '#core';
import { hasEnded, type RunRecord } from '#journal';
import type { PauseNotice, Run, RunResult } from '#runtime';
import { cancelledWithin } from '../cancel.ts';
import { openPauses } from '../open-pauses.ts';
import { RequestRefused } from '../problem.ts';
import { withinTime } from '../within-time.ts';
import { toolResult, waitingText } from './answers.ts';
import { answered, asksFor, type Ground } from './call.ts';
import {
  errorMessage,
  HEADER_MISMATCH,
  INVALID_PARAMS,
  jsonResponse,
  MISSING_CAPABILITY,
  type RequestId,
  type RpcMessage,
  resultMessage,
  thrownMessage,
} from './json-rpc.ts';
import { type Asking, begunOrAnswered, boundToCall, capabilitiesIn, inputRequests } from './modern.ts';
import { askableOf, pausesNamed } from './questions.ts';
import { sdk } from './sdk.ts';

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
const PROTOCOL = '2026-07-28';
const POLL_MS = 500;
/** How long a paused or ended run may take to give its result. After that it counts as working: its answer is stored and not yet taken. */
const SETTLES_IN_MS = 1_000;
/** How long `tasks/cancel` waits for the end of the run before it answers. */
const CANCEL_WAIT_MS = 5_000;

type Method = (ground: Ground, asking: Asking) => Promise<JsonObject>;

const METHODS: Readonly<Record<string, Method>> = {
  'tasks/get': async (ground, asking) => {
    const { run, record } = await taskOf(asking);
    return { resultType: 'complete', ...(await taskDetails(ground, asking, run, record)) };
  },
  'tasks/update': async (_, asking) => {
    const { run } = await taskOf(asking, 'answer');
    const responses = asking.params['inputResponses'];
    if (responses === undefined || !isJsonObject(responses))
      throw new RequestRefused('request_invalid', 'inputResponses are answers by the keys of the input requests.');
    // Answers to questions that are not open are ignored.
    const open = openPauses(await run.state()).flatMap(({ token }) => (Object.hasOwn(responses, token) ? [token] : []));
    const { refused } = await answered(run, await pausesNamed(run, open), responses);
    if (refused.length > 0) throw new RequestRefused('request_invalid', refused.join('\n'));
    return { resultType: 'complete' };
  },
  'tasks/cancel': async (_, asking) => {
    const { run } = await taskOf(asking, 'control');
    await cancelledWithin(run, CANCEL_WAIT_MS, asking.visit.signal, { reason: 'The client has cancelled the task.' });
    return { resultType: 'complete' };
  },
  'tools/call': async (ground, asking) => {
    const state = stateOf(ground, asking);
    const begun = await begunOrAnswered(ground, asking, state, responsesIn(asking.params));
    if ('result' in begun) return { resultType: 'complete', ...begun.result };
    const record = await begun.run.record();
    const { createdAt, updatedAt } = record;
    return { resultType: 'task', ...taskOfRun(begun.run.id, createdAt, updatedAt), status: 'working' };
  },
};

/** @returns `undefined` for other or malformed requests, which the package answers. */
export async function taskResponse(
  ground: Ground,
  asking: Asking,
  request: Request,
  { id, method = '' }: RpcMessage,
  body: Json,
): Promise<Response | undefined> {
  const answer = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (answer === undefined || id === undefined || !isModern(request, body)) return undefined;
  const { params } = asking;
  const isTask = method !== 'tools/call';
  const isDeclared = Object.hasOwn(extensionsIn(params), TASKS_EXTENSION);
  const named = isTask ? params['taskId'] : params['name'];
  const header = request.headers.get('mcp-name');
  if (!isTask && (!isDeclared || header !== named)) return undefined;
  if (!isDeclared) return missing(id);
  if (header !== null && header !== named)
    return jsonResponse(errorMessage(id, HEADER_MISMATCH, 'The header Mcp-Name must be the taskId.'), 400);
  return jsonResponse(await answerTo(ground, asking, id, answer));
}

async function answerTo(ground: Ground, asking: Asking, id: RequestId, answer: Method): Promise<JsonObject> {
  try {
    return resultMessage(id, await answer(ground, asking));
  } catch (error) {
    if (PilotageError.is(error, 'run_not_found'))
      return errorMessage(id, INVALID_PARAMS, 'Task not found', { code: error.code });
    return thrownMessage(id, error, ground.onFault);
  }
}

function missing(id: RequestId): Response {
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  return jsonResponse(
    errorMessage(id, MISSING_CAPABILITY, `The client has not declared ${TASKS_EXTENSION}.`, data),
    400,
  );
}

function isModern(request: Request, body: Json): boolean {
  const { headers, method: httpMethod } = request;
  const header = (name: string): string | undefined => headers.get(name) ?? undefined;
  const [version, method, name] = ['mcp-protocol-version', 'mcp-method', 'mcp-name'].map(header);
  const outcome = sdk().classifyInboundRequest({
    httpMethod,
    body,
    ...(version === undefined ? {} : { protocolVersionHeader: version }),
    ...(method === undefined ? {} : { mcpMethodHeader: method }),
    ...(name === undefined ? {} : { mcpNameHeader: name }),
  });
  return outcome.kind === 'modern' && outcome.classification.revision === PROTOCOL && version === PROTOCOL;
}

function extensionsIn(params: JsonObject): JsonObject {
  const { extensions } = capabilitiesIn(params);
  return extensions !== undefined && isJsonObject(extensions) ? extensions : {};
}

function stateOf({ seal }: Ground, asking: Asking): { run: string; tokens: readonly string[] } | undefined {
  const { requestState } = asking.params;
  if (requestState === undefined) return undefined;
  const opened = seal.open('state', boundToCall(asking), requestState);
  if (opened === undefined) throw new RequestRefused('request_invalid', 'Invalid or expired requestState');
  return opened as unknown as { run: string; tokens: readonly string[] };
}

function responsesIn({ inputResponses }: JsonObject): JsonObject {
  return inputResponses !== undefined && isJsonObject(inputResponses) ? inputResponses : {};
}

async function taskOf(
  { visit, params: { taskId } }: Asking,
  action: 'read' | 'answer' | 'control' = 'read',
): Promise<{ readonly run: Run; readonly record: RunRecord }> {
  if (typeof taskId !== 'string') throw new RequestRefused('request_invalid', 'A task is named by its taskId.');
  return visit.run(taskId, action);
}

function taskOfRun(taskId: string, createdAt: number, updatedAt: number): JsonObject {
  const [created, updated] = [createdAt, updatedAt].map((at) => new Date(at).toISOString());
  return { taskId, createdAt: created ?? '', lastUpdatedAt: updated ?? '', ttlMs: null, pollIntervalMs: POLL_MS };
}

/** The result of a run that has ended or is paused, without waiting for others. */
async function settledResult({ visit }: Asking, run: Run, { status }: RunRecord): Promise<RunResult | undefined> {
  if (!hasEnded(status) && status !== 'paused') return undefined;
  return withinTime(SETTLES_IN_MS, visit.signal, (signal) => run.result({ signal }));
}

async function taskDetails(ground: Ground, asking: Asking, run: Run, record: RunRecord): Promise<JsonObject> {
  const task = taskOfRun(run.id, record.createdAt, record.updatedAt);
  const result = await settledResult(asking, run, record);
  if (result?.status === 'finished' && result.reason === 'cancelled') return { ...task, status: 'cancelled' };
  if (result !== undefined && result.status !== 'paused') {
    const told = await toolResult(run, result, ground);
    return { ...task, status: 'completed', result: { resultType: 'complete', ...told } };
  }
  const pauses = result?.pauses ?? (await askedMeanwhile(asking, run));
  if (pauses.length === 0) return { ...task, status: 'working' };
  const asks = asksFor(pauses, askableOf(capabilitiesIn(asking.params)));
  const statusMessage = waitingText(run.id, pauses, ground);
  // A client that cannot be asked is told what the task waits for, and polls until somebody else has answered.
  if (asks.size === 0) return { ...task, status: 'working', statusMessage };
  return { ...task, status: 'input_required', statusMessage, inputRequests: inputRequests(asks) };
}

/** What is asked while other calls of the run are under way: their end may be far away, and decide a race against the question. */
async function askedMeanwhile({ visit }: Asking, run: Run): Promise<readonly PauseNotice[]> {
  const open = openPauses(await run.state());
  const asking = [...new Set(open.map((pause) => pause.run))];
  const rows = await Promise.all(asking.map((each) => visit.runtime.waiting({ run: each, for: 'answer' })));
  const answered = new Set(rows.flat().flatMap((row) => (row.answered === true ? [row.token] : [])));
  return open.filter(({ token }) => !answered.has(token));
}
