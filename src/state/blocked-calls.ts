/** What a run waits for: which calls of the open step are blocked, whether this process can still move the run on, and the status of the run. */
import {
  type Branch,
  BranchGraph,
  type CallParallel,
  type CallRecord,
  type Control,
  type Decision,
  defined,
  type EntryBody,
  type Failed,
  type Finished,
  isPlan,
  judgeBranch,
  nothingJudged,
  type Paused,
  partsBefore,
  type TaskPause,
  textOfParts,
  type WaitEnded,
  winnersOf,
  withdrawsQuestions,
} from '#core';
import { missingIn, timesToTell } from './approvals.ts';
import { mayEndEarly, overIn } from './closed-with.ts';
import { itemIn, liveIn } from './places.ts';
import { atOnceOf } from './plan-view.ts';
import {
  type AwayCall,
  hasBegun,
  type OpenPause,
  type OpenStep,
  type RunState,
  type TaskState,
  type TaskWait,
  type WaitState,
} from './state.ts';
import { replaceTask, verdictOn } from './task-state.ts';
import { openWaits } from './waiting-calls.ts';

/** A time at which nothing that has a limit is over. */
const BEFORE_ALL = Number.NEGATIVE_INFINITY;

/** Calls of one step, in the order in which they were added. It is made at every turn while thousands wait, and a `Set` takes ten times as long to fill. */
class CallSet implements Iterable<number> {
  readonly #has: Uint8Array;
  readonly #calls: number[] = [];

  /** @param size how many calls the step has. */
  constructor(size: number) {
    this.#has = new Uint8Array(size);
  }

