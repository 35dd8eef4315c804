/**
 * Decides what a run in this state needs next. It has no effects, and knows nothing but the state, the clock and what this process has in
 * flight. The driver carries the answer out, the new entries change the state, and the question is asked again. After a crash nothing is
 * in flight, and the same question finds what is to be done.
 */
import {
  branchesOf,
  type CallEnded,
  CEILING_REASONS,
  type CeilingAxis,
  type Clock,
  type Control,
  callEnded,
  DEFAULT_STEP_LIMIT,
  type Decision,
  type EntryBody,
  type Finished,
  type HandOver,
  isDismissal,
  type JsonObject,
  newRunId,
  type Outcome,
  type Resumed,
  type WakeMode,
} from '#core';
import {
  type Amounts,
  awayCall,
  callsOfEndedTasks,
  cancelledCalls,
  deadlineOf,
  halfDone,
  hasEndedUnderRaise,
  holdsDoubt,
  isBlocked,
  isHeld,
  isInDoubt,
  leftOn,
  nextStep,
  nextTimeout,
  overWaits,
  ownPause,
  parkedStatus,
  type RunState,
  reachedLimit,
  setAsideFor,
  stepsCounted,
  tasksOfAgentCalls,
  taskToUndo,
  toTellOf,
  type UndoStop,
  unneededRaise,
  unneededTasks,
  unsettledStatus,
  waitingCall,
  withdrawals,
  withdrawnByWord,
} from '#state';
import { keyPrefixOf } from '../calls/doubt.ts';
import { askForRaise, type Lacking, lackOf } from '../calls/in-flight-budget.ts';
import { endGroup } from '../tasks/ending.ts';
import type { MoveNeeds } from './ask.ts';
import { type ProgressGuard, watchProgress } from './progress-guard.ts';

export type Next =
  | { readonly do: 'end' }
  /** Entries that follow from the state. Before they are written, these tasks are told to stop. */
  | { readonly do: 'record'; readonly entries: readonly EntryBody[]; readonly cancels?: readonly string[] }
  /** These tasks carry out calls that are not needed any more. They are told so, and waited for. */
  | { readonly do: 'dismiss'; readonly tasks: readonly string[] }
  /** The tasks that carry out these calls have ended, and the run is to end: what they came to is recorded first. */
  | { readonly do: 'end_calls'; readonly calls: readonly number[] }
  /** The run is to end, and nobody knows what became of these calls: their tools are asked, and then people. Nothing is made any more. */
  | { readonly do: 'look_up'; readonly calls: readonly number[] }
  /** The memory of its user is to be read. */
  | { readonly do: 'recall' }
  | { readonly do: 'ask' }
  /** The next call is to be undone, or, where that was stopped, the run ends without it. */
  | { readonly do: 'undo'; readonly stopped?: UndoStop }
  /** The task is to undo what it did: it is told so, and waited for. */
  | { readonly do: 'undo_task'; readonly task: string }
  /** The open step has calls to start or to wait for. */
  | { readonly do: 'calls' }
  /** Nothing to do until an answer, the end of a task, or this time. `null`: no time limit. */
  | { readonly do: 'park'; readonly wakeAt: number | null; readonly status: 'waiting' | 'paused' };

export interface NextDeps {
  /** The clock. It is read only when the answer depends on the time. */
  readonly clock: Pick<Clock, 'now'>;
  /** Makes a token for a new pause. */
  newToken(): string;
  readonly wakeMode: WakeMode;
  /** True: the planner's moves cost nothing. */
  readonly costless: boolean;
  readonly progress: ProgressGuard;
  /** True: the planner is told what is remembered. */
  readonly remembers: boolean;
  /** The time before which the run does not begin, by the clock. Absent: it may begin. */
  readonly startsAt?: number;
  /** What the next move takes, when it was found to have no room in the budget. */
  moveNeeds(): MoveNeeds | undefined;
  /** Whether this process has the call of the open step under way. */
  isInFlight(call: number): boolean;
  /** Whether the call may still come to something here that is not recorded yet. */
  mayLand(call: number): boolean;
  /** Whether this process has told the task that its call is not needed any more. */
  isDismissed(task: string): boolean;
  /** Whether this process has told the task to undo what it did. */
  isToldToUndo(task: string): boolean;
}

