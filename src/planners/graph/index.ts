export type { PlanHow } from './branches.ts';
export { branchesOfPlan, planDecision } from './branches.ts';
export type { CheckedPlan, PlanRules } from './check-plan.ts';
export { checkPlan, PLAN_SCHEMA } from './check-plan.ts';
export type { GraphOptions, PlanFunction } from './graph.ts';
export { graph } from './graph.ts';
export type { PlanSource } from './normalise.ts';
export { plannerState, toYields } from './normalise.ts';
export type { PlanNode } from './outcome.ts';
export { finishOfPlan, lastPlan, planNodes } from './outcome.ts';
export type {
  Plan,
  PlanMaker,
  PlannerState,
  PlanStep,
  PlanStepType,
  PlanYield,
  ReadyPlan,
  ReadyStep,
  StreamingPlanMaker,
} from './plan.ts';
export { policyFaults } from './policy.ts';