  add(call: number): void {
    if (this.#has[call] === 1) return;
    this.#has[call] = 1;
    this.#calls.push(call);
  }

  has(call: number): boolean {
    return this.#has[call] === 1;
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#calls.values();
  }
}

type Calls = Pick<CallSet, 'has' | typeof Symbol.iterator>;

const NONE: Calls = new CallSet(0);

/** The calls that wait for an answer, for a task, for a group or for the time of their next attempt. This process cannot move them on. */
export function parkedCalls(state: RunState, open: OpenStep, now: number = BEFORE_ALL, withHeld = false): Calls {
  const { waits, away, waiting } = open;
  if (waits.length === 0 && away.length === 0 && waiting.length === 0 && state.pauses.length === 0) return NONE;
  const parked = new CallSet(open.calls.length);
  for (const { step, call, wait } of state.pauses) {
    // A call that asks in the middle of its work says itself whether it waits: something else that it waits for may have ended.
    if (call !== undefined && wait === undefined && step === open.move.step) parked.add(call);
  }
  for (const one of waiting) if (one.isParked || (withHeld && openWaits(one).length > 0)) parked.add(one.call);
  for (const wait of waits) if (!isOver(state, wait, now)) parked.add(wait.call);
  for (const one of away) if (isAway(state, open, one, now)) parked.add(one.call);
  return parked;
}

function isOver(state: RunState, wait: TaskWait, now: number): boolean {
  const { task, group, until = Number.POSITIVE_INFINITY, agentCall } = wait;
  // A call with an outcome keeps it, whatever the run is told.
  if (agentCall === undefined && (until <= now || state.fresh.some(isSteering))) return true;
  if (group !== undefined) return itemIn(state.groups, group)?.end !== undefined;
  const own = itemIn(state.tasks, task);
  return own === undefined ? state.otherEnds.some((end) => end.task === task) : own.end !== undefined;
}

/**
 * Whether the call waits for its next attempt. If, by this clock, the last attempt is still to come, the clocks of two processes
 * differ, and this one cannot tell how much of the wait is left: the store counts the wait.
 */
function isAway(state: RunState, open: OpenStep, { call, failedAt, retryAt }: AwayCall, now: number): boolean {
  if (open.calls[call] !== null || hasBegun(open, call) || hasNewGoal(state)) return false;
  return now === BEFORE_ALL || (failedAt <= now && now < retryAt);
}

/** Whether the goal was changed since the last move: no call is tried again for the old one. */
export function hasNewGoal({ fresh }: RunState): boolean {
  return fresh.some(({ type }) => type === 'REDIRECT');
}

/** Whether a message has come that a waiting planner must hear before its task has ended. */
export function isSteering({ type }: Control): boolean {
  return type === 'USER_MESSAGE' || type === 'INJECT_CONTEXT' || type === 'REDIRECT';
}

/**
 * What has withdrawn this question: a control that the planner has not heard yet, and that it is to hear before anybody decides. `undefined`:
 * nothing has, or the pause does not ask about the open step. A call in doubt stays so until it is settled, and pauses of the run as a whole
 * are not about its step.
 */
export function withdrawnBy(state: Hearers, pause: Asking): Control | undefined {
  return withdrawals(state)(pause);
}

type Hearers = Pick<RunState, 'open' | 'fresh' | 'whileAsked' | 'unwinding'>;
type Asking = Pick<OpenPause, 'step' | 'call' | 'reason'>;

/** `withdrawnBy` for all pauses of the state: what was said is looked through once. */
export function withdrawals({ open, fresh, whileAsked, unwinding }: Hearers): (pause: Asking) => Control | undefined {
  const goal = fresh.find(isNewGoal);
  const words = goal ?? fresh.find((control) => withdrawsQuestions(control, whileAsked));
  return ({ step, call, reason }) => {
    // What is said while a run undoes its calls is for whoever comes next.
    if (unwinding !== null || step === undefined || step !== open?.move.step || reason === 'in_doubt') return undefined;
    // Words or an event that the planner waits for itself: a message takes nothing of that away.
    return call !== undefined || reason === 'approval_required' ? words : goal;
  };
}

/** What withdraws questions, in the words of whoever said it: a task is told it as context. */
export function withdrawnByWord({ type, withdraws }: Pick<Control, 'type' | 'withdraws'>): Control['type'] {
  return withdraws ?? type;
}

function isNewGoal(control: Control): boolean {
  return withdrawnByWord(control) === 'REDIRECT';
}

/** The tasks of the run that its open step waits for. */
export function awaitedTasks({ open, tasks }: RunState): readonly string[] {
  if (open === null || open.waits.length === 0) return [];
  const { waits } = open;
  const isAwaited = (task: TaskState): boolean =>
    waits.some((wait) => (wait.group === undefined ? wait.task === task.id : wait.group === task.group));
  return liveIn(tasks).flatMap((task) => (isAwaited(task) ? [task.id] : []));
}

/** Whether this call of the open step is in doubt, and waits to be settled. */
export function isInDoubt({ open, pauses }: Pick<RunState, 'open' | 'pauses'>, call: number): boolean {
  const step = open?.move.step;
  return pauses.some((pause) => pause.reason === 'in_doubt' && pause.call === call && pause.step === step);
}

/** Whether a call in doubt holds the run: only a cancel ends it. */
export function holdsDoubt({ pauses }: Pick<RunState, 'pauses'>): boolean {
  return pauses.some(({ reason }) => reason === 'in_doubt');
}

/** The tasks under way that carry out calls of the open step. */
export function tasksOfAgentCalls({ open, tasks }: RunState): readonly string[] {
  if (open === null || open.waits.length === 0) return [];
  const isLive = (id: string): boolean => isUnderWay(tasks, id);
  return open.waits.flatMap(({ task, agentCall }) => (agentCall !== undefined && isLive(task) ? [task] : []));
}

function isUnderWay(tasks: readonly TaskState[], id: string): boolean {
  const task = itemIn(tasks, id);
  return task !== undefined && task.end === undefined;
}

/** The calls of the open step whose tasks have ended, and that have no outcome yet. */
export function callsOfEndedTasks({ open, tasks }: RunState): readonly number[] {
  const hasEnded = (id: string): boolean => itemIn(tasks, id)?.end !== undefined;
  return open?.waits.flatMap(({ call, task, agentCall }) => (agentCall && hasEnded(task) ? [call] : [])) ?? [];
}

/** The tasks among them whose calls are not needed any more. Each task is waited for, as it may have a call in doubt. */
export function unneededTasks(state: RunState): readonly string[] {
  const { open } = state;
  if (open === null || open.waits.length === 0) return [];
  const { decision } = open.move;
  if (decision.kind === 'call_parallel' && isMet(decision, open.calls)) return tasksOfAgentCalls(state);
  return open.cancels === undefined ? [] : tasksOfCancelledCalls(state, open);
}

/** Those that carry out calls which somebody has cancelled. */
function tasksOfCancelledCalls(state: RunState, { waits, cancels = [] }: OpenStep): readonly string[] {
  const isCancelled = (task: string): boolean =>
    waits.some((wait) => wait.task === task && cancels.some(({ call }) => call === wait.call));
  return tasksOfAgentCalls(state).filter(isCancelled);
}

/** Whether the goal was changed while a plan is carried out: no further branch of the plan is started then. */
export function isRedirected(state: RunState): boolean {
  const { open } = state;
  return open !== null && isPlan(open.move.decision) && hasNewGoal(state);
}

/**
 * Whether the open step has calls, and each of them is blocked or needs a call that has not ended.
 * @param withHeld counts calls that stay open while they ask somebody: nobody but who answers moves them, either.
 */
export function isBlocked(state: RunState, now: number = BEFORE_ALL, withHeld = false): boolean {
  const { open } = state;
  if (open === null) return false;
  const { decision, growing } = open.move;
  if (decision.kind === 'request_pause') return true;
  if (growing === true) return false;
  const { waits, away, waiting } = open;
  const waitsForNothing = waits.length === 0 && away.length === 0 && waiting.length === 0;
  if (waitsForNothing && !state.pauses.some(({ call }) => call !== undefined)) return false;
  if (decision.kind === 'call_parallel' && hasMoreThanParked(state, open, decision, withHeld)) return false;
  const parked = parkedCalls(state, open, now, withHeld);
  const isOpenAndFree = (record: CallRecord | null, call: number): boolean => record === null && !parked.has(call);
  if (decision.kind === 'call_parallel') {
    // Calls that a met join does not need are settled here, except calls in doubt, which a person must settle. A task may have one.
    if (isMet(decision, open.calls)) {
      const carried = new Set(open.waits.flatMap(({ call, agentCall }) => (agentCall !== undefined ? [call] : [])));
      const isHeardOut = (call: number): boolean => carried.has(call) && parked.has(call);
      return open.calls.every((record, call) => record !== null || isInDoubt(state, call) || isHeardOut(call));
    }
    if (!isRedirected(state)) return !hasRoom(open, decision, parked);
  }
  return !open.calls.some(isOpenAndFree);
}

/**
 * Whether more calls are open than can be parked, of a step in which none waits for another or for a place: one of them is free. Thousands of calls may
 * wait, and it is asked at every turn: nothing is made to find it out.
 */
function hasMoreThanParked(state: RunState, open: OpenStep, decision: CallParallel, withHeld: boolean): boolean {
  const { waits, away, waiting, pending, move } = open;
  if (waits.length > 0 || mayEndEarly(decision) || !isLoose(decision.branches)) return false;
  let parked = away.length;
  for (const one of waiting) if (one.isParked || withHeld) parked += 1;
  for (const { step, call, wait } of state.pauses) {
    if (call !== undefined && wait === undefined && step === move.step) parked += 1;
  }
  return pending > parked;
}

const loose = new WeakMap<readonly Branch[], boolean>();

function isLoose(branches: readonly Branch[]): boolean {
  const graph = graphOf(branches);
  const known = loose.get(branches) ?? branches.every((_, call) => graph.needs(call).length === 0);
  loose.set(branches, known);
  return known;
}

/** Whether a call could be started, or could get what it waited for. Calls that tasks carry out keep their places until they end. */
function hasRoom(open: OpenStep, decision: CallParallel, parked: Calls): boolean {
  const { waits, calls, move } = open;
  if (waits.some(({ call }) => !parked.has(call))) return true;
  const carried = waits.filter(({ agentCall }) => agentCall !== undefined);
  if (carried.length >= atOnceOf(decision, move.atOnce)) return false;
  const toolOf = (call: number): string | undefined => decision.branches[call]?.tool;
  const full = new Set<string | undefined>();
  for (const { call, agentCall } of carried) {
    const isSame = (other: TaskWait): boolean => toolOf(other.call) === toolOf(call);
    if (agentCall?.atOnce !== undefined && carried.filter(isSame).length >= agentCall.atOnce) full.add(toolOf(call));
  }
  const graph = graphOf(decision.branches);
  const before = nothingJudged(graph.size);
  const isWaiting = (call: number): boolean =>
    typeof judgeBranch(graph, call, (other) => calls[other]?.outcome, before) === 'number';
  return calls.some(
    (record, call) => record === null && !parked.has(call) && !full.has(toolOf(call)) && !isWaiting(call),
  );
}

/** Branches never change, and while something waits it is asked at every turn how they hang together. */
const known = new WeakMap<readonly Branch[], BranchGraph>();

function graphOf(branches: readonly Branch[]): BranchGraph {
  const found = known.get(branches);
  if (found !== undefined) return found;
  const made = new BranchGraph(branches);
  known.set(branches, made);
  return made;
}

/** The open calls of the step that cannot begin before this call has ended. */
export function openBehind({ calls }: OpenStep, { branches }: CallParallel, call: number): Set<number> {
  const graph = graphOf(branches);
  const behind = new Set<number>();
  const open = [call];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const next of graph.dependents(at)) {
      if (calls[next] !== null || behind.has(next)) continue;
      behind.add(next);
      open.push(next);
    }
  }
  return behind;
}

