/** The pause that asks for a higher limit: because one is used up, or because the next call does not fit what is left. */
import { type BudgetAxis, DEFAULT_STEP_LIMIT, type JsonObject, type Limits, type Paused, usdOf } from '#core';
import type { RunState } from '#state';

/** A call that does not fit. Money is in millionths of a dollar. */
export interface Lacking {
  readonly axis: Exclude<BudgetAxis, 'deadline'>;
  readonly tool: string;
  /** What it takes on that axis. */
  readonly needs: number;
  /** What is left for it, beside calls under way and tasks. */
  readonly left: number;
}

const LIMIT_OF = {
  steps: 'steps',
  calls: 'calls',
  cost: 'costUsd',
  tokens: 'tokens',
  deadline: 'deadlineAt',
} as const satisfies Record<BudgetAxis, keyof Limits>;

/** The limits of a task cannot be raised, since its owner has reserved them: a call that does not fit is refused there. */
export function asksForRaise({ limits, task }: Pick<RunState, 'limits' | 'task'>): boolean {
  return limits.onCeiling === 'pause' && task === null;
}

/** The run is held as a whole: what is under way may end, nothing else is started. `lacking`: the call that does not fit. */
export function askForRaise(state: RunState, axis: BudgetAxis, token: string, lacking?: Lacking): Paused {
  const { limit, used } = amountsOf(state, axis);
  const payload: JsonObject = {
    budget: axis,
    limit: limit === undefined ? null : shown(axis, limit),
    used: used === undefined ? null : shown(axis, used),
    ...(lacking && told(lacking, limit ?? 0)),
  };
  return { kind: 'paused', token, reason: 'constraints_conflict', payload };
}

/** `raise`: the least limit with which the call is made. */
function told({ axis, tool, needs, left }: Lacking, limit: number): JsonObject {
  const raise = { [LIMIT_OF[axis]]: shown(axis, limit - left + needs) };
  return { tool, needs: shown(axis, needs), left: shown(axis, left), raise };
}

/** Money in dollars, as people write it. */
function shown(axis: BudgetAxis, amount: number): number {
  return axis === 'cost' ? usdOf(amount) : amount;
}

interface RunAmounts {
  readonly limit: number | undefined;
  readonly used?: number;
}

/** The limit and the usage on an axis, in the units that a run records. */
function amountsOf({ totals, limits }: RunState, axis: BudgetAxis): RunAmounts {
  switch (axis) {
    case 'steps':
      return { limit: limits.steps ?? DEFAULT_STEP_LIMIT, used: totals.steps };
    case 'calls':
      return { limit: limits.calls, used: totals.calls + totals.taskCalls };
    case 'cost':
      return { limit: limits.costMicroUsd, used: totals.costMicroUsd };
    case 'tokens':
      return { limit: limits.tokens, used: totals.inputTokens + totals.outputTokens };
    case 'deadline':
      return { limit: limits.deadlineAt };
    default:
      return axis satisfies never;
  }
}
