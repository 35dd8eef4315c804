/**
 * The fold: a run's state is what its entries, applied in order, add up to. The state is plain JSON data, so a snapshot
 * of it is its JSON, and `applyEntry` on a snapshot goes on where the full fold would.
 */
import { ARTIFACT_FETCH } from '../core/builtin-tools.ts';
import type { Compaction } from '../core/compaction.ts';
import type { RunContext } from '../core/context.ts';
import type { Control } from '../core/control.ts';
import { branchesOf, type Decision, type FinishReason, type PauseReason } from '../core/decision.ts';
import type { CallBegan, CallEnded, Compacted, Entry, Moved, Resumed, Started, Turn } from '../core/entry.ts';
import { type ErrorData, PilotageError } from '../core/errors.ts';
import type { Identity } from '../core/identity.ts';
import { deepFreeze, type Json, type JsonObject } from '../core/json.ts';
import type { Limits } from '../core/limits.ts';
import { stepError } from '../core/observation.ts';
import type { SteeringTurn } from '../core/planner.ts';
import type { CallRecord, Step, Usage } from '../core/step.ts';

/** A step whose calls have not all ended. */
export interface OpenStep {
  readonly move: Moved;
  /** One slot a branch; `null` until it has ended. */
  readonly calls: (CallRecord | null)[];
  /** Calls that were begun: after a crash such a call may have happened. */
  readonly began: number[];
  pending: number;
}

export interface OpenPause {
  readonly token: string;
  readonly reason: PauseReason;
  readonly payload?: JsonObject;
  readonly requestedAt: number;
  readonly expiresAt?: number;
  /** The step that asked for it, if a planner did. */
  readonly step?: number;
}

export type Ending =
  | {
      readonly kind: 'finished';
      readonly reason: FinishReason;
      readonly payload?: Json;
      readonly metadata?: JsonObject;
    }
  | { readonly kind: 'failed'; readonly error: ErrorData };

export interface RunTotals {
  steps: number;
  calls: number;
  inputTokens: number;
  outputTokens: number;
  costMicroUsd: number;
}

export interface RunState {
  head: number;
  identity: Identity;
  query: string;
  goal: string;
  history: readonly Turn[];
  context: RunContext;
  /** The run is a turn of its session's conversation. */
  conversation: boolean;
  planner: string;
  limits: Limits;
  scopes: readonly string[];
  startedAt: number;
  updatedAt: number;
  /** Closed steps, each frozen. The array only grows. */
  steps: Step[];
  open: OpenStep | null;
  pauses: OpenPause[];
  steering: SteeringTurn[];
  /** Controls applied since the last move. */
  fresh: readonly Control[];
  cancel: Control | null;
  /** Controls taken from the inbox so far, applied or not. */
  controlsTaken: number;
  /** Moves in a row that did not pass validation. */
  rejections: number;
  totals: RunTotals;
  /** Tools that calls made known, in order of first sight. Replaced when it grows. */
  found: readonly string[];
  compaction: Compaction | null;
  /** The step before which the history was last tried to be shortened. -1: never. */
  compactedAt: number;
  ending: Ending | null;
}

