/**
 * The fold: a run's state is computed by applying its entries in order. The state is plain JSON data, so a snapshot
 * of it is its JSON, and `applyEntry` on a snapshot goes on where the full fold would.
 */
import {
  ARTIFACT_FETCH,
  type CallRecord,
  type Compacted,
  type Control,
  type ControlTaken,
  countUsage,
  deepFreeze,
  defined,
  distinctSources,
  type Entry,
  isDismissal,
  type ModelAway,
  type Moved,
  messageOf,
  PilotageError,
  type PlanGrown,
  type Remark,
  type RunContext,
  SHOWN_SKILLS,
  type Shortened,
  SKILL_GET,
  SKILL_SEARCH,
  type Started,
  type SteeringTurn,
  type Step,
  type Turn,
  timeAfter,
  type Usage,
} from '#core';
import { applyApproved, applyEscalated, applyReminded, applyRuled, revokeRule } from './approvals.ts';
import { applyBreakpoint } from './breakpoints.ts';
import { applyCallCancel } from './call-cancels.ts';
import { applyCallKept, applyCallWaits } from './call-waits.ts';
import { closedWith } from './closed-with.ts';
import { withLimit } from './context-limits.ts';
import { misfit, slotsOf } from './follows.ts';
import {
  applyCallAway,
  applyCallBegan,
  applyCallEnded,
  applyCallSpent,
  applyPaused,
  applyResumed,
  beginTurn,
  closeStep,
  corrupt,
  grownMove,
  isMoveCarriedOut,
  openOf,
} from './open-step.ts';
import { reopenStep } from './retry.ts';
import { type ModelAwayState, nextStep, type RunState, type RunTotals } from './state.ts';
import { withLastStep } from './steps.ts';
import {
  applyAwaiting,
  applyGroupEnded,
  applySpawned,
  applyTaskEnded,
  applyTaskPaused,
  applyWithdrawn,
} from './task-state.ts';
import { applyUnwinding, applyUnwound, beginUndoOfTask, giveTimeBack, noteControl, noteSecondCancel } from './undo.ts';
import { endWait } from './waiting-calls.ts';