/** How often in a row a model may give an invalid decision before the run fails. */
const MAX_REJECTIONS = 3;

const ASK: Next = { do: 'ask' };
const RECALL: Next = { do: 'recall' };
const CALLS: Next = { do: 'calls' };
const UNDO: Next = { do: 'undo' };
const END: Next = { do: 'end' };

export function next(state: RunState, deps: NextDeps): Next {
  if (state.ending !== null) return END;
  if (state.unwinding !== null) return unwind(state, deps);
  // Calls in doubt may have to be undone: the run waits for what became of them, as it does when a run above goes on itself.
  const holds = state.undo !== null && !state.undoStopped;
  const isDismissed = state.cancel !== null && (holds || isDismissal(state.cancel));
  if (state.cancel !== null && !isDismissed) return record(endCancelled(state));
  const { limits, open, pauses } = state;
  // An owner before may have cut calls off for it, and its clock may be ahead of this one: a run's time does not go back.
  const deadlineAt = deadlineOf(state);
  const overdue = deadlineAt !== undefined && Math.max(deps.clock.now(), state.updatedAt) >= deadlineAt;
  const isLate = overdue && limits.onCeiling !== 'pause';
  if (isDismissed || isLate || state.rejectedCall !== null) {
    const calls = cutOffCalls(state, deps);
    if (calls.length > 0) return { do: 'look_up', calls };
    const ending = endTasks(state, deps);
    if (ending !== undefined) return ending;
    if (tasksOfAgentCalls(state).length > 0 || holdsDoubt(state)) return awaitSettlement(state, deps);
    if (isDismissed) return record([...abandonCalls(state), cancelled(state)]);
    return record([...abandonCalls(state), isLate ? atDeadline(state, deps) : rejectedByPerson(state)]);
  }
  if (open?.cancels !== undefined) {
    const { entries, tasks } = cancelledCalls(state, deps.mayLand);
    if (entries.length > 0) return tasks.length > 0 ? { do: 'record', entries, cancels: tasks } : record(entries);
    const dismissed = dismiss(unneededTasks(state), deps);
    if (dismissed !== undefined) return dismissed;
  }
  if (pauses.length > 0) {
    const expired = expiredPause(state, deps.clock.now());
    if (expired !== undefined) return record([expired]);
    const superseded = supersededQuestions(state);
    if (superseded.length > 0) return record(superseded);
    const told = toTellOf(state, deps.clock);
    if (told.length > 0) return record(told);
    const raise = unneededRaise(state);
    if (raise !== undefined) return record([withdrawn(raise.token)]);
    if (isHeld(state)) return hasEndedUnderRaise(state) ? CALLS : park(state);
  }
  if (open !== null && open.waiting.length > 0) {
    const over = overWaits(state, deps.clock.now());
    if (over.length > 0) return record(over);
  }
  const dismissed = dismiss(unneededTasks(state), deps);
  if (dismissed !== undefined) return dismissed;
  if (open !== null && !isBlocked(state, nowFor(state, deps))) return CALLS;
  const ended = state.groups.length === 0 ? undefined : endGroup(state);
  if (ended !== undefined) return { do: 'record', ...ended };
  if (open !== null) return wakePush(state, deps.wakeMode) ?? park(state);
  return beforeMove(state, overdue, deps);
}

/** When what is under way is stopped; `undefined`: by no time. A task that undoes what it did has a time of its own. */
export function stopsAt(state: RunState): number | undefined {
  const { limits, unwinding, open } = state;
  const isOfTask = unwinding !== null && open !== null && taskToUndo(open) !== undefined;
  return limits.onCeiling === 'pause' || isOfTask ? undefined : deadlineOf(state);
}

