/** Runs that begin where another one ends, in the commit of its ending: the next turns of its session, and the run that goes on with what it did. */
import {
  type AcceptedMessage,
  type Control,
  defined,
  type Entry,
  type EntryBody,
  type ErrorCode,
  type Finished,
  type InputArtifact,
  isControl,
  isJsonObject,
  type Message,
  messageParts,
  PilotageError,
  queryWords,
  type RunContext,
  type RunLimits,
  SESSION_MESSAGE,
  type Started,
  TURN_RUN,
  withoutFireMeta,
  wordsIn,
} from '#core';
import type { NewRun } from '#journal';
import { type RunState, wholeTimeMs } from '#state';
import { limitsWithin } from '../tasks/budget-share.ts';
import { pinOf } from '../tasks/spawn.ts';
import type { DriverDeps } from './driver-deps.ts';

const NONE: readonly NewRun[] = [];
/** How many turns a run is told of that goes on from one which was told of none. */
const TURNS = 40;

/**
 * @param messages what was said to the run too late, while it was ending or unwound. They come before the turns that wait, behind the run that goes on.
 * @param trace the traceparent of whatever began the run, or of the run: the one that goes on belongs to it, and the turns to whoever sent their messages.
 */
export function runsAfter(
  state: RunState,
  bodies: readonly EntryBody[],
  messages: readonly Message[],
  trace: string | undefined,
  deps: Pick<DriverDeps, 'agentNamed' | 'clock'>,
): readonly NewRun[] {
  const last = bodies.at(-1);
  const hasSuccessor = last?.kind === 'finished' && last.successor !== undefined;
  if (messages.length === 0 && !hasSuccessor) return NONE;
  const at = deps.clock.now();
  const head = state.head + bodies.length;
  const successor = hasSuccessor ? successorOf(state, last, head, trace, deps) : undefined;
  const [first] = successor?.entries ?? [];
  const { agent, pin } = first?.kind === 'started' ? first : state;
  const turns = messages.flatMap((message): NewRun[] => {
    if (!isControl(message) || message.turnMessage === undefined) return [];
    const run = `${TURN_RUN}${message.id.slice(SESSION_MESSAGE.length)}`;
    const { inputs, author } = messageParts(message.payload ?? {});
    const query = wordsIn(message.payload ?? {});
    const own = { agent, query, inputs, ...defined({ pin: pin ?? undefined, author }) };
    return [turnOf(state, run, message.turnMessage, own, at)];
  });
  return [...(successor === undefined ? [] : [successor]), ...turns];
}

/** With these an entry cannot be read, here or at all, however often it is tried. */
const UNREADABLE: ReadonlySet<ErrorCode> = new Set(['journal_entry_unknown', 'journal_newer', 'journal_corrupt']);

/**
 * Words that came behind the cancel of a run before it was known what it has to undo: its state does not have them. Who knows the state
 * may not be able to read all entries, as an older process: it ends the run all the same, and tells of it, as such words are answered by nobody then.
 */
export async function wordsBehindCancel(
  { identity, undo, cancel }: RunState,
  { journal, onFault }: Pick<DriverDeps, 'journal' | 'onFault'>,
): Promise<readonly Control[]> {
  if (undo === null || cancel === null) return [];
  const words: Control[] = [];
  let isOver = false;
  let entries: readonly Entry[];
  try {
    entries = await journal.read(identity.run);
  } catch (error) {
    if (!PilotageError.is(error) || !UNREADABLE.has(error.code)) throw error;
    onFault(error);
    return [];
  }
  for (const entry of entries) {
    if (entry.kind === 'unwinding') isOver = true;
    else if (entry.kind === 'control' && entry.undelivered === true && !isOver) words.push(entry.control);
  }
  return words;
}

/** A message of a session that came too late begins a turn with the agent, the limits and the rights of the run that ends, and as much time, from when its turn has come. */
function turnOf(
  state: RunState,
  run: string,
  message: AcceptedMessage,
  own: Pick<Beginning, 'agent' | 'pin' | 'query' | 'author' | 'inputs'>,
  at: number,
): NewRun {
  const limits = state.unwinding?.limits ?? state.limits;
  const deadlineMs = wholeTimeMs({ ...state, limits });
  const { deadlineAt: _, ...others } = limits;
  return began(state, run, at, { ...own, limits: others, turn: { messages: [message], ...defined({ deadlineMs }) } });
}

