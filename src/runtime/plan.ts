/** Asks the planner for its move and turns the answer, good or bad, into entries. */
import type { Clock } from '../core/clock.ts';
import type { Decision } from '../core/decision.ts';
import type { EntryBody, Finished, Moved, Paused } from '../core/entry.ts';
import { describeThrown, type ErrorData, PilotageError } from '../core/errors.ts';
import { captureJson } from '../core/json.ts';
import { type Delta, isMove, type Move, type MoveSource, type Planner } from '../core/planner.ts';
import type { MoveNotes } from '../core/step.ts';
import { validateDecision } from '../core/validate-decision.ts';
import type { ArtifactStore } from '../journal/port.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import { nextStep, type RunState } from '../view/run-state.ts';
import { viewOf } from '../view/run-view.ts';
import type { Flight, LazySignal } from './flight.ts';
import { HEAVY_BYTES } from './heavy.ts';

export interface Ask {
  readonly planner: Planner;
  readonly state: RunState;
  readonly tools: AuthorisedTools;
  readonly flight: Flight;
  /** The run's own signal, the same for each of its moves. */
  readonly signal: LazySignal;
  readonly clock: Clock;
  readonly artifacts: ArtifactStore;
  readonly streaming: boolean;
  readonly tell: (delta: Delta) => void;
  readonly newToken: () => string;
}

/** The entries of the planner's move. `undefined`: it was aborted, and whatever it said is dropped. */
export async function askPlanner(ask: Ask): Promise<readonly EntryBody[] | undefined> {
  const { planner, state, flight } = ask;
  const step = nextStep(state);
  const startedAt = ask.clock.now();
  const view = viewOf(state, ask.tools, ask.streaming);
  const settled = await flight.attempt(
    () => moveOf(planner.next(view, ask.signal.signal), ask.signal.signal, ask.tell),
    undefined,
    ask.signal,
  );
  if (flight.aborted || settled.kind === 'abandoned' || settled.kind === 'timeout') return undefined;
  if (settled.kind === 'thrown') return [plannerFailed(settled.error, step)];
  const move = settled.value;
  if (typeof move !== 'object' || move === null) {
    return [plannerFailed(new Error(`it returned ${String(move)} in place of a decision`), step)];
  }
  return entriesOf(isMove(move) ? move : { decision: move }, step, startedAt, ask);
}

/** Whatever form a planner answers in, to one move. */
function moveOf(
  source: MoveSource,
  signal: AbortSignal,
  tell: (delta: Delta) => void,
): Exclude<MoveSource, AsyncGenerator<Delta>> {
  return isGenerator(source) ? drain(source, signal, tell) : source;
}

function isGenerator(source: MoveSource): source is AsyncGenerator<Delta, Decision | Move> {
  return typeof source === 'object' && source !== null && Symbol.asyncIterator in source;
}

async function drain(
  source: AsyncGenerator<Delta, Decision | Move>,
  signal: AbortSignal,
  tell: (delta: Delta) => void,
): Promise<Decision | Move> {
  for (;;) {
    const { value, done } = await source.next();
    if (done === true) return value;
    if (!signal.aborted) tell(value);
  }
}

async function entriesOf(move: Move, step: number, startedAt: number, ask: Ask): Promise<readonly EntryBody[]> {
  let decision: Decision;
  let notes: MoveNotes;
  try {
    notes = captureNotes(move);
    decision = validateDecision(move.decision);
  } catch (thrown) {
    if (!PilotageError.is(thrown)) throw thrown;
    return [rejected(move, thrown, step, startedAt, ask.planner)];
  }
  const moved: Moved = { kind: 'moved', step, decision, startedAt, ...notes };
  if (decision.kind === 'finish') return [moved, await finished(decision, ask)];
  if (decision.kind === 'request_pause') return [moved, paused(decision, step, ask)];
  return [moved];
}

/** The notes that the move has, as frozen JSON, without empty ones. */
function captureNotes(move: Move): MoveNotes {
  const { text, reasoning, usage, providerState, provenance } = move;
  const notes: Record<string, unknown> = {};
  if (text !== undefined && text !== '') notes['text'] = text;
  if (reasoning !== undefined && reasoning !== '') notes['reasoning'] = reasoning;
  if (usage !== undefined) notes['usage'] = captureJson(usage, 'move.usage').json;
  if (providerState !== undefined) notes['providerState'] = captureJson(providerState, 'move.providerState').json;
  if (provenance !== undefined) notes['provenance'] = captureJson(provenance, 'move.provenance').json;
  return notes;
}

/** A program's invalid decision is a fault of the program; a model is told what was wrong and asked again. */
function rejected(move: Move, error: PilotageError, step: number, startedAt: number, planner: Planner): EntryBody {
  const decision = recordable(move.decision);
  if (planner.modelDriven !== true || decision === undefined) {
    const message = `Step ${step}: ${error.message}`;
    return { kind: 'failed', error: { code: error.code, message, data: { ...error.data, step } } };
  }
  return { kind: 'moved', step, decision, startedAt, rejected: error.toJSON() };
}

/** An invalid decision can be recorded only when it is JSON and of a known kind. */
function recordable(decision: Decision): Decision | undefined {
  try {
    const json = captureJson(decision, 'decision').json;
    return json as unknown as Decision;
  } catch {
    return undefined;
  }
}

function plannerFailed(thrown: unknown, step: number): EntryBody {
  const cause: ErrorData = PilotageError.is(thrown) ? thrown.toJSON() : causeOf(thrown);
  return {
    kind: 'failed',
    error: {
      code: 'planner_failed',
      message: `The planner failed at step ${step}: ${cause.message}`,
      data: { step, cause: { ...cause } },
    },
  };
}

function causeOf(thrown: unknown): ErrorData {
  const code = thrown instanceof Error ? thrown.name : typeof thrown;
  return { code, message: describeThrown(thrown) };
}

async function finished(decision: Extract<Decision, { kind: 'finish' }>, ask: Ask): Promise<Finished> {
  const { reason, payload, metadata } = decision;
  const ending = { kind: 'finished' as const, reason, ...(metadata === undefined ? {} : { metadata }) };
  if (payload === undefined) return ending;
  const bytes = Buffer.from(JSON.stringify(payload));
  if (bytes.length < HEAVY_BYTES) return { ...ending, payload: payload as NonNullable<Finished['payload']> };
  const artifact = await ask.artifacts.put(ask.state.identity, bytes, 'application/json');
  return { ...ending, payload: { ...artifact } };
}

function paused(decision: Extract<Decision, { kind: 'request_pause' }>, step: number, ask: Ask): Paused {
  const { reason, payload, expiresInMs } = decision;
  return {
    kind: 'paused',
    token: ask.newToken(),
    reason,
    step,
    ...(payload === undefined ? {} : { payload }),
    ...(expiresInMs === undefined ? {} : { expiresAt: ask.clock.now() + expiresInMs }),
  };
}
