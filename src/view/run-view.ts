/** What a planner sees of a run: a fresh frozen object for each step over the state's own frozen parts. */

import type { Compaction } from '../core/compaction.ts';
import type { LoadedInput } from '../core/context.ts';
import { DEFAULT_STEP_LIMIT } from '../core/limits.ts';
import type { BudgetView, RunView, SteeringTurn, Trajectory } from '../core/planner.ts';
import type { Step } from '../core/step.ts';
import type { ToolView } from '../core/tool-schema.ts';
import type { RunState } from './run-state.ts';

const NO_INPUTS: readonly LoadedInput[] = Object.freeze([]);

/** @param inputs the attachments of the query, with their bytes; they are not part of the state. */
export function viewOf(
  state: RunState,
  tools: ToolView,
  streaming: boolean,
  inputs: readonly LoadedInput[] = NO_INPUTS,
): RunView {
  return Object.freeze({
    identity: state.identity,
    query: state.query,
    goal: state.goal,
    history: state.history,
    context: state.context,
    inputs,
    trajectory: new StepsSoFar(state.steps, state.steering, state.compaction),
    controls: state.fresh,
    tools,
    budget: budgetOf(state),
    startedAt: state.startedAt,
    rejections: state.rejections,
    tasks: false,
    streaming,
  });
}

function budgetOf({ limits, totals }: RunState): BudgetView {
  const { deadlineAt, costMicroUsd, tokens } = limits;
  const budget: { -readonly [K in keyof BudgetView]: BudgetView[K] } = {
    stepsLeft: Math.max(0, (limits.steps ?? DEFAULT_STEP_LIMIT) - totals.steps),
    costMicroUsdSpent: totals.costMicroUsd,
  };
  if (deadlineAt !== undefined) budget.deadlineAt = deadlineAt;
  if (costMicroUsd !== undefined) budget.costMicroUsdLeft = Math.max(0, costMicroUsd - totals.costMicroUsd);
  if (tokens !== undefined) budget.tokensLeft = Math.max(0, tokens - totals.inputTokens - totals.outputTokens);
  return Object.freeze(budget);
}

/** The first `count` steps of a list that only grows: no copy a step, and later steps stay out of sight. */
class StepsSoFar implements Trajectory {
  readonly count: number;
  readonly steering: readonly SteeringTurn[];
  declare readonly compaction?: Compaction;
  readonly #steps: readonly Step[];

  constructor(steps: readonly Step[], steering: readonly SteeringTurn[], compaction: Compaction | null) {
    this.#steps = steps;
    this.count = steps.length;
    this.steering = steering;
    if (compaction !== null) this.compaction = compaction;
    Object.freeze(this);
  }

  step(index: number): Step | undefined {
    return index < this.count ? this.#steps[index] : undefined;
  }

  get steps(): readonly Step[] {
    return Object.freeze(this.#steps.slice(0, this.count));
  }
}
