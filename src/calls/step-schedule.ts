/** Between a run's state and the schedule of its open step: what the state tells the schedule, and what the schedule records. */
import { type Branch, branchesOf, branchId, type CallParallel, type CallResult, callEnded } from '#core';
import {
  awayCall,
  halfDone,
  hasBegun,
  hasNewGoal,
  isInDoubt,
  isRedirected,
  type OpenStep,
  parkedCalls,
  presentName,
  type RunState,
  waitingCall,
} from '#state';
import type { Landing } from '../tasks/spawn.ts';
import { type Ended, Schedule } from './schedule.ts';

/** The call as it is carried out today: recorded calls may know their tools under older names. */
export function renamed<T extends { readonly tool: string }>(state: RunState, call: T): T {
  const tool = presentName(state, call.tool);
  return tool === call.tool ? call : { ...call, tool };
}

/** The tools that whoever decided was shown, by their names of today; `undefined` when they were all. */
export function offeredNow(state: RunState, { move }: OpenStep): readonly string[] | undefined {
  return move.offered?.map((name) => presentName(state, name));
}

/** A schedule of the step as it stands: at its beginning, or after a crash with all that was recorded before. */
export function scheduleOf(state: RunState, open: OpenStep, decision: CallParallel): Schedule {
  const schedule = new Schedule(decision, open.move.atOnce);
  // A call gets the result of a task that has ended since before other calls begin.
  const waiting = [...open.waits, ...open.away].map(({ call }) => call);
  const parked = new Set([...parkedCalls(state, open), ...waiting.filter((call) => open.calls[call] === null)]);
  schedule.spare([...mayHaveHappened(open), ...agentCallsOf(open)]);
  if (isRedirected(state)) schedule.redirect([...begunOf(open), ...parked]);
  schedule.grow(branchesFrom(0, decision, state), open.calls);
  for (const call of parked) schedule.park(call);
  return schedule;
}

/** Also those that wait in the middle of their work. */
function begunOf({ began, waiting }: OpenStep): readonly number[] {
  return [...began, ...waiting].map(({ call }) => call);
}

/** Calls whose outcomes must be found out, whatever else the step needs. */
function mayHaveHappened({ began }: OpenStep): readonly number[] {
  return began.flatMap(({ call, once }) => (once ? [call] : []));
}

/** Tasks carry these out, and each may have a call in doubt. */
function agentCallsOf({ waits }: OpenStep): readonly number[] {
  return waits.flatMap(({ call, agentCall }) => (agentCall === undefined ? [] : [call]));
}

/** The call as it is carried out today. */
export function branchAt(state: RunState, { move }: OpenStep, call: number): Branch {
  return renamed(state, branchesOf(move.decision)[call] as Branch);
}

/** Where the branch of this id stands in the step, of which there may be no schedule. */
export function placeOf({ move }: OpenStep, id: string): number | undefined {
  const place = branchesOf(move.decision).findIndex((branch, call) => branchId(branch, call) === id);
  return place === -1 ? undefined : place;
}

/** A task carries it out. */
export function isAgentCall({ waits }: OpenStep, call: number): boolean {
  return waits.some((wait) => wait.call === call && wait.agentCall !== undefined);
}

function branchesFrom(first: number, { branches }: CallParallel, state: RunState): readonly Branch[] {
  return branches.slice(first).map((branch) => renamed(state, branch));
}

/**
 * Tells the schedule what has become of the step since the last time.
 * @param returned the calls that have landed since, and are recorded.
 */
export function tellSchedule(
  schedule: Schedule,
  state: RunState,
  open: OpenStep,
  decision: CallParallel,
  returned: readonly number[],
): void {
  const { calls, pending, move } = open;
  const known = schedule.size;
  const newEnds = (among: Iterable<number>): Ended[] => {
    const ends: Ended[] = [];
    for (const call of among) {
      const outcome = schedule.hasEnded(call) ? undefined : calls[call]?.outcome;
      if (outcome !== undefined) ends.push({ call, outcome });
    }
    return ends;
  };
  let ends = newEnds(returned);
  const fresh = calls.slice(known).filter((record) => record === null).length;
  const stillOpen = pending - fresh - (move.growing === true ? 1 : 0);
  // Some end in other ways than by landing: somebody rejected them, or took them out of the plan.
  if (schedule.open - ends.length !== stillOpen) ends = newEnds(calls.slice(0, known).keys());
  schedule.ended(ends);
  // What has ended is told first: of what is added, a schedule that is closed settles all at once, and its count is not the state's any more.
  if (known < decision.branches.length) schedule.grow(branchesFrom(known, decision, state), calls);
  for (const call of returned) {
    if (schedule.hasEnded(call)) continue;
    // What has begun and has no outcome was in doubt, also when whoever answered that has asked for another look by now.
    if (isInDoubt(state, call) || hasBegun(open, call) || isAgentCall(open, call)) schedule.spare([call]);
    else if (waitingCall(open, call)?.isParked === true) schedule.spareNoMore(call);
    schedule.park(call);
  }
  if (!schedule.isMet && isRedirected(state)) schedule.redirect(begunOf(open));
}

/**
 * Lets those parked calls go on whose waiting is over.
 * @param unasked calls that do not fit the budget, and are to wait until others have ended.
 * @returns the calls that go on at once in any case; they are still blocked. They have waited for a task, and get
 * what that came to, were in doubt, and are looked up again, or are not tried again, and get what they came to.
 */
export function unpark(
  schedule: Schedule,
  state: RunState,
  open: OpenStep,
  now: number,
  unasked: ReadonlySet<number>,
): readonly number[] {
  // A plan that is given up for a new goal hears its calls out that have begun: what they waited for was withdrawn, and they end.
  const heardOut = isRedirected(state) && !schedule.isMet ? open.waiting : [];
  // Also one that had its answer before, and took its turn behind others.
  for (const { call } of heardOut) if (schedule.isReady(call)) schedule.park(call);
  if (schedule.parked.size === 0) return [];
  const parked = parkedCalls(state, open, now);
  const over = [...schedule.parked].filter((call) => !parked.has(call) && !unasked.has(call));
  if (over.length === 0) return over;
  const givenUp = hasNewGoal(state) ? open.away : [];
  const atOnce = new Set([
    ...[...open.waits, ...givenUp, ...heardOut].map(({ call }) => call),
    ...mayHaveHappened(open),
  ]);
  for (const call of over) if (!atOnce.has(call)) schedule.unpark(call);
  return over.filter((call) => atOnce.has(call));
}

/**
 * The outcomes of calls that will never run, or that nobody waits for any more. A call that a dead process began counts as an
 * attempt.
 */
export function settling(open: OpenStep, settled: readonly Ended[]): Landing {
  const { step } = open.move;
  const attemptsOf = (call: number): number =>
    awayCall(open, call)?.attempts ?? (hasBegun(open, call) || waitingCall(open, call) !== undefined ? 1 : 0);
  const endOf = ({ call, outcome }: Ended): CallResult => {
    const made = halfDone(open, call);
    return made === undefined ? { outcome, attempts: attemptsOf(call) } : { outcome: made, attempts: 1 };
  };
  return {
    entries: settled.map((end) => callEnded({ step, call: end.call }, endOf(end))),
  };
}