/** Nothing more is wanted of the call. */
function isMet(decision: CallParallel, calls: readonly (CallRecord | null)[]): boolean {
  return overIn(decision, calls) !== undefined;
}

/**
 * With the call that has just ended nothing more is wanted of the others: what tasks that carry them out have asked needs no answer, but for calls
 * in doubt. What they ask from now on, while they undo what they did, does.
 */
export function withdrawUnneeded(state: RunState, open: OpenStep, call: number): void {
  const { decision } = open.move;
  if (decision.kind !== 'call_parallel') return;
  const asking = new Set(liveIn(state.tasks).flatMap(({ id, pauses }) => (pauses.length > 0 ? [id] : [])));
  if (!open.waits.some(({ task, agentCall }) => agentCall !== undefined && asking.has(task))) return;
  const before = open.calls.map((record, index) => (index === call ? null : record));
  if (!isMet(decision, open.calls) || isMet(decision, before)) return;
  for (const id of tasksOfAgentCalls(state)) {
    const task = itemIn(state.tasks, id);
    if (task !== undefined && asking.has(id)) {
      replaceTask(state, { ...task, pauses: task.pauses.filter(({ reason }) => reason === 'in_doubt') });
    }
  }
}

/** Whether a call of this decision may be given up before it has ended, for a new goal or because nothing more is needed. */
export function mayGiveUp(decision: Decision): boolean {
  if (decision.kind !== 'call_parallel') return false;
  return isPlan(decision) || decision.failFast === true || winnersOf(decision.join) !== undefined;
}

