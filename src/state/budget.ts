/** What is left of a run's budget: the limit, without what was used and what is set aside for tasks under way. */
import { type BudgetAxis, branchesOf, type CallEnded, DEFAULT_STEP_LIMIT, isPlanTool, type TaskShare } from '#core';
import { liveIn } from './places.ts';
import { deadlineOf, reserveOn } from './reserve.ts';
import { hasBegun, type OpenStep, type RunState, type TaskState } from './state.ts';

type SumAxis = Exclude<keyof TaskShare, 'deadlineAt'>;

/** Amounts by axis. An absent axis means 0. */
export type Amounts = Pick<TaskShare, SumAxis>;

/** Axes whose limit ends a run. Calls are not among them: a run without calls can still decide. */
const STEP_AXES = ['steps', 'costMicroUsd', 'tokens'] as const;
const STEPS_ALONE = ['steps'] as const;
const AXES: readonly SumAxis[] = [...STEP_AXES, 'calls'];
const NAMES = { steps: 'steps', calls: 'calls', costMicroUsd: 'cost', tokens: 'tokens' } as const;

/** What is left on each axis that has a stated limit, from 0 up. */
export function leftOf(state: RunState): Amounts {
  const left: { [K in SumAxis]?: number } = {};
  for (const axis of AXES) {
    const room = leftOn(state, axis);
    if (room !== undefined) left[axis] = room;
  }
  return left;
}

/** What is left on this axis, from 0 up; `undefined` when it has no limit. */
export function leftOn(state: RunState, axis: SumAxis): number | undefined {
  const limit = limitOn(state, axis);
  if (limit === undefined) return undefined;
  const promised = axis === 'costMicroUsd' ? promisedTo(state) : 0;
  return Math.max(0, limit - spentOn(state, axis) - setAsideFor(state, axis) - promised - reserveOn(state, axis));
}

/** Each is written out: every step asks for several, and to look a name up takes five times as long. */
function limitOn({ limits }: Pick<RunState, 'limits'>, axis: SumAxis): number | undefined {
  switch (axis) {
    case 'steps':
      return limits.steps;
    case 'calls':
      return limits.calls;
    case 'costMicroUsd':
      return limits.costMicroUsd;
    case 'tokens':
      return limits.tokens;
    default:
      return axis satisfies never;
  }
}

/** Money of calls under way. */
function promisedTo({ open }: RunState): number {
  return open === null ? 0 : open.promised.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0);
}

/**
 * Money that is left for this call of the open step, with what is set aside for it; below 0 when more was spent than there was.
 * `undefined`: nothing limits it.
 */
export function moneyFor(state: RunState, call: number): number | undefined {
  const limit = state.limits.costMicroUsd;
  if (limit === undefined) return undefined;
  const own = state.open?.promised.find((promise) => promise.call === call)?.costMicroUsd ?? 0;
  const kept = setAsideFor(state, 'costMicroUsd') + reserveOn(state, 'costMicroUsd');
  return limit - spentOn(state, 'costMicroUsd') - kept - promisedTo(state) + own;
}

/**
 * Whether an ended call counts as a call of a tool: it was started, or had begun before a crash. A call that waits for a task does not
 * count, a task that carries out a call was counted when it started, and nodes of a plan that no tool carries out do not count.
 */
export function countsAsCall(
  { move, began, waits }: OpenStep,
  { call, attempts }: Pick<CallEnded, 'call' | 'attempts'>,
): boolean {
  if (attempts === 0 && !hasBegun({ began }, call)) return false;
  if (waits.some((wait) => wait.call === call)) return false;
  const tool = branchesOf(move.decision)[call]?.tool;
  return tool !== undefined && !isPlanTool(tool);
}

/** The run's own steps that count against its limit: those since the user's last message, unless the limit is for the whole run. */
export function stepsCounted({
  limits,
  totals,
  beforeTurn,
}: Pick<RunState, 'limits' | 'totals' | 'beforeTurn'>): number {
  return limits.stepsPer === 'run' ? totals.steps : totals.steps - beforeTurn.steps;
}

