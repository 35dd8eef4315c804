/** Tells a client that connects to a thread the history of all its turns, and then what happens in the turn that is under way. */
import type { PartContext } from '../part.ts';
import { type AgUiEvent, isFirstVersion, type RunAgentInput } from './protocol.ts';
import { type Known, Telling } from './telling.ts';
import type { Thread } from './thread.ts';

interface Connecting {
  readonly input: RunAgentInput;
  readonly thread: Thread;
  readonly context: PartContext;
  readonly signal: AbortSignal;
}

/**
 * Tells one AG-UI run for each turn, until a turn waits for an answer or no turn is under way. Only questions that are open now are told as interrupts. A
 * client that has messages already is told only of the last turn, and gets all messages anew with it.
 */
export async function* connected(connecting: Connecting): AsyncGenerator<AgUiEvent, void> {
  const { input, thread, signal } = connecting;
  const isKnown = input.messages.some(({ role }) => role !== 'system' && role !== 'developer');
  const told = new Set<string>();
  let state = input.state;
  for (;;) {
    const all = await thread.beginnings();
    const news = all.filter((run) => !told.has(run));
    const next = isKnown && told.size === 0 ? news.slice(-1) : news;
    for (const run of isKnown ? news.slice(0, -1) : []) told.add(run);
    if (next.length === 0) return;
    for (const run of next) {
      told.add(run);
      const telling = await tellingOf(connecting, run, { state, isKnown });
      yield* telling.events;
      const { mapper } = telling.telling;
      state = mapper.state.snapshot();
      if (signal.aborted || mapper.end?.kind === 'paused') return;
    }
  }
}

async function tellingOf(
  { input, thread, context, signal }: Connecting,
  run: string,
  { state, isKnown }: { readonly state: RunAgentInput['state']; readonly isKnown: boolean },
): Promise<{ readonly telling: Telling; readonly events: AsyncGenerator<AgUiEvent, void> }> {
  const runId = await thread.runIdOf(run);
  const known: Known = isKnown ? await allButLast(thread, run) : new Map();
  const mine = { ...input, runId, ...(state !== undefined && { state }) };
  const { errorText } = context;
  const runOf = (id: string) => thread.runOf(id);
  const telling = new Telling(
    { input: mine, errorText, runOf, before: () => thread.before(run), signal, isAnew: true },
    known,
  );
  return { telling, events: toldAs(telling, mine, thread, run) };
}

async function* toldAs(
  telling: Telling,
  input: RunAgentInput,
  thread: Thread,
  run: string,
): AsyncGenerator<AgUiEvent, void> {
  const { threadId, runId } = input;
  const version = isFirstVersion(input) ? { protocolVersion: '1.0' } : {};
  yield { type: 'RUN_STARTED', threadId, runId, ...version };
  yield* telling.of(thread.runOf(run));
  yield* telling.end();
}

/** The client is taken to know everything but the last entry: with that one it is told all messages anew. */
async function allButLast(thread: Thread, run: string): Promise<Known> {
  const { known } = await thread.read(run);
  return new Map([...known].map(([id, seq]) => [id, seq - 1]));
}