/** The pause that a planner asked for until something happens: results of its tasks may wake it. */
export function ownPause({ open, pauses }: Pick<RunState, 'open' | 'pauses'>): OpenPause | undefined {
  if (open?.move.decision.kind !== 'request_pause') return undefined;
  const { step, decision } = open.move;
  if (decision.reason !== 'external_event' && decision.reason !== 'await_input') return undefined;
  return pauses.find((pause) => pause.step === step);
}

/** Whether the planner waits in its own pause for nothing but the end of a task, and a task is running. */
export function wakesByTasks(state: RunState): boolean {
  if (state.ending !== null || ownPause(state) === undefined || isHeld(state)) return false;
  return liveIn(state.tasks).some(({ pauses, agentCall }) => pauses.length === 0 && agentCall === undefined);
}

/** Whether a pause of an operator or of a limit holds the run as a whole. */
export function isHeld({ pauses }: RunState): boolean {
  return pauses.some(({ step }) => step === undefined);
}

/**
 * The pause that asks for more budget for calls of the open step: it holds the run as a whole, and is the only one of this reason
 * while a step is open.
 */
function raiseOf({ open, pauses }: Pick<RunState, 'open' | 'pauses'>): OpenPause | undefined {
  if (open === null) return undefined;
  return pauses.find(({ step, reason }) => step === undefined && reason === 'constraints_conflict');
}

/**
 * The pause for a higher limit when no call of the open step waits for it any more: the step ends without the calls that did not
 * fit.
 */