/** The steps of tasks count where the run has a limit of its own for them. */
function spentOn(state: RunState, axis: SumAxis): number {
  const { totals, limits, beforeTurn } = state;
  switch (axis) {
    case 'steps':
      return stepsCounted(state) + totals.taskSteps - (limits.stepsPer === 'run' ? 0 : beforeTurn.taskSteps);
    case 'calls':
      return totals.calls + totals.taskCalls;
    case 'costMicroUsd':
      return totals.costMicroUsd;
    case 'tokens':
      return totals.inputTokens + totals.outputTokens;
    default:
      return axis satisfies never;
  }
}

/** What tasks under way may still use. */
export function setAsideFor({ tasks }: Pick<RunState, 'tasks'>, axis: SumAxis): number {
  return tasks.length === 0 ? 0 : sumOfShares(liveIn(tasks), axis);
}

export function sumOfShares(tasks: readonly Pick<TaskState, 'reserved'>[], axis: SumAxis): number {
  let sum = 0;
  for (const { reserved } of tasks) sum += reserved[axis] ?? 0;
  return sum;
}

/**
 * The first limit that leaves no room for another step, if any; the deadline, which is not a sum, is checked elsewhere.
 * `lent`: tasks under way may give some of it back. `reserve`: what is kept back for a last move is still there.
 * @param costless true: a step itself costs nothing.
 * @param needs the least that a step takes on these axes, where that is known. Default 1.
 */
export function reachedLimit(
  state: RunState,
  costless = false,
  needs: Amounts = {},
):
  | { readonly axis: Exclude<BudgetAxis, 'deadline' | 'calls'>; readonly lent: boolean; readonly reserve?: true }
  | undefined {
  if (state.limits.steps === undefined) {
    const room = DEFAULT_STEP_LIMIT - stepsCounted(state);
    if (room <= 0) return { axis: 'steps', lent: false };
    if (room <= reserveOn(state, 'steps')) return { axis: 'steps', lent: false, reserve: true };
  }
  for (const axis of costless ? STEPS_ALONE : STEP_AXES) {
    const limit = limitOn(state, axis);
    if (limit === undefined) continue;
    const least = needs[axis] ?? 1;
    const room = limit - spentOn(state, axis);
    const free = room - reserveOn(state, axis);
    if (room <= 0) return { axis: NAMES[axis], lent: false };
    if (free < least) return { axis: NAMES[axis], lent: false, reserve: true };
    if (free - setAsideFor(state, axis) < least) return { axis: NAMES[axis], lent: true };
  }
  return undefined;
}

/** An axis of which tasks have shares. */
export type ShareAxis = Exclude<BudgetAxis, 'deadline'>;

/** The share of what is left that a task gets on an axis that it does not ask for. */
export type Split = (room: number, axis: SumAxis) => number;

const half: Split = (room) => Math.ceil(room / 2);

/**
 * The share of a task of this run: what the task asks for, as far as it is left, and by default half of what is left on each
 * limited axis; or the axis on which nothing is left.
 * @param taken what calls under way take that the state does not count yet.
 */
export function shareFor(
  state: RunState,
  asked: TaskShare = {},
  taken: Amounts = {},
  split: Split = half,
): { readonly limits: TaskShare; readonly reserved: TaskShare } | { readonly lacks: ShareAxis } {
  const left = leftOf(state);
  const limits: { -readonly [K in keyof TaskShare]: TaskShare[K] } = { ...asked };
  const reserved: { -readonly [K in keyof TaskShare]: TaskShare[K] } = {};
  for (const axis of AXES) {
    if (left[axis] === undefined) continue;
    const room = left[axis] - (taken[axis] ?? 0);
    const share = Math.min(asked[axis] ?? split(room, axis), room);
    if (share <= 0) return { lacks: NAMES[axis] };
    limits[axis] = share;
    reserved[axis] = share;
  }
  const deadlines = [asked.deadlineAt, deadlineOf(state)].filter((time) => time !== undefined);
  if (deadlines.length > 0) limits.deadlineAt = Math.min(...deadlines);
  return { limits, reserved };
}