/** The state of a run whose first entry is `started`. @throws PilotageError `journal_corrupt` when it is another entry. */
export function openState(entry: Entry): RunState {
  if (entry.kind !== 'started' || entry.seq !== 1) {
    throw new PilotageError(
      'journal_corrupt',
      `A run begins with the entry 'started' at seq 1, not '${entry.kind}' at ${entry.seq}.`,
    );
  }
  const { at, identity, query, history = NO_HISTORY, continues = null, context = NO_CONTEXT } = entry;
  const { conversation = true, agent, limits, scopes, pin = null, task = null, fork = null } = entry;
  // In one piece, with nothing spread into it: every step reads most of it.
  return {
    head: 1,
    identity,
    query,
    goal: query,
    history,
    continues,
    turn: entry.turn ?? null,
    heard: NONE,
    trace: entry.trace ?? null,
    erased: entry.erased ?? null,
    recalled: null,
    context,
    conversation,
    agent,
    author: entry.author ?? null,
    notice: entry.turn?.messages.length === 1 && entry.turn.messages[0]?.notice === true,
    limits,
    scopes,
    clientTools: entry.clientTools ?? null,
    pin,
    task,
    fork,
    whileAsked: entry.whileAsked ?? 'withdraw',
    labels: entry.labels ?? null,
    undo: entry.undo ?? null,
    unwinding: null,
    undoStopped: false,
    answering: null,
    renamedTools: {},
    startedAt: at,
    updatedAt: at,
    steps: [],
    filesFrom: null,
    open: null,
    pauses: [],
    breakpoints: NONE,
    steering: [],
    fresh: NONE,
    cancel: null,
    reopenings: 0,
    messagesTaken: 0,
    tasks: NONE,
    groups: NONE,
    background: NONE,
    otherEnds: NONE,
    otherPauses: NONE,
    withdrawn: NONE,
    watchers: NONE,
    rejectedCall: null,
    handsOver: null,
    rules: NONE,
    noProgress: null,
    modelAway: null,
    beforeTurn: AT_START,
    watchedFrom: 0,
    rejections: 0,
    handles: NONE,
    found: foundAtStart(entry),
    compaction: null,
    compactedAt: -1,
    compactionFailures: null,
    contextLimits: NONE,
    overflows: null,
    sources: NONE,
    totals: { steps: 0, taskSteps: 0, calls: 0, taskCalls: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
    reply: null,
    ending: null,
  };
}

const AT_START = Object.freeze({ steps: 0, taskSteps: 0 });
const NONE: readonly never[] = Object.freeze([]);
const NO_CONTEXT: RunContext = Object.freeze({});
const NO_HISTORY: readonly Turn[] = Object.freeze([]);
const NOTHING_FOUND: readonly string[] = Object.freeze([]);

/** What a run was given to read can be read from its first step on, and skills that it is not shown can be found. */
function foundAtStart({ context, history = NO_HISTORY }: Started): readonly string[] {
  const { inputs, artifacts, skills = [] } = context ?? NO_CONTEXT;
  const hasFiles = history.some(({ parts }) => parts?.some(({ type }) => type === 'file'));
  const reads = inputs === undefined && artifacts === undefined && !hasFiles ? NOTHING_FOUND : [ARTIFACT_FETCH];
  return skills.length <= SHOWN_SKILLS ? reads : [...reads, SKILL_SEARCH, SKILL_GET];
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
 * @throws PilotageError `journal_corrupt` for an entry that cannot follow: a gap, or what the rules in `follows.ts` refuse. The
 * state is then as it was.
 */
export function applyEntry(state: RunState, entry: Entry): void {
  applyFitting(state, entry, misfit);
}

/**
 * `applyEntry` for an entry of which it was found, for this very state, that it can follow (`misfitAmong`).
 * @param why finds out once more whether it can. By default it is believed.
 */
export function applyFitting(
  state: RunState,
  entry: Entry,
  why?: (state: RunState, entry: Entry) => string | undefined,
): void {
  if (entry.seq !== state.head + 1) throw corrupt(entry, `it follows seq ${state.head}`);
  try {
    const misfits = why?.(state, entry);
    if (misfits !== undefined) throw corrupt(entry, misfits);
    const closed = closedWith(state, entry);
    apply(state, entry);
    if (closed.length > 0) state.pauses = state.pauses.filter((pause) => !closed.includes(pause));
  } catch (error) {
    if (PilotageError.is(error)) throw error;
    // No version writes such an entry, and the state may be half changed.
    throw new PilotageError(
      'journal_corrupt',
      `Entry ${entry.seq} (${entry.kind}) has a shape that cannot be folded.`,
      {
        data: { seq: entry.seq, kind: entry.kind, half: true },
        cause: error,
      },
    );
  }
}

function apply(state: RunState, entry: Entry): void {
  state.head = entry.seq;
  state.updatedAt = entry.at;
  switch (entry.kind) {
    case 'moved':
      applyMove(state, entry, entry);
      return;
    case 'plan_grown':
      applyPlanGrown(state, entry, entry);
      return;
    case 'call_began':
      applyCallBegan(state, entry, entry);
      return;
    case 'call_spent':
      addUsage(state.totals, entry.usage);
      applyCallSpent(state, entry);
      return;
    case 'call_ended':
      applyCallEnded(state, entry, entry);
      return;
    case 'call_away':
      applyCallAway(state, entry, entry);
      return;
    case 'call_waits':
      applyCallWaits(state, entry, entry);
      return;
    case 'wait_ended': {
      const { kind: _, seq: __, at: ___, step, call, wait, ...end } = entry;
      if (end.ended === 'event') countMessage(state, entry);
      endWait(openOf(state, entry, step), { call, wait }, { end });
      return;
    }
    case 'event_passed':
      countMessage(state, entry);
      return;
    case 'call_kept':
      applyCallKept(state, entry, entry);
      return;
    case 'paused':
      applyPaused(state, entry, entry);
      return;
    case 'resumed':
      if (state.unwinding !== null) giveTimeBack(state, entry);
      applyResumed(state, entry, entry);
      return;
    case 'approved':
      applyApproved(state, entry, entry);
      return;
    case 'reminded':
      applyReminded(state, entry, entry.at);
      return;
    case 'escalated':
      applyEscalated(state, entry, entry.at);
      return;
    case 'ruled':
      applyRuled(state, openOf(state, entry, entry.step), entry);
      return;
    case 'control':
      countMessage(state, entry);
      if (entry.applied) applyControl(state, entry);
      if (entry.applied && entry.control.turnMessage !== undefined) {
        state.heard = [...state.heard, entry.control.turnMessage];
      }
      if (entry.withdrew !== undefined) applyWithdrawn(state, entry.withdrew);
      if (state.undo !== null) noteControl(state, entry);
      return;
    case 'spawned':
      applySpawned(state, entry, openOf(state, entry, entry.step));
      return;
    case 'awaiting':
      applyAwaiting(state, entry, openOf(state, entry, entry.step));
      return;
    case 'task_ended':
      countMessage(state, entry);
      applyTaskEnded(state, entry);
      return;
    case 'task_paused':
      countMessage(state, entry);
      applyTaskPaused(state, entry);
      return;
    case 'watched':
      countMessage(state, entry);
      if (!state.watchers.includes(entry.by)) state.watchers = [...state.watchers, entry.by];
      return;
    case 'group_ended':
      applyGroupEnded(state, entry, entry.at);
      return;
    case 'no_progress':
      state.noProgress = Object.freeze({ step: entry.step, period: entry.period, times: entry.times });
      return;
    case 'recalled': {
      const { profile, items } = entry;
      state.recalled = profile === undefined ? { items } : { profile, items };
      return;
    }
    case 'turn_started': {
      const { continues, query, inputs, history, author = null } = entry;
      state.continues = continues;
      const { deadlineMs } = state.turn ?? {};
      if (deadlineMs !== undefined) {
        const { deadlineAt = Number.POSITIVE_INFINITY } = state.limits;
        state.limits = deepFreeze({
          ...state.limits,
          deadlineAt: Math.min(deadlineAt, timeAfter(entry.at, deadlineMs)),
        });
      }
      if (history !== undefined) state.history = history;
      if (inputs !== undefined) state.context = Object.freeze({ ...state.context, inputs });
      if (query === undefined) return;
      state.query = query;
      state.author = author;
      state.notice = false;
      if (state.steering.length === 0) state.goal = query;
      return;
    }
    case 'repinned':
      state.agent = entry.agent;
      state.pin = entry.pin;
      state.renamedTools = { ...state.renamedTools, ...entry.renamedTools };
      return;
    case 'compacted':
      applyCompacted(state, entry);
      return;
    case 'compaction_failed':
      state.compactedAt = entry.step;
      state.compactionFailures = Object.freeze({
        times: (state.compactionFailures?.times ?? 0) + 1,
        step: entry.step,
      });
      addUsage(state.totals, entry.usage);
      return;
    case 'overflowed': {
      const { step } = entry;
      state.contextLimits = withLimit(state.contextLimits, entry);
      state.overflows = Object.freeze({
        step,
        times: (state.overflows?.step === step ? state.overflows.times : 0) + 1,
      });
      state.modelAway = null;
      addUsage(state.totals, entry.usage);
      return;
    }
    case 'shortened':
      applyShortened(state, entry);
      return;
    case 'model_away':
      addUsage(state.totals, entry.usage);
      // A wait that was copied into a fork is not a wait of the fork's own.
      if (entry.seq > copiedEntries(state)) state.modelAway = awayFor(state.modelAway, entry, entry.at);
      return;
    case 'reopened':
      state.modelAway = null;
      state.rejections = 0;
      if (state.ending !== null) state.reopenings += 1;
      state.ending = null;
      if (entry.retries !== undefined) reopenStep(state, entry.retries, entry.at);
      state.watchedFrom = nextStep(state);
      return;
    case 'finished': {
      const { seq: _, at: __, ...ending } = entry;
      state.ending = ending;
      if (state.unwinding !== null) applyUnwound(state);
      return;
    }
    case 'failed':
      addUsage(state.totals, entry.usage);
      state.ending = { kind: 'failed', error: entry.error };
      if (state.unwinding !== null) applyUnwound(state);
      return;
    case 'answering':
      state.answering = Object.freeze({ step: entry.step, axis: entry.budget });
      return;
    case 'unwinding':
      applyUnwinding(state, entry);
      return;
    case 'repaired':
      state.messagesTaken += entry.taken ?? 0;
      for (const call of entry.begun ?? []) state.open?.began.push({ call, at: entry.at, once: true });
      return;
    case 'started':
      return;
    default:
      entry satisfies never;
  }
}

/** Controls that a fork has copied did not come through its own inbox. */
function countMessage(state: RunState, { seq }: Entry): void {
  if (seq > copiedEntries(state)) state.messagesTaken += 1;
}

/** How many entries at the beginning stand for another run's. */
function copiedEntries({ task, fork }: RunState): number {
  return task === null ? (fork?.entries ?? 0) : 0;
}

function awayFor(before: ModelAwayState | null, { retryAt }: ModelAway, at: number): ModelAwayState {
  const { since = at, tries = 0 } = before ?? {};
  return Object.freeze({ since, triedAt: at, tries: tries + 1, ...(retryAt === undefined ? {} : { retryAt }) });
}

function applyMove(state: RunState, move: Moved, entry: Entry): void {
  addUsage(state.totals, move.usage);
  if (move.remarks !== undefined) noteSources(state, move.remarks);
  state.modelAway = null;
  state.fresh = NONE;
  const isCarriedOut = isMoveCarriedOut(move);
  state.rejections = move.rejected === undefined ? 0 : state.rejections + 1;
  if (move.decision.kind === 'finish' && isCarriedOut) {
    const { text, reasoning, providerState } = move;
    if ((text ?? reasoning ?? providerState) !== undefined) state.reply = defined({ text, reasoning, providerState });
    return;
  }
  state.totals.steps += 1;
  const slots = isCarriedOut ? slotsOf(move.decision) : 0;
  const calls: (CallRecord | null)[] = slots === 1 ? [null] : new Array(slots).fill(null);
  const open = {
    move,
    calls,
    began: [],
    promised: [],
    approvals: [],
    waits: [],
    away: NONE,
    waiting: NONE,
    edits: [],
    pending: slots,
  };
  if (move.growing === true) open.pending += 1;
  if (slots === 0) closeStep(state, open, entry.at);
  else state.open = open;
  if (move.undoes !== undefined && state.open !== null) beginUndoOfTask(state, state.open, entry.at);
}

function noteSources(state: RunState, remarks: readonly Remark[]): void {
  for (const remark of remarks) {
    if (remark.type === 'model.sources')
      state.sources = distinctSources([...state.sources, ...(remark as Remark<'model.sources'>).sources]);
  }
}

function applyPlanGrown(state: RunState, grown: PlanGrown, entry: Entry): void {
  const open = openOf(state, entry, grown.step);
  open.move = grownMove(open.move, grown);
  for (const _ of grown.branches) open.calls.push(null);
  open.pending += grown.branches.length;
  addUsage(state.totals, grown.usage);
  if (grown.remarks !== undefined) noteSources(state, grown.remarks);
  if (grown.done !== true) return;
  open.pending -= 1;
  if (open.pending === 0) closeStep(state, open, entry.at);
}

function applyCompacted(state: RunState, compacted: Compacted): void {
  const { step, before, summary, tokenEstimate, earlier, made } = compacted;
  state.compaction = Object.freeze({ summary, before, tokenEstimate, ...defined({ earlier, made }) });
  state.compactedAt = step;
  state.compactionFailures = null;
  addUsage(state.totals, compacted.usage);
}

/** The results of the last step are what they were; what is sent of them is less, and the rest can be read. */
function applyShortened(state: RunState, { results }: Shortened): void {
  const last = state.steps.at(-1) as Step;
  const calls = last.calls.map((record, call): CallRecord => {
    const result = results.find((one) => one.call === call);
    if (result === undefined) return record;
    const { value, artifact } = result;
    const media = record.outcome.kind === 'value' ? record.outcome.media : undefined;
    return Object.freeze({
      ...record,
      outcome: Object.freeze({ kind: 'value', value, artifact, ...defined({ media }) }),
    });
  });
  state.steps = withLastStep(state.steps, Object.freeze({ ...last, calls: Object.freeze(calls) }));
  if (!state.found.includes(ARTIFACT_FETCH)) state.found = [...state.found, ARTIFACT_FETCH];
}

function applyControl(state: RunState, { control: sent, as }: ControlTaken): void {
  const control = as === 'message' ? messageOf(sent) : sent;
  state.fresh = [...state.fresh, control];
  // The planner gets it as the outcome of its question.
  if (as === 'answer') return;
  switch (control.type) {
    case 'CANCEL':
      if (state.undo !== null) noteSecondCancel(state, control);
      // A cancel by a person ends also a run that only a call in doubt holds.
      if (state.cancel === null || isDismissal(state.cancel)) state.cancel = control;
      return;
    case 'PAUSE':
    case 'RESUME':
      applyBreakpoint(state, control);
      return;
    case 'CANCEL_CALL':
      applyCallCancel(state, control);
      return;
    case 'REDIRECT':
      state.goal = String(control.payload?.['goal'] ?? state.goal);
      addSteering(state, control);
      beginTurn(state);
      return;
    case 'USER_MESSAGE':
      addSteering(state, control);
      beginTurn(state);
      return;
    case 'INJECT_CONTEXT':
      addSteering(state, control);
      return;
    case 'REVOKE':
      revokeRule(state, control);
      return;
    default:
      return;
  }
}

function addSteering(state: RunState, control: Control): void {
  const atStep = nextStep(state);
  const isAsking = state.open?.move.decision.kind === 'request_pause';
  const turn: SteeringTurn = isAsking ? { atStep, control, beforeAnswer: true } : { atStep, control };
  state.steering = [...state.steering, turn];
}

function addUsage(totals: RunTotals, usage: Usage | undefined): void {
  if (usage !== undefined) countUsage(totals, usage);
}
