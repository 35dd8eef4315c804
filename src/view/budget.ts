/** What is left of a run's budget: the limit, without what was used and what is set aside for tasks under way. */
import type { TaskLimits } from '../core/decision.ts';
import { type BudgetAxis, DEFAULT_STEP_LIMIT } from '../core/limits.ts';
import type { RunState } from './state.ts';

type SumAxis = Exclude<keyof TaskLimits, 'deadlineAt'>;

const AXES: readonly SumAxis[] = ['steps', 'costMicroUsd', 'tokens'];
const NAMES: Readonly<Record<SumAxis, Exclude<BudgetAxis, 'deadline'>>> = {
  steps: 'steps',
  costMicroUsd: 'cost',
  tokens: 'tokens',
};

/** What is left on each axis that has a stated limit, from 0 up. */
export function leftOf(state: RunState): Pick<TaskLimits, SumAxis> {
  const left: { [K in SumAxis]?: number } = {};
  for (const axis of AXES) {
    const limit = state.limits[axis];
    if (limit === undefined) continue;
    const promised = axis === 'costMicroUsd' ? promisedTo(state) : 0;
    left[axis] = Math.max(0, limit - spentOn(state, axis) - setAsideFor(state, axis) - promised);
  }
  return left;
}

/** Money of calls under way. */
function promisedTo({ open }: RunState): number {
  return open === null ? 0 : open.promised.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0);
}

/** The steps of tasks count where the run has a limit of its own for them. */
function spentOn({ totals }: RunState, axis: SumAxis): number {
  switch (axis) {
    case 'steps':
      return totals.steps + totals.taskSteps;
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
  let sum = 0;
  for (const { end, reserved } of tasks) if (end === undefined) sum += reserved[axis] ?? 0;
  return sum;
}

/**
 * The first limit that leaves no room for another step, if any; the deadline, which is no sum, is looked at elsewhere.
 * `lent`: tasks under way may give some of it back.
 */
export function reachedLimit(
  state: RunState,
): { readonly axis: Exclude<BudgetAxis, 'deadline'>; readonly lent: boolean } | undefined {
  if (state.limits.steps === undefined && state.totals.steps >= DEFAULT_STEP_LIMIT) {
    return { axis: 'steps', lent: false };
  }
  for (const axis of AXES) {
    const limit = state.limits[axis];
    if (limit === undefined) continue;
    const room = limit - spentOn(state, axis);
    if (room <= 0) return { axis: NAMES[axis], lent: false };
    if (room - setAsideFor(state, axis) <= 0) return { axis: NAMES[axis], lent: true };
  }
  return undefined;
}

/**
 * What a task of this run gets: what it asks for as far as it is there, by default half of what is left on each limited
 * axis. `undefined`: nothing is left on one of them.
 * @param taken money that calls under way have been promised.
 */
export function shareFor(
  state: RunState,
  asked: TaskLimits = {},
  taken = 0,
): { readonly limits: TaskLimits; readonly reserved: TaskLimits } | undefined {
  const left = leftOf(state);
  const limits: { -readonly [K in keyof TaskLimits]: TaskLimits[K] } = { ...asked };
  const reserved: { -readonly [K in keyof TaskLimits]: TaskLimits[K] } = {};
  for (const axis of AXES) {
    if (left[axis] === undefined) continue;
    const room = left[axis] - (axis === 'costMicroUsd' ? taken : 0);
    const share = Math.min(asked[axis] ?? Math.ceil(room / 2), room);
    if (share <= 0) return undefined;
    limits[axis] = share;
    reserved[axis] = share;
  }
  const deadlines = [asked.deadlineAt, state.limits.deadlineAt].filter((time) => time !== undefined);
  if (deadlines.length > 0) limits.deadlineAt = Math.min(...deadlines);
  return { limits, reserved };
}