/** A run that undoes its calls: its steps as those of any other run, and between two of them no planner, but the next call. */
function unwind(state: RunState, deps: NextDeps): Next {
  if (state.undoStopped) return { do: 'undo', stopped: 'cancelled' };
  const { pauses, open, limits } = state;
  const now = Math.max(deps.clock.now(), state.updatedAt);
  const task = open === null ? undefined : taskToUndo(open);
  // While somebody is asked, its time does not go on, and a task has a time of its own.
  const isTimed = pauses.length === 0 && task === undefined;
  if (isTimed && now >= (limits.deadlineAt ?? now)) {
    const calls = cutOffCalls(state, deps);
    if (calls.length > 0) return { do: 'look_up', calls };
    const ending = endTasks(state, deps);
    if (ending !== undefined) return ending;
    if (tasksOfAgentCalls(state).length > 0) return awaitSettlement(state, deps);
    return { do: 'undo', stopped: 'timeout' };
  }
  const { entries = [] } = open?.cancels === undefined ? {} : cancelledCalls(state, deps.mayLand);
  if (entries.length > 0) return record(entries);
  const expired = expiredPause(state, now);
  if (expired !== undefined) return record([expired]);
  const told = pauses.length === 0 ? [] : toTellOf(state, deps.clock);
  if (told.length > 0) return record(told);
  if (open !== null && open.waiting.length > 0) {
    const over = overWaits(state, now);
    if (over.length > 0) return record(over);
  }
  if (task !== undefined && open?.waits.length !== 0 && !deps.isToldToUndo(task)) return { do: 'undo_task', task };
  const isParked = isHeld(state) || (open !== null && isBlocked(state, nowFor(state, deps)));
  if (isParked) return isTimed ? park(state) : parkUntil(state, nextTimeout(state));
  return open === null ? UNDO : CALLS;
}

/** What ends a run that is cancelled. */
export function endCancelled(state: RunState): EntryBody[] {
  return [...abandonCalls(state), cancelled(state)];
}

/** The run is to end: calls whose tasks have ended have what these came to, and may have to be undone; the other tasks are stopped. */
function endTasks(state: RunState, deps: NextDeps): Next | undefined {
  const ended = callsOfEndedTasks(state).filter((call) => !deps.isInFlight(call));
  if (ended.length > 0) return { do: 'end_calls', calls: ended };
  return dismiss(tasksOfAgentCalls(state), deps);
}

function dismiss(tasks: readonly string[], { isDismissed }: NextDeps): Next | undefined {
  if (tasks.length === 0) return undefined;
  const untold = tasks.filter((task) => !isDismissed(task));
  return untold.length === 0 ? undefined : { do: 'dismiss', tasks: untold };
}

/** What a run needs between two steps when it waits for nothing. */
function beforeMove(state: RunState, overdue: boolean, deps: NextDeps): Next {
  if (state.handsOver !== null) return record([handedOver(state.handsOver)]);
  if (deps.startsAt !== undefined && nextStep(state) === 0 && deps.clock.now() < deps.startsAt) {
    return park(state, deps.startsAt);
  }
  if (state.rejections >= MAX_REJECTIONS) return record([rejectedTooOften(state)]);
  // The last move has its own reserve.
  const needs = deps.moveNeeds();
  const reached = state.answering === null ? reachedLimit(state, deps.costless, needs && amountsOf(needs)) : undefined;
  const lacking = lackingFor(needs, state);
  if (state.answering !== null && lacking !== undefined) {
    return mayGetBack(lacking, state) && !overdue
      ? park(state)
      : record([ceiling(state, state.answering.axis, lacking)]);
  }
  if (reached?.lent === true && !overdue) return park(state);
  if (reached?.reserve === true && !overdue && state.limits.onCeiling === 'answer') {
    return record([{ kind: 'answering', step: nextStep(state), budget: reached.axis }]);
  }
  const axis = overdue ? (state.answering?.axis ?? 'deadline') : reached?.axis;
  if (axis !== undefined) {
    const asks = state.limits.onCeiling === 'pause';
    return record([asks ? askForRaise(state, axis, deps.newToken(), lacking) : ceiling(state, axis, lacking)]);
  }
  if (state.answering !== null) return ASK;
  const { retryAt } = state.modelAway ?? {};
  if (retryAt !== undefined && mustWait(state, deps.clock.now())) return park(state, retryAt);
  const stuck = watchProgress(state, deps.progress, () => deps.newToken());
  if (stuck !== undefined) return record([stuck]);
  return deps.remembers && state.recalled === null && nextStep(state) === 0 ? RECALL : ASK;
}

