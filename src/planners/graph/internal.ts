/** What the other rooms and the tests may use of `planners/graph`. */
export { branchOfStep, isAnew, planDecision } from './branches.ts';
export type { PlanRules } from './check-plan.ts';
export { checkPlan, planInvalid } from './check-plan.ts';
export { fault, readGivenPlan } from './given-plan.ts';
export type { GraphOptions } from './graph.ts';
export { graph } from './graph.ts';
export { stepMove } from './moves.ts';
export { plannerState, toYields } from './normalise.ts';
export type { PlanNode } from './outcome.ts';
export {
  earlierPlaces,
  finishOfPlan,
  freshPlanId,
  lastPlan,
  placesOf,
  planIdOf,
  planNodes,
  undoneNodes,
} from './outcome.ts';
export type { Placeable, StepPlace } from './placement.ts';
export { isLooseFinish, Placement } from './placement.ts';
export type { Plan, PlannerState, PlanStep, PlanYield, ReadyPlan, ReadyStep } from './plan.ts';
export { PLAN_SCHEMA, STEP_TYPES } from './plan-schema.ts';
export { policyFaults } from './policy.ts';
export { boundToEarlier, knownArgs, wholeArgs } from './references.ts';