/** The run that goes on with the conversation, or with the work. It has what is left of the money, the tokens and the time. */
function successorOf(
  state: RunState,
  { successor, reason, carry }: Finished,
  head: number,
  trace: string | undefined,
  { agentNamed, clock }: Pick<DriverDeps, 'agentNamed' | 'clock'>,
): NewRun | undefined {
  const next = successor && agentNamed(successor.agent);
  if (next === undefined || successor === undefined) return undefined;
  const at = clock.now();
  const { scopes, turn, identity } = state;
  const limits = limitsWithin(leftOf(state), next.limits, at);
  const pin = pinOf(next.planner, next.toolsOf(scopes, []));
  const about = { agent: successor.agent, limits, pin, ...defined({ trace }) };
  const origin = turn === null ? {} : { turn: { messages: [], succeeds: identity.run } };
  const author = state.author === null ? {} : { author: state.author };
  if (reason === 'continued') {
    const continues = state.continues === null ? {} : { continues: state.continues };
    const history = state.history.length === 0 ? {} : { history: state.history };
    const query = goalWords(state);
    return began(state, successor.run, at, { ...about, query, ...author, ...origin, ...continues, ...history, carry });
  }
  const asked = askedWith(state);
  const own = asked === undefined ? { query: goalWords(state), ...author } : { query: asked };
  return began(state, successor.run, at, { ...about, ...own, ...origin, ...toldTo(state, head) });
}

/** A notice goes on as one: the run that goes on has no message that says so. */
function goalWords({ query, notice, goal }: RunState): string {
  return goal === query ? queryWords({ query, notice }) : goal;
}

/** What the agent that takes over is told of the conversation, where the session does not say it when its turn has come. */
function toldTo(state: RunState, head: number): Pick<Started, 'continues' | 'history' | 'turn'> {
  const { identity, continues, history, turn } = state;
  if (state.handsOver?.history === 'none') return { continues: { runs: [], turns: 0 } };
  if (turn !== null) return {};
  const runs = [...(continues?.runs ?? []), { run: identity.run, head }];
  const given = history.length === 0 ? {} : { history };
  return { continues: { runs, turns: continues?.turns ?? TURNS }, ...given };
}

/** What the model has said that the other agent is to do. */
function askedWith({ handsOver, steps }: RunState): string | undefined {
  const outcome = handsOver === null ? undefined : steps[handsOver.step]?.calls[handsOver.call]?.outcome;
  const value = outcome?.kind === 'value' ? outcome.value : null;
  const input = isJsonObject(value) ? value['input'] : undefined;
  return typeof input === 'string' && input !== '' ? input : undefined;
}

function leftOf({ limits, totals }: RunState): RunLimits {
  const { costMicroUsd, tokens, ...others } = limits;
  return {
    ...others,
    ...(costMicroUsd === undefined ? {} : { costMicroUsd: Math.max(0, costMicroUsd - totals.costMicroUsd) }),
    ...(tokens === undefined ? {} : { tokens: Math.max(0, tokens - totals.inputTokens - totals.outputTokens) }),
  };
}

type Beginning = Pick<
  Started,
  'query' | 'author' | 'agent' | 'limits' | 'pin' | 'turn' | 'continues' | 'history' | 'trace'
> & {
  readonly carry?: Finished['carry'];
  readonly inputs?: readonly InputArtifact[];
};

function began(state: RunState, run: string, at: number, { carry, inputs = [], ...own }: Beginning): NewRun {
  const { scopes, whileAsked, conversation, undo, labels, clientTools } = state;
  const identity = { ...state.identity, run };
  const { inputs: _, meta: told, ...before } = state.context;
  // Words that came too late for the turn of a schedule are no fire of it.
  const isFurther = own.turn !== undefined && own.turn.succeeds === undefined;
  const meta = told !== undefined && isFurther ? withoutFireMeta(told) : told;
  const context: RunContext = {
    ...before,
    ...defined({ meta }),
    ...(carry === undefined ? {} : { carried: carry }),
    ...(inputs.length === 0 ? {} : { inputs }),
  };
  const started: Started = {
    kind: 'started',
    identity,
    ...own,
    scopes,
    ...(Object.keys(context).length === 0 ? {} : { context }),
    ...(conversation ? {} : { conversation }),
    ...(whileAsked === 'keep' ? { whileAsked } : {}),
    ...(undo === null ? {} : { undo }),
    ...(labels === null ? {} : { labels }),
    ...(clientTools === null ? {} : { clientTools }),
  };
  const entry = { ...started, seq: 1, at };
  const waits = own.turn?.succeeds === undefined ? 'next' : 'first';
  return { identity, priority: 0, entries: [entry], ...(own.turn === undefined ? {} : { waits }) };
}
