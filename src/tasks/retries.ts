/** Which calls of a plan that has failed are carried out once more, and which of the tasks behind them go on from where they were. */
import { type BudgetAxis, type Entry, PilotageError, type Retries, type Step } from '#core';
import type { Journal } from '#journal';
import {
  begunBefore,
  callsToRetry,
  cannotRetry,
  failedPlan,
  leftOn,
  onceBegun,
  type RunState,
  restOf,
  type TaskState,
} from '#state';

/**
 * What of the run's failed plan is carried out once more.
 * @throws PilotageError `payload_invalid`, `budget_exceeded`.
 */
export async function retriesOf(
  journal: Pick<Journal, 'get'>,
  state: RunState,
  nodes: readonly string[] | undefined,
  entries: readonly Entry[],
): Promise<Retries> {
  const plan = failedPlan(state);
  if (plan === undefined) throw cannotRetry('the last step of the run is not a plan of which a node has failed');
  const calls = callsToRetry(plan, nodes);
  const begun = begunBefore(plan, calls, onceBegun(entries, plan.index));
  const tasks = await tasksOf(journal, state, plan, calls);
  return {
    step: plan.index,
    calls,
    ...(begun.length === 0 ? {} : { begun }),
    ...(tasks.length === 0 ? {} : { tasks }),
  };
}

/** The tasks that carry out these calls and have failed: each goes on from where it was. In place of a task that ended otherwise another is started. */
async function tasksOf(
  journal: Pick<Journal, 'get'>,
  state: RunState,
  plan: Step,
  calls: readonly number[],
): Promise<readonly string[]> {
  const going: TaskState[] = [];
  for (const call of calls) {
    const task = state.tasks.findLast((one) => one.step === plan.index && one.call === call && one.agentCall === true);
    // What has undone its calls cannot go on.
    if (task?.end?.error?.data?.['undo'] !== undefined) continue;
    if (task?.end?.status !== 'failed' || (await journal.get(task.id))?.status !== 'failed') continue;
    going.push(task);
  }
  assertRoom(state, going);
  return going.map(({ id }) => id);
}

const AXES = { steps: 'steps', calls: 'calls', costMicroUsd: 'cost', tokens: 'tokens' } as const;

/** What the tasks may still use was free since they failed, and others may have used it. */
function assertRoom(state: RunState, tasks: readonly TaskState[]): void {
  for (const axis of Object.keys(AXES) as (keyof typeof AXES)[]) {
    const left = leftOn(state, axis);
    const asked = tasks.reduce((sum, task) => sum + (restOf(task)[axis] ?? 0), 0);
    if (left === undefined || asked <= left) continue;
    const name: BudgetAxis = AXES[axis];
    throw new PilotageError(
      'budget_exceeded',
      `Nothing was retried: the tasks of the nodes may still use ${asked} on the axis ${name}, and the run has ${left} left. Fork the run with higher limits.`,
      { data: { axis: name } },
    );
  }
}