/** The state of a run whose first entry is `started`. @throws PilotageError `journal_corrupt` when it is another. */
export function openState(entry: Entry): RunState {
  if (entry.kind !== 'started' || entry.seq !== 1) {
    throw new PilotageError(
      'journal_corrupt',
      `A run begins with the entry 'started' at seq 1, not '${entry.kind}' at ${entry.seq}.`,
    );
  }
  return {
    head: 1,
    ...fromStarted(entry),
    startedAt: entry.at,
    updatedAt: entry.at,
    steps: [],
    open: null,
    pauses: [],
    steering: [],
    fresh: [],
    cancel: null,
    controlsTaken: 0,
    rejections: 0,
    found: foundAtStart(entry),
    compaction: null,
    compactedAt: -1,
    totals: { steps: 0, calls: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
    ending: null,
  };
}

const NO_CONTEXT: RunContext = Object.freeze({});
const NO_HISTORY: readonly Turn[] = Object.freeze([]);
const NOTHING_FOUND: readonly string[] = Object.freeze([]);

/** What a run was given to read can be read from its first step on. */
function foundAtStart({ context }: Started): readonly string[] {
  return context?.inputs === undefined && context?.artifacts === undefined ? NOTHING_FOUND : [ARTIFACT_FETCH];
}

function fromStarted(
  entry: Started,
): Pick<
  RunState,
  'identity' | 'query' | 'goal' | 'history' | 'context' | 'conversation' | 'planner' | 'limits' | 'scopes'
> {
  const { identity, query, history = NO_HISTORY, context = NO_CONTEXT, conversation = true } = entry;
  const { planner, limits, scopes } = entry;
  return { identity, query, goal: query, history, context, conversation, planner, limits, scopes };
}

/** Folds a whole journal. Entries are frozen on the way: planners and readers share their parts. */
export function foldEntries(entries: readonly Entry[]): RunState {
  const [first, ...rest] = entries;
  if (first === undefined) throw new PilotageError('journal_corrupt', 'The journal of the run is empty.');
  const state = openState(deepFreeze(first));
  for (const entry of rest) applyEntry(state, deepFreeze(entry));
  return state;
}

/**
 * Adds one entry to the state, in place. The entry is frozen, as the driver and the journals make it.
 * @throws PilotageError `journal_corrupt` for an entry that cannot follow: a gap, anything after the ending, a step or a
 * call that is not open.
 */
export function applyEntry(state: RunState, entry: Entry): void {
  if (entry.seq !== state.head + 1) throw corrupt(entry, `it follows seq ${state.head}`);
  if (state.ending !== null) throw corrupt(entry, 'the run had ended');
  state.head = entry.seq;
  state.updatedAt = entry.at;
  switch (entry.kind) {
    case 'moved':
      applyMove(state, entry, entry);
      return;
    case 'call_began':
      applyCallBegan(state, entry, entry);
      return;
    case 'call_ended':
      applyCallEnded(state, entry, entry);
      return;
    case 'paused': {
      const { kind: _, seq: __, at, ...pause } = entry;
      if (pause.step !== undefined) openOf(state, entry, pause.step);
      state.pauses = [...state.pauses, { ...pause, requestedAt: at }];
      return;
    }
    case 'resumed':
      applyResumed(state, entry, entry);
      return;
    case 'control':
      state.controlsTaken += 1;
      if (entry.applied) applyControl(state, entry.control);
      return;
    case 'compacted':
      applyCompacted(state, entry, entry);
      return;
    case 'compaction_failed':
      state.compactedAt = entry.step;
      addUsage(state.totals, entry.usage);
      return;
    case 'finished': {
      const { seq: _, at: __, ...ending } = entry;
      state.ending = ending;
      return;
    }
    case 'failed':
      state.ending = { kind: 'failed', error: entry.error };
      return;
    case 'started':
      throw corrupt(entry, 'a run starts once');
    default:
      entry satisfies never;
  }
}

function applyMove(state: RunState, move: Moved, entry: Entry): void {
  if (state.open !== null) throw corrupt(entry, `step ${state.open.move.step} is still open`);
  if (move.step !== state.steps.length) throw corrupt(entry, `the next step is ${state.steps.length}`);
  addUsage(state.totals, move.usage);
  state.fresh = [];
  const isCarriedOut = move.rejected === undefined && move.fault === undefined;
  state.rejections = move.rejected === undefined ? 0 : state.rejections + 1;
  if (move.decision.kind === 'finish' && isCarriedOut) return;
  state.totals.steps += 1;
  const slots = isCarriedOut ? slotsOf(move.decision) : 0;
  const open = { move, calls: new Array<CallRecord | null>(slots).fill(null), began: [], pending: slots };
  if (slots === 0) closeStep(state, open, entry.at);
  else state.open = open;
}

/** How many outcomes a decision waits for. */
function slotsOf(decision: Decision): number {
  switch (decision.kind) {
    case 'call_tool':
    case 'spawn_task':
    case 'await_task':
    case 'request_pause':
      return 1;
    case 'call_parallel':
      return decision.branches.length;
    case 'finish':
      return 0;
    default:
      return decision satisfies never;
  }
}

function applyCallBegan(state: RunState, began: CallBegan, entry: Entry): void {
  const open = openOf(state, entry, began.step);
  if (open.calls[began.call] !== null || open.began.includes(began.call)) {
    throw corrupt(entry, `call ${began.call} cannot begin here`);
  }
  open.began.push(began.call);
}

function applyCallEnded(state: RunState, ended: CallEnded, entry: Entry): void {
  const open = openOf(state, entry, ended.step);
  if (open.calls[ended.call] !== null) throw corrupt(entry, `call ${ended.call} cannot end here`);
  const { outcome, startedAt, attempts, discovered, artifacts } = ended;
  const record: { -readonly [K in keyof CallRecord]: CallRecord[K] } = {
    outcome,
    endedAt: entry.at,
    attempts,
    seq: entry.seq,
  };
  if (startedAt !== undefined) record.startedAt = startedAt;
  if (artifacts !== undefined) record.artifacts = artifacts;
  if (discovered !== undefined) {
    record.discovered = discovered;
    const fresh = discovered.filter((name) => !state.found.includes(name));
    if (fresh.length > 0) state.found = [...state.found, ...fresh];
  }
  open.calls[ended.call] = Object.freeze(record);
  if (attempts > 0) state.totals.calls += 1;
  state.totals.costMicroUsd += ended.costMicroUsd ?? 0;
  open.pending -= 1;
  if (open.pending === 0) closeStep(state, open, entry.at);
}

function applyCompacted(state: RunState, compacted: Compacted, entry: Entry): void {
  const { step, before, summary, tokenEstimate } = compacted;
  if (before > step || step !== nextStep(state)) throw corrupt(entry, `step ${nextStep(state)} is next`);
  state.compaction = Object.freeze({ summary, before, tokenEstimate });
  state.compactedAt = step;
  addUsage(state.totals, compacted.usage);
}

function applyResumed(state: RunState, resumed: Resumed, entry: Entry): void {
  const pause = state.pauses.find((candidate) => candidate.token === resumed.token);
  if (pause === undefined) throw corrupt(entry, `no pause ${resumed.token} is open`);
  state.pauses = state.pauses.filter((candidate) => candidate !== pause);
  const raise = resumed.payload?.['limits'];
  if (pause.step === undefined) {
    // The answer to a budget's pause: the limits it names replace the old ones.
    if (typeof raise === 'object' && raise !== null) state.limits = { ...state.limits, ...(raise as Limits) };
    return;
  }
  const open = openOf(state, entry, pause.step);
  const { verdict, payload } = resumed;
  const outcome =
    payload === undefined ? { kind: 'verdict' as const, verdict } : { kind: 'verdict' as const, verdict, payload };
  open.calls[0] = deepFreeze({ outcome, endedAt: entry.at, attempts: 0, seq: entry.seq });
  open.pending = 0;
  closeStep(state, open, entry.at);
}

function applyControl(state: RunState, control: Control): void {
  state.fresh = [...state.fresh, control];
  switch (control.type) {
    case 'CANCEL':
      state.cancel = control;
      return;
    case 'REDIRECT':
      state.goal = String(control.payload?.['goal'] ?? state.goal);
      state.steering = [...state.steering, { atStep: nextStep(state), control }];
      return;
    case 'USER_MESSAGE':
    case 'INJECT_CONTEXT':
      state.steering = [...state.steering, { atStep: nextStep(state), control }];
      return;
    default:
      return;
  }
}

/** The index of the step that the planner is asked for next. */
export function nextStep(state: RunState): number {
  return state.steps.length + (state.open === null ? 0 : 1);
}

function closeStep(state: RunState, { move, calls }: OpenStep, endedAt: number): void {
  const { decision, startedAt, rejected, fault } = move;
  const ended = calls as CallRecord[];
  const error = rejected ?? fault ?? stepError(decision, ended);
  const step: { -readonly [K in keyof Step]: Step[K] } = {
    index: move.step,
    decision,
    calls: Object.freeze(ended),
    startedAt,
    endedAt,
  };
  if (move.text !== undefined) step.text = move.text;
  if (move.reasoning !== undefined) step.reasoning = move.reasoning;
  if (move.usage !== undefined) step.usage = move.usage;
  if (move.providerState !== undefined) step.providerState = move.providerState;
  if (move.provenance !== undefined) step.provenance = move.provenance;
  if (move.remarks !== undefined) step.remarks = move.remarks;
  if (error !== undefined) step.error = error;
  state.steps.push(Object.freeze(step));
  state.open = null;
}

function addUsage(totals: RunTotals, usage: Usage | undefined): void {
  if (usage === undefined) return;
  totals.inputTokens += usage.inputTokens ?? 0;
  totals.outputTokens += usage.outputTokens ?? 0;
  totals.costMicroUsd += usage.costMicroUsd ?? 0;
}

function openOf(state: RunState, entry: Entry, step: number): OpenStep {
  if (state.open?.move.step === step) return state.open;
  throw corrupt(entry, `step ${step} is not open`);
}

function corrupt(entry: Entry, why: string): PilotageError {
  return new PilotageError(
    'journal_corrupt',
    `Entry ${entry.seq} (${entry.kind}) cannot stand in the journal: ${why}.`,
    {
      data: { seq: entry.seq, kind: entry.kind },
    },
  );
}

/** True when nothing but an answer to a pause can move the run. */
export function isPaused(state: RunState): boolean {
  if (state.ending !== null || state.pauses.length === 0) return false;
  // A pause of the planner's is itself the open step; an operator's or a budget's comes between steps.
  return state.open === null || state.open.move.decision.kind === 'request_pause';
}

/** Branches of the open step, or none. */
export function openBranches(state: RunState): ReturnType<typeof branchesOf> {
  return state.open === null ? [] : branchesOf(state.open.move.decision);
}
