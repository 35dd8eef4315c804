/** The part of the server that speaks AG-UI: runs of a thread as streams of events, the history of a thread, and a way to stop it. */
import type { Hono } from 'hono';
import { assertOptions, defined, type OptionShape, PilotageError } from '#core';
import { hasEnded } from '#journal';
import { BUSY_MODES, type BusyMode, type SessionOptions } from '#runtime';
import { cancelledWithin } from '../cancel.ts';
import type { StreamPiece } from '../event-stream.ts';
import type { Part, PartContext, ServerEnv } from '../part.ts';
import { toldError } from '../problem.ts';
import { bodyOf } from '../request-body.ts';
import type { Visit } from '../visit.ts';
import { type AcceptedInput, accept, labelOf } from './accept.ts';
import { connected } from './connect.ts';
import { type Encoding, encodingFor } from './encoding.ts';
import { RUN_INPUT, THREAD_INPUT } from './input.ts';
import { type AgUiEvent, isFirstVersion, type RunAgentInput } from './protocol.ts';
import { Telling } from './telling.ts';
import { RUN_LABEL, Thread } from './thread.ts';

export interface AgUiOptions {
  /** The path of its routes. Default `/ag-ui`. */
  readonly path?: string;
  /** The agent with which a thread begins. Default: the first of the runtime's. */
  readonly agent?: string;
  /** What becomes of a message while a turn of the thread is under way. Default `queue`. */
  readonly busy?: BusyMode;
  /** Makes options for the turn of an input, such as the context that the client gives. Default: only the client's tools are passed on. */
  readonly turn?: (input: RunAgentInput) => Omit<SessionOptions, 'identity' | 'agent'>;
}

/** How long `/cancel` waits for the end of the turn before it answers. */
const CANCEL_WAIT_MS = 5_000;

const OPTIONS: OptionShape<AgUiOptions> = { path: 'text?', agent: 'text?', busy: 'text?', turn: 'function?' };

/**
 * AG-UI 1.0, and clients of 0.0.59: `POST /ag-ui` (runs, interrupts, the client's own tools), `POST /ag-ui/connect` (the history of a thread, then what
 * happens), `POST /ag-ui/cancel`. The thread is the session of the visitor.
 * @throws PilotageError `invalid_config`.
 */
export function agUi(options: AgUiOptions = {}): Part {
  assertOptions('agUi', options, OPTIONS);
  const { path = '/ag-ui', busy = 'queue' } = options;
  if (!path.startsWith('/'))
    throw new PilotageError('invalid_config', `The path of agUi begins with a slash; it is ${path}.`);
  if (!BUSY_MODES.includes(busy))
    throw new PilotageError('invalid_config', `busy of agUi is one of ${BUSY_MODES.join(', ')}.`);
  return {
    name: path === '/ag-ui' ? 'ag-ui' : `ag-ui at ${path}`,
    routes: (app, context) => addRoutes(app, context, { ...options, path, busy }),
  };
}

type Given = AgUiOptions & Required<Pick<AgUiOptions, 'path' | 'busy'>>;

function addRoutes(app: Hono<ServerEnv>, context: PartContext, options: Given): void {
  app.post(options.path, async (request) => {
    const visit = request.get('visit');
    const input = await bodyOf<RunAgentInput>(request, RUN_INPUT);
    const thread = await threadOf(visit, context, input, options);
    const encoding = await encodingFor(request, input);
    return visit.entering(async () => {
      // What is accepted is stored before the client hears of it, and also when it has gone.
      const accepted = await accept(thread, input, options.busy, visit.signal).catch((error: unknown) => ({ error }));
      return streamed(visit, context, encoding, (signal) => answered({ input, thread, context, accepted, signal }));
    });
  });
  app.post(`${options.path}/connect`, async (request) => {
    const visit = request.get('visit');
    const given = await bodyOf<Pick<RunAgentInput, 'threadId'> & Partial<RunAgentInput>>(request, THREAD_INPUT);
    const input: RunAgentInput = { ...given, runId: given.runId ?? given.threadId, messages: given.messages ?? [] };
    const thread = new Thread(await visit.session(input.threadId), visit, context);
    return streamed(visit, context, await encodingFor(request, input), (signal) =>
      connected({ input, thread, context, signal }),
    );
  });
  app.post(`${options.path}/cancel`, async (request) => {
    const visit = request.get('visit');
    const { threadId } = await bodyOf<RunAgentInput>(request, THREAD_INPUT);
    const thread = new Thread(await visit.session(threadId, 'control'), visit, context);
    const current = await thread.current();
    const isOver = current === undefined || hasEnded(current.status);
    if (!isOver) await cancelledWithin(thread.runOf(current.turn), CANCEL_WAIT_MS, visit.signal);
    return request.json({ cancelled: !isOver });
  });
}

async function threadOf(visit: Visit, context: PartContext, input: RunAgentInput, options: Given): Promise<Thread> {
  const { threadId, runId, resume = [] } = input;
  const turn = options.turn?.(input) ?? {};
  const session = await visit.session(threadId, resume.length > 0 ? 'answer' : 'start', {
    ...turn,
    ...defined({ agent: options.agent }),
    labels: { ...turn.labels, [RUN_LABEL]: labelOf(runId) },
  });
  return new Thread(session, visit, context);
}

interface Answering {
  readonly input: RunAgentInput;
  readonly thread: Thread;
  readonly context: PartContext;
  readonly accepted: AcceptedInput | { readonly error: unknown };
  readonly signal: AbortSignal;
}

/** One run of AG-UI, from RUN_STARTED to its end. */
async function* answered({ input, thread, context, accepted, signal }: Answering): AsyncGenerator<AgUiEvent, void> {
  const { threadId, runId } = input;
  const version = isFirstVersion(input) ? { protocolVersion: '1.0' } : {};
  yield { type: 'RUN_STARTED', threadId, runId, ...version };
  if ('error' in accepted) return yield runError(accepted.error, context);
  const { run, known, said, taken } = accepted;
  await thread.mustSee(run);
  await taken?.(signal);
  const { errorText } = context;
  const runOf = (id: string) => thread.runOf(id);
  const before = once(() => thread.before(run));
  const telling = new Telling({ input, errorText, runOf, before, signal }, known);
  yield* telling.of(thread.runOf(run));
  const next = said === undefined || signal.aborted ? undefined : await ownTurnOf(thread, said, run);
  if (next !== undefined) {
    telling.mapper.goOn();
    yield* telling.of(thread.runOf(next));
  }
  yield* telling.end();
}

/** The turn that a message has begun which came too late for the turn that it was sent to. */
async function ownTurnOf(thread: Thread, message: string, run: string): Promise<string | undefined> {
  const turns = await thread.session.turns({ limit: 10 });
  const found = turns.find(({ messages }) => messages.some(({ id }) => id === message));
  const first = found && (await thread.firstOf(found.turn));
  return first === run ? undefined : first;
}

function runError(error: unknown, { onFault }: PartContext): AgUiEvent<'RUN_ERROR'> {
  const { code, message } = toldError(error);
  if (code === 'server_failed') onFault(error);
  return { type: 'RUN_ERROR', message, code };
}

function streamed(
  visit: Visit,
  context: PartContext,
  { encode, ...options }: Encoding,
  events: (signal: AbortSignal) => AsyncIterable<AgUiEvent>,
): Response {
  const told = async function* (signal: AbortSignal): AsyncGenerator<StreamPiece, void> {
    for await (const event of events(signal)) yield encode(event);
  };
  return visit.stream(told, { ...options, onError: (error) => encode(runError(error, context)) });
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