export function unneededRaise(state: RunState): OpenPause | undefined {
  const raise = raiseOf(state);
  const { open } = state;
  if (raise === undefined || open?.move.decision.kind !== 'call_parallel') return undefined;
  return isMet(open.move.decision, open.calls) || isRedirected(state) ? raise : undefined;
}

/**
 * Whether only a pause for a higher limit holds the run, and a task that carries out a call of the open step has ended: its end
 * ends the call.
 */
export function hasEndedUnderRaise(state: RunState): boolean {
  const { open, pauses, tasks } = state;
  const raise = raiseOf(state);
  if (open === null || raise === undefined || pauses.some((pause) => pause !== raise && pause.step === undefined)) {
    return false;
  }
  const hasEnded = (id: string): boolean => itemIn(tasks, id)?.end !== undefined;
  return open.waits.some(({ agentCall, task }) => agentCall !== undefined && hasEnded(task));
}

/** Whether the run waits for people alone: for an answer to one of its own pauses, or to a pause of a task that it waits for. */
export function isPaused(state: RunState): boolean {
  const { ending, open, pauses } = state;
  if (ending !== null) return false;
  if (open === null || isHeld(state)) return pauses.length > 0;
  return isBlocked(state, BEFORE_ALL, true) && (pauses.length > 0 || pausesOfTasks(state).length > 0);
}

/**
 * The pauses of the tasks that the open step waits for. Those of a group count once none of its members is running any more, and not when the
 * group needs none of them: its end is the next that is recorded.
 */
export function pausesOfTasks({ open, tasks, groups, otherPauses }: RunState): readonly TaskPause[] {
  if (open === null || open.waits.length === 0) return [];
  return open.waits
    .flatMap(({ task, group }) => {
      if (group === undefined) {
        const own = itemIn(tasks, task);
        const others = otherPauses.filter((other) => other.task === task);
        return own === undefined ? others : [own, ...others];
      }
      const known = itemIn(groups, group);
      if (known !== undefined && verdictOn(known, tasks) !== undefined) return [];
      const live = liveIn(tasks).filter((member) => member.group === group);
      return live.every(({ pauses }) => pauses.length > 0) ? live : [];
    })
    .flatMap(({ pauses }) => pauses);
}

/** All that somebody can answer now to bring the run on: its own pauses, and those of tasks that it waits for. */
export function answerable(state: RunState): readonly TaskPause[] {
  return [...state.pauses.map((pause) => taskPause(state, pause)), ...pausesOfTasks(state)];
}

function taskPause(state: RunState, pause: OpenPause): TaskPause {
  const { token, reason, payload, schema, wait, expiresAt } = pause;
  const [text, missing] = [saidWith(state, pause), missingIn(state, pause)];
  return defined({ run: state.identity.run, token, reason, payload, schema, wait, expiresAt, text, missing });
}

/** What the planner said in the step that this pause of the run belongs to. */
export function saidWith(
  { open, steps, steering, background }: Pick<RunState, 'open' | 'steps' | 'steering' | 'background'>,
  { step }: Pick<OpenPause, 'step'>,
): string | undefined {
  if (step === undefined || open === null) return undefined;
  return wholeText({ steps, steering, background }, step, open.move.text);
}

/** What was said in the step of this index, with the beginning of it where that has come in steps before it. */
function wholeText(
  { steps, steering, background }: Pick<RunState, 'steps' | 'steering' | 'background'>,
  index: number,
  text: string | undefined,
): string | undefined {
  const parts = partsBefore({ step: (at) => steps[at], steering, background }, index);
  return parts.length === 0 ? text : textOfParts(parts) + (text ?? '');
}

/** Whether a wait of the open step may end by itself. */
function hasTimedWaits({ waits, away, waiting }: OpenStep): boolean {
  return waits.length > 0 || away.length > 0 || waiting.length > 0;
}

interface TimedWait {
  readonly call: number;
  readonly wait: WaitState;
  readonly until: number;
}

/** The waits in the middle of calls that end at some time. Questions end with their pauses. */
function timedWaits({ waiting }: OpenStep): readonly TimedWait[] {
  const timed: TimedWait[] = [];
  for (const { call, waits } of waiting) {
    for (const wait of waits) {
      const { until } = wait;
      if (wait.end === undefined && wait.for !== 'answer' && until !== undefined) timed.push({ call, wait, until });
    }
  }
  return timed;
}

