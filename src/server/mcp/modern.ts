/** Calls of the protocol 2026-07-28. There are no sessions. A question to a person ends the call, and the client sends the call again with the answer. */
import type { InputRequests, ProtocolError, ServerContext } from '@modelcontextprotocol/server';
import { isJsonObject, type Json, type JsonObject } from '#core';
import type { PauseNotice, Run, RunResult } from '#runtime';
import { cancelUnlessEnded } from '../cancel.ts';
import { statusOf, toldError } from '../problem.ts';
import type { Visit } from '../visit.ts';
import { toolResult } from './answers.ts';
import { answered, asksFor, type Begun, begin, callParams, followed, type Ground, type NotBegun } from './call.ts';
import { askableOf, pausesNamed } from './questions.ts';
import { sdk } from './sdk.ts';
import { digestOf, principalOf } from './seal.ts';

/** A request that one of the package's handlers answers, with its visitor. */
export interface Asking {
  readonly visit: Visit;
  /** The parameters as they were sent. */
  readonly params: JsonObject;
  /** Whether the server itself is closing its connections. */
  readonly isClosing: () => boolean;
}

const CAPABILITIES_META = 'io.modelcontextprotocol/clientCapabilities';

/** The capabilities that a client declares in each request. */
export function capabilitiesIn({ _meta: meta }: JsonObject): JsonObject {
  const given = meta !== undefined && isJsonObject(meta) ? meta[CAPABILITIES_META] : undefined;
  return given !== undefined && isJsonObject(given) ? given : {};
}

/** The state of a call that was answered with questions, as its client sends it back. */
interface CallState {
  readonly run: string;
  readonly tokens: readonly string[];
}

/** What a state is bound to: it opens only for the same call of the same visitor. */
export function boundToCall({ visit, params }: Asking): readonly Json[] {
  const { name = null, arguments: args = {} } = params;
  return [...principalOf(visit), name, digestOf(args)];
}

/** @throws ProtocolError. Errors that are the server's own fault are reported to `onFault`. */
export async function answerToolCall(ground: Ground, asking: Asking, context: ServerContext): Promise<JsonObject> {
  try {
    return await carriedOut(ground, asking, context);
  } catch (error) {
    // The client is gone, so that nobody hears the answer.
    throw protocolError(error, context.mcpReq.signal.aborted ? () => {} : ground.onFault);
  }
}

export function protocolError(error: unknown, onFault: (error: unknown) => void): ProtocolError {
  if (error instanceof sdk().ProtocolError) return error;
  const status = statusOf(error);
  if (status >= 500) onFault(error);
  const { code, message } = toldError(error);
  return new (sdk().ProtocolError)(
    status >= 500 ? sdk().ProtocolErrorCode.InternalError : sdk().ProtocolErrorCode.InvalidParams,
    message,
    {
      code,
    },
  );
}

/** The run of a call: it is begun, or gets the client's answers. */
export async function begunOrAnswered(
  ground: Ground,
  asking: Asking,
  state: CallState | undefined,
  responses: Readonly<Record<string, unknown>>,
): Promise<(Begun & Partial<Awaited<ReturnType<typeof answered>>>) | NotBegun> {
  const { visit, params } = asking;
  if (state === undefined) return begin(ground, visit, callParams(params));
  const { run, record } = await visit.run(state.run, 'answer');
  const said = await answered(run, await pausesNamed(run, state.tokens), responses);
  return { run, from: record.head + 1, isOwn: true, ...said };
}

async function carriedOut(ground: Ground, asking: Asking, context: ServerContext): Promise<JsonObject> {
  const { mcpReq } = context;
  const leave = asking.visit.enterStream();
  try {
    const begun = await begunOrAnswered(ground, asking, mcpReq.requestState<CallState>(), mcpReq.inputResponses ?? {});
    if ('result' in begun) return begun.result;
    const { run, later = [], refused = [] } = begun;
    const heed = begun.isOwn ? cancelling(ground, asking, run, mcpReq.signal) : () => {};
    try {
      const result = await resultAfter(begun, asking, context);
      if (result.status !== 'paused') return await toolResult(run, result, ground);
      const open = result.pauses.filter(({ token }) => !later.includes(token));
      return asked(ground, asking, run, open, refused) ?? (await toolResult(run, result, ground));
    } finally {
      heed();
    }
  } finally {
    leave();
  }
}

/** Tells the client of progress, if it wants to hear of it. */
async function resultAfter({ run, from }: Begun, { params }: Asking, { mcpReq }: ServerContext): Promise<RunResult> {
  const { progressToken } = callParams(params);
  const steps = followed(run, from, mcpReq.signal, ({ progress, message }) =>
    progressToken === undefined ? undefined : { progressToken, progress, message },
  );
  try {
    for (;;) {
      const step = await steps.next();
      if (step.done === true) return step.value.result;
      await mcpReq.notify({ method: 'notifications/progress', params: step.value });
    }
  } finally {
    await steps.return(undefined as never);
  }
}

/** The result that asks the client, or `undefined` where the client cannot be asked. */
function asked(
  { seal, holdsMs }: Ground,
  asking: Asking,
  run: Run,
  pauses: readonly PauseNotice[],
  refused: readonly string[],
): JsonObject | undefined {
  const asks = asksFor(pauses, askableOf(capabilitiesIn(asking.params)));
  if (asks.size === 0) return undefined;
  const state: CallState = { run: run.id, tokens: [...asks.keys()] };
  const requestState = seal.close('state', boundToCall(asking), { ...state }, holdsMs);
  return sdk().inputRequired({
    inputRequests: inputRequests(asks, refused) as unknown as InputRequests,
    requestState,
  }) as unknown as JsonObject;
}

/** @param refused why earlier answers were refused. */
export function inputRequests(asks: ReadonlyMap<string, JsonObject>, refused: readonly string[] = []): JsonObject {
  const requests = [...asks].map(([token, { elicitationId: _, ...params }]) => {
    const message = [...refused, params['message']].join('\n');
    return [token, { method: 'elicitation/create', params: { ...params, message } }];
  });
  return Object.fromEntries(requests);
}

/** Cancels the run when the client closes the stream, which is how this protocol cancels a call. @returns a function that stops watching for it. */
function cancelling({ onClosedCall, onFault }: Ground, asking: Asking, run: Run, signal: AbortSignal): () => void {
  if (onClosedCall === 'leave') return () => {};
  const cancel = async (): Promise<void> => {
    if (asking.isClosing()) return;
    try {
      const found = await asking.visit.run(run.id, 'control');
      await cancelUnlessEnded(found.run, { reason: 'The client has closed its call.' });
    } catch (error) {
      // Whoever may not cancel only leaves.
      if (statusOf(error) >= 500) onFault(error);
    }
  };
  if (signal.aborted) void cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return () => signal.removeEventListener('abort', cancel);
}