/**
 * The time of the next try was set by the clock of the process that made the last one. If, by this clock, that last try is still to
 * come, the clocks differ, and this clock cannot tell how much of the wait is left: the store counts the wait.
 */
function mustWait({ modelAway }: RunState, now: number): boolean {
  const { triedAt = 0, retryAt = 0 } = modelAway ?? {};
  return triedAt <= now && now < retryAt;
}

function record(entries: readonly EntryBody[]): Next {
  return { do: 'record', entries };
}

function amountsOf({ axis, amount }: MoveNeeds): Amounts {
  return axis === 'tokens' ? { tokens: amount } : { costMicroUsd: amount };
}

/** What a move lacks on its axis; `undefined`: there is room. */
function lackingFor(needs: MoveNeeds | undefined, state: RunState): Lacking | undefined {
  if (needs === undefined) return undefined;
  const { axis, amount } = needs;
  const left = leftOn(state, axis === 'tokens' ? 'tokens' : 'costMicroUsd') ?? amount;
  return left < amount ? { axis, needs: amount, left } : undefined;
}

/** Whether there is room for it when the tasks under way have ended. */
function mayGetBack({ axis, needs, left }: Lacking, state: RunState): boolean {
  const lent = setAsideFor(state, axis === 'tokens' ? 'tokens' : 'costMicroUsd');
  return lent > 0 && left + lent >= needs;
}

/** Whether a wait is over. The clock is read only for a wait with a time limit. */
function nowFor({ open }: RunState, { clock }: NextDeps): number | undefined {
  const isTimed = open !== null && (open.away.length > 0 || open.waits.some(({ until }) => until !== undefined));
  return isTimed ? clock.now() : undefined;
}

function expiredPause({ pauses }: RunState, now: number): Resumed | undefined {
  const expired = pauses.find((pause) => pause.expiresAt !== undefined && pause.expiresAt <= now);
  return expired && { kind: 'resumed', token: expired.token, verdict: 'timeout' };
}

/** Closes the questions that nobody is to answer any more, since the planner has news to hear first. */
function supersededQuestions(state: RunState): Resumed[] {
  const withdrawal = withdrawals(state);
  return state.pauses.flatMap((pause): Resumed[] => {
    const control = withdrawal(pause);
    if (control === undefined) return [];
    const { token } = pause;
    return [
      {
        kind: 'resumed',
        token,
        verdict: 'superseded',
        payload: { reason: whyWithdrawn(control), control: withdrawnByWord(control) },
      },
    ];
  });
}

function whyWithdrawn(control: Control): string {
  const isNewGoal = withdrawnByWord(control) === 'REDIRECT';
  if (control.withdraws === undefined) {
    return isNewGoal
      ? 'the goal was changed while it waited for an answer'
      : 'the user wrote while it waited for an answer';
  }
  return isNewGoal
    ? 'the run above was given another goal while it waited for an answer'
    : 'the user wrote to the run above while it waited for an answer';
}