/** The waits in the middle of calls whose time has come, and those that something withdraws which the planner is to hear first. */
export function overWaits(state: RunState, now: number): readonly WaitEnded[] {
  const { open, fresh } = state;
  if (open === null || open.waiting.length === 0) return [];
  const { step } = open.move;
  const isWithdrawn = fresh.some((control) => withdrawsWaits(state, control));
  const over: WaitEnded[] = [];
  for (const { call, waits } of open.waiting) {
    for (const { wait, until = Number.POSITIVE_INFINITY, for: what, end } of waits) {
      if (end !== undefined || what === 'answer') continue;
      const place = { kind: 'wait_ended' as const, step, call, wait };
      if (until <= now) over.push({ ...place, ended: what === 'time' ? 'time' : 'timeout' });
      else if (isWithdrawn) over.push({ ...place, ended: 'superseded' });
    }
  }
  return over;
}

/** What is to be heard before a call has waited to its end. A plan goes on whatever is said to it, but for a new goal. */
function withdrawsWaits({ open, whileAsked }: RunState, control: Control): boolean {
  if (isNewGoal(control)) return true;
  return open !== null && !isPlan(open.move.decision) && withdrawsQuestions(control, whileAsked);
}

/** The next time at which a wait of the run ends by itself. While the run is held, no wait ends. */
export function nextTimeout(state: RunState): number | null {
  const { open, pauses } = state;
  if (pauses.length === 0 && (open === null || !hasTimedWaits(open))) return null;
  const times = pauses.flatMap((pause) => [
    ...(pause.expiresAt === undefined ? [] : [pause.expiresAt]),
    ...timesToTell(pause),
  ]);
  if (open !== null && !isHeld(state)) {
    times.push(...timedWaits(open).map(({ until }) => until));
    times.push(...open.waits.flatMap(({ until }) => until ?? []));
    // While tasks have all the places, the time of the next attempt moves nothing.
    const counts = (one: AwayCall): boolean => isAway(state, open, one, BEFORE_ALL) && !isBlocked(state, one.retryAt);
    times.push(...open.away.flatMap((one) => (counts(one) ? one.retryAt : [])));
  }
  return times.length === 0 ? null : Math.min(...times);
}

// The status of a run, as a journal lists it: for a run that has ended, is driven, or is given back.

export function endedStatus(ending: Pick<Finished, 'kind' | 'reason'> | Pick<Failed, 'kind'>): EndedStatus {
  if (ending.kind === 'failed') return 'failed';
  return ending.reason === 'cancelled' ? 'cancelled' : 'finished';
}

type EndedStatus = 'finished' | 'failed' | 'cancelled';

/** While one call waits, the others go on: a pause of one call makes the run paused only when the run is given back. */
function pausesRun({ call }: Pick<Paused, 'call'>): boolean {
  return call === undefined;
}

/** The status of a run that is driven, with these pauses open. */
export function drivenStatus(pauses: readonly Pick<Paused, 'call'>[]): 'running' | 'paused' {
  return pauses.some(pausesRun) ? 'paused' : 'running';
}

/** The status that the last of these entries leaves the run in, if they change it. */
export function statusAfter(bodies: readonly EntryBody[]): EndedStatus | 'running' | 'paused' | undefined {
  const last = bodies.at(-1);
  if (last?.kind === 'finished' || last?.kind === 'failed') return endedStatus(last);
  if (last?.kind === 'paused') return pausesRun(last) ? 'paused' : undefined;
  return last?.kind === 'resumed' ? 'running' : undefined;
}

/** The status of a run that is given back because this process cannot move it on. */
export function parkedStatus(state: RunState): 'waiting' | 'paused' {
  return isPaused(state) ? 'paused' : 'waiting';
}

/** The status of a run that would end but for calls in doubt. Nothing else that it waits for is needed any more. */
export function unsettledStatus(state: RunState): 'waiting' | 'paused' {
  return state.pauses.length > 0 || pausesOfTasks(state).length > 0 ? 'paused' : 'waiting';
}
