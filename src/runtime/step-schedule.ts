/** Between a run's state and the schedule of its open step: what the state tells the schedule, and what the schedule records. */
import type { Branch, CallParallel } from '../core/decision.ts';
import type { CallEnded } from '../core/entry.ts';
import type { Outcome } from '../core/outcome.ts';
import { type OpenStep, presentName, type RunState } from '../view/state.ts';
import { isRedirected, parkedCalls } from '../view/waits.ts';
import { type Ended, Schedule } from './schedule.ts';
import type { Landing } from './spawn.ts';

/** The call as it is carried out today: recorded calls may know their tools under older names. */
export function renamed<T extends { readonly tool: string }>(state: RunState, call: T): T {
  const tool = presentName(state, call.tool);
  return tool === call.tool ? call : { ...call, tool };
}

/** A schedule of the step as it stands: at its beginning, or after a crash with all that was recorded before. */
export function scheduleOf(state: RunState, open: OpenStep, decision: CallParallel): Schedule {
  const schedule = new Schedule(decision);
  // Of a task that has ended since, a call is to have the result before others begin.
  const parked = new Set([...parkedCalls(state, open), ...open.waits.map(({ call }) => call)]);
  if (isRedirected(state)) schedule.redirect([...open.began, ...parked]);
  schedule.grow(branchesFrom(0, decision, state), open.calls);
  for (const call of parked) schedule.park(call);
  return schedule;
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
  if (schedule.size < decision.branches.length) schedule.grow(branchesFrom(schedule.size, decision, state), calls);
  const newEnds = (among: Iterable<number>): Ended[] => {
    const ends: Ended[] = [];
    for (const call of among) {
      const outcome = schedule.hasEnded(call) ? undefined : calls[call]?.outcome;
      if (outcome !== undefined) ends.push({ call, outcome });
    }
    return ends;
  };
  let ends = newEnds(returned);
  const stillOpen = pending - (move.growing === true ? 1 : 0);
  // Some end in other ways than by landing: somebody rejected them, or took them out of the plan.
  if (schedule.open - ends.length !== stillOpen) ends = newEnds(calls.keys());
  schedule.ended(ends);
  for (const call of returned) if (!schedule.hasEnded(call)) schedule.park(call);
  if (!schedule.isMet && isRedirected(state)) schedule.redirect(open.began);
}

/**
 * Lets those parked calls go on whose waiting is over.
 * @returns those that have waited for a task, and are to have what that came to at once; they are parked still.
 */
export function unpark(schedule: Schedule, state: RunState, open: OpenStep, now: number): readonly number[] {
  if (schedule.parked.size === 0) return [];
  const parked = parkedCalls(state, open, now);
  const over = [...schedule.parked].filter((call) => !parked.has(call));
  const waits = new Set(open.waits.map(({ call }) => call));
  for (const call of over) if (!waits.has(call)) schedule.unpark(call);
  return over.filter((call) => waits.has(call));
}

/** What becomes of calls that will never run, or that nobody waits for any more; tasks that carry them out are to stop. */
export function settling(open: OpenStep, settled: readonly Ended[]): Landing {
  const entries = settled.map((ended) => settledEntry(open, ended));
  const isSettled = new Set(settled.map(({ call }) => call));
  const carried = open.waits.filter(({ call, called }) => called !== undefined && isSettled.has(call));
  return carried.length === 0 ? { entries } : { entries, stops: carried.map(({ task }) => task) };
}

/** A call that was begun before a crash may have happened, although nothing waits for it any more. */
function settledEntry({ move: { step }, began }: OpenStep, { call, outcome }: Ended): CallEnded {
  const known = began.includes(call) ? MAY_HAVE_HAPPENED : outcome;
  return { kind: 'call_ended', step, call, outcome: known, attempts: 0 };
}

const MAY_HAVE_HAPPENED: Outcome = {
  kind: 'unknown',
  error: {
    code: 'outcome_unknown',
    message: 'It was started before a crash and may have happened; the join had what it needed without it.',
  },
};