/** Closes a pause for a higher limit that is not needed any more: nobody has to answer it. */
function withdrawn(token: string): Resumed {
  const payload = { reason: 'the step is over without the calls that did not fit the budget' };
  return { kind: 'resumed', token, verdict: 'superseded', payload };
}

/** @param retryAt when the models are tried again; a time limit that asks for a raise is checked before. */
function park(state: RunState, retryAt?: number): Next {
  return parkUntil(state, goesOnAt(state, retryAt));
}

function parkUntil(state: RunState, wakeAt: number | null): Next {
  return { do: 'park', wakeAt, status: parkedStatus(state) };
}

/** When a run that no process drives goes on by itself. Milliseconds since the epoch; `null`: never. */
export function goesOnAt(state: RunState, retryAt: number | undefined): number | null {
  const { limits } = state;
  const own = Math.min(nextTimeout(state) ?? Number.POSITIVE_INFINITY, retryAt ?? Number.POSITIVE_INFINITY);
  const deadline = limits.onCeiling === 'pause' && retryAt === undefined ? undefined : deadlineOf(state);
  const wakeAt = Math.min(own, deadline ?? Number.POSITIVE_INFINITY);
  return wakeAt === Number.POSITIVE_INFINITY ? null : wakeAt;
}

/** A planner that waits in a pause of its own is woken by the results of its tasks, unless its wake mode is `poll`. */
function wakePush(state: RunState, wakeMode: WakeMode): Next | undefined {
  const { background } = state;
  const pause = wakeMode === 'poll' ? undefined : ownPause(state);
  if (pause?.step === undefined) return undefined;
  const { step } = pause;
  const result = background.find(({ atStep }) => atStep === step + 1);
  if (result === undefined) return undefined;
  return record([{ kind: 'resumed', token: pause.token, verdict: 'resume', payload: { group_id: result.group.id } }]);
}

/**
 * Whether a run would end but for calls in doubt, its own or those of tasks that carry out its calls. Nothing else of such a run
 * is carried out.
 */
function awaitSettlement(state: RunState, { isInFlight }: NextDeps): Next {
  const carried = tasksOfAgentCalls(state);
  const isCarried = (call: number): boolean =>
    state.open?.waits.some((wait) => wait.call === call && carried.includes(wait.task)) === true;
  const isOpen = (call: number): boolean => isInFlight(call) || isInDoubt(state, call) || isCarried(call);
  const others = abandonCalls(state).filter(({ call }) => !isOpen(call));
  if (others.length > 0) return record(others);
  return { do: 'park', wakeAt: null, status: unsettledStatus(state) };
}

/** Calls that a dead process had begun when the run is to end. The run does not end before it is known what became of them. */
function cutOffCalls(state: RunState, { isInFlight }: NextDeps): readonly number[] {
  const { open } = state;
  if (open === null) return [];
  return open.began.flatMap(({ call, once }) =>
    once && open.calls[call] === null && !isInFlight(call) && !isInDoubt(state, call) ? [call] : [],
  );
}

const NOT_ENDED = 'The run ended before the call did.';
const NOT_TAKEN = 'The run ended before the call was given what its task had come to. The task says what that is.';

/** Outcomes for the calls that have none when the run ends: exactly one for each, as for all others. */
export function abandonCalls(state: RunState): CallEnded[] {
  const { open } = state;
  if (open === null || open.move.decision.kind === 'request_pause') return [];
  const carriedOut = new Set(callsOfEndedTasks(state));
  return open.calls.flatMap((ended, call): CallEnded[] => {
    if (ended !== null) return [];
    const isBegun = open.began.some((begun) => begun.call === call && begun.once);
    const outcome: Outcome =
      halfDone(open, call) ??
      (isBegun
        ? {
            kind: 'unknown',
            error: {
              code: 'outcome_unknown',
              message: 'The run ended while the call was under way; the call may have happened.',
            },
          }
        : {
            kind: 'cancelled',
            error: { code: 'cancelled', message: carriedOut.has(call) ? NOT_TAKEN : NOT_ENDED },
          });
    const hasBegun = open.began.some((begun) => begun.call === call) || waitingCall(open, call) !== undefined;
    const attempts = awayCall(open, call)?.attempts ?? (hasBegun ? 1 : 0);
    return [callEnded({ step: open.move.step, call }, { outcome, attempts })];
  });
}

