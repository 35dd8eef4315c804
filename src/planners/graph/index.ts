/** `pilotage/planners/graph`: the planner of given plans, and what a planner of one's own needs to make plans. */
export type {
  CheckedPlan,
  Plan,
  PlanHow,
  PlanMaker,
  PlanNode,
  PlannerState,
  PlanRules,
  PlanSource,
  PlanStep,
  PlanStepType,
  PlanYield,
  ReadyPlan,
  ReadyStep,
  StreamingPlanMaker,
} from '#plans';
export {
  branchesOfPlan,
  checkPlan,
  finishOfPlan,
  lastPlan,
  PLAN_SCHEMA,
  planDecision,
  planNodes,
  plannerState,
  policyFaults,
  toYields,
} from '#plans';
export type { GraphOptions, PlanFunction } from './graph.ts';
export { graph } from './graph.ts';
