/** Where a run stands with its plans, read off its trajectory: nothing is kept beside it. */
import {
  type ErrorData,
  FINISH_TOOL,
  type Finish,
  type PilotageError,
  type PlanFault,
  type RunView,
  type SteeringTurn,
  type Step,
  type Trajectory,
} from '#core';
import {
  finishOfNodes,
  finishOfPlan,
  notesOf,
  type PlanNode,
  planFailed,
  planIdOf,
  planNodes,
  undoneNodes,
  wasInterrupted,
} from '#plans';

export type Phase =
  /** A plan is to be made: the first for the goal, or one for what is left of it. */
  | { readonly kind: 'plan'; readonly work: GoalProgress }
  | { readonly kind: 'finish'; readonly decision: Finish }
  /** The last plan did not come to its end, and was planned again as often as it may be. */
  | {
      readonly kind: 'spent';
      readonly decision: Finish;
      readonly faults: readonly PlanFault[];
      /** Set when nodes of it have failed. */
      readonly failed: PilotageError | undefined;
    }
  /** The fallback planner has taken over. */
  | { readonly kind: 'fallback' };

/** What was done for the present goal. */
export interface GoalProgress {
  /** How many plans came before this plan. */
  readonly plans: number;
  /** By id, the steps that have ended with a value. */
  readonly done: ReadonlyMap<string, PlanNode>;
  /** Steps of the last plan that are still to be done, in one way or another. */
  readonly unfinished: readonly PlanNode[];
  /** The first step of the run that was taken for this goal. */
  readonly from: number;
}

/** @param replans how often the rest of a plan may be planned again. @param fallback the name of the planner that takes over. */
export function phaseOf(run: RunView, replans: number, fallback: string | undefined): Phase {
  const { trajectory } = run;
  const from = goalBegan(trajectory);
  const last = trajectory.step(trajectory.count - 1);
  if (last !== undefined && last.index >= from && fallback !== undefined) {
    if (last.provenance?.['fallback'] === fallback) return { kind: 'fallback' };
  }
  const plans = plansFrom(trajectory, from);
  const plan = plans.at(-1);
  if (plan === undefined) return { kind: 'plan', work: { plans: 0, done: new Map(), unfinished: [], from } };
  const nodes = planNodes(plan);
  const unfinished = undoneNodes(nodes);
  const done = doneIn(plans);
  const work = { plans: plans.length, done, unfinished, from };
  const isDone = nodes.some(isFinish) || (unfinished.length === 0 && plan.error === undefined);
  if (isDone) {
    // What was said since may change what is wanted.
    if (spokenBetween(trajectory.steering, plan.index, trajectory.count)) return { kind: 'plan', work };
    return { kind: 'finish', decision: finishOfPlan(plan, [...doneIn(plans.slice(0, -1)).values()]) };
  }
  if (replansUsed(plans, trajectory.steering) < replans || wasInterrupted(plan)) {
    return { kind: 'plan', work };
  }
  const notes = notesOf(plan);
  const failed = planFailed([...done.values(), ...nodes], notes);
  return { kind: 'spent', decision: finishOfNodes(nodes, notes), faults: faultsOf(plan, unfinished), failed };
}

/** The step from which on the present goal was worked for. */
function goalBegan({ steering }: Trajectory): number {
  return steering.findLast(({ control }) => control.type === 'REDIRECT')?.atStep ?? 0;
}

function plansFrom(trajectory: Trajectory, from: number): readonly Step[] {
  const plans: Step[] = [];
  for (let index = from; index < trajectory.count; index += 1) {
    const step = trajectory.step(index);
    if (step !== undefined && planIdOf(step) !== undefined) plans.push(step);
  }
  return plans;
}

/** Plans after the first that were made because the one before had failed, and not for a crash or for a user's words. */
function replansUsed(plans: readonly Step[], steering: readonly SteeringTurn[]): number {
  return plans.slice(1).filter((plan, index) => {
    const before = plans[index] as Step;
    return !wasInterrupted(before) && !spokenBetween(steering, before.index, plan.index);
  }).length;
}

function spokenBetween(steering: readonly SteeringTurn[], after: number, upTo: number): boolean {
  return steering.some(({ atStep, control }) => control.type === 'USER_MESSAGE' && atStep > after && atStep <= upTo);
}

function isFinish({ status, branch }: PlanNode): boolean {
  return status === 'done' && branch.tool === FINISH_TOOL;
}

/** The steps of these plans that ended with a value. The end of a plan is not a result. */
function doneIn(plans: readonly Step[]): ReadonlyMap<string, PlanNode> {
  const done = plans
    .flatMap(planNodes)
    .filter(({ status, branch }) => status === 'done' && branch.tool !== FINISH_TOOL);
  return new Map(done.map((node) => [node.id, node]));
}

function faultsOf(plan: Step, unfinished: readonly PlanNode[]): readonly PlanFault[] {
  const own = plan.error === undefined ? [] : [{ code: plan.error.code, message: plan.error.message }];
  return [...own, ...unfinished.flatMap(({ id, status, error }) => (status === 'skipped' ? [] : [faultOf(id, error)]))];
}

function faultOf(step: string, error: ErrorData | undefined): PlanFault {
  return { code: error?.code ?? 'step_failed', message: error?.message ?? 'The step failed.', step };
}