function cancelled(state: RunState): Finished {
  const reason = state.cancel?.payload?.['reason'];
  const metadata = { steering: 'cancelled', run_id: state.identity.run };
  const paused = state.pauses.length > 0 ? { cancel_while_paused: true } : {};
  const unsure = leftUnknown(state);
  const left = unsure.length > 0 ? { in_doubt: unsure } : {};
  return {
    kind: 'finished',
    reason: 'cancelled',
    metadata: { ...metadata, ...paused, ...left, ...(typeof reason === 'string' ? { reason } : {}) },
  };
}

/** The calls that a cancel leaves in doubt. Whoever waits for the run is told of them. */
function leftUnknown({ identity, open, steps }: RunState): readonly JsonObject[] {
  const last = steps.at(-1);
  const left = (decision: Decision, step: number, isUnknown: (call: number) => boolean): readonly JsonObject[] =>
    branchesOf(decision).flatMap(({ tool }, call) =>
      isUnknown(call) ? [{ tool, key: `${keyPrefixOf(identity)}/${step}.${call}` }] : [],
    );
  if (open === null) {
    return last === undefined
      ? []
      : left(last.decision, last.index, (call) => last.calls[call]?.outcome.kind === 'unknown');
  }
  const isBegun = (call: number): boolean => open.began.some((begun) => begun.call === call && begun.once);
  const isUnknown = (call: number): boolean => {
    const record = open.calls[call];
    return record == null ? isBegun(call) || halfDone(open, call) !== undefined : record.outcome.kind === 'unknown';
  };
  return left(open.move.decision, open.move.step, isUnknown);
}

function rejectedByPerson({ rejectedCall }: RunState): Finished {
  return {
    kind: 'finished',
    reason: 'constraints_conflict',
    metadata: { rejected_by: 'steering', token: rejectedCall },
  };
}

/** The end; or the last move, for which the rest of the time was kept back. */
function atDeadline(state: RunState, { clock }: NextDeps): EntryBody {
  const { limits, answering, updatedAt } = state;
  const isOver = Math.max(clock.now(), updatedAt) >= (limits.deadlineAt ?? 0);
  if (limits.onCeiling !== 'answer' || answering !== null || isOver)
    return ceiling(state, answering?.axis ?? 'deadline');
  return { kind: 'answering', step: nextStep(state), budget: 'deadline' };
}

/** @param lacking the next request, when it has no room in what is left. */
export function ceiling(state: RunState, axis: CeilingAxis, lacking?: Lacking): Finished {
  const steps = {
    max_steps_exceeded: true,
    max_steps: state.limits.steps ?? DEFAULT_STEP_LIMIT,
    steps_observed: stepsCounted(state),
  };
  return {
    kind: 'finished',
    reason: CEILING_REASONS[axis],
    metadata: { budget: axis, ...(axis === 'steps' && steps), ...(lacking && lackOf(lacking)) },
  };
}

/** The run of the other agent is started by the commit of this ending. */
function handedOver({ agent }: HandOver): Finished {
  return { kind: 'finished', reason: 'handed_over', successor: { run: newRunId(), agent } };
}

function rejectedTooOften(state: RunState): EntryBody {
  const last = state.steps.at(-1)?.error;
  const message = `Step ${nextStep(state) - 1}: ${state.rejections} decisions in a row did not pass. The last: ${last?.message ?? ''}`;
  return { kind: 'failed', error: { code: last?.code ?? 'invalid_decision', message } };
}
