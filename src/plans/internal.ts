/** What the other rooms and the tests may use of `plans`. */
export type { CheckedPlan, PlanRules } from './check-plan.ts';
export { checkPlan, faultsAsJson, MAX_PLAN_STEPS, planInvalid, stepsInOrder } from './check-plan.ts';
export { fault, namedBy, readGivenPlan } from './given-plan.ts';
export type { Placeable, StepPlace } from './links.ts';
export { isLooseFinish, Placement } from './links.ts';
export type { PlanMaker, PlannerState, PlanSource, PlanYield, StreamingPlanMaker } from './maker.ts';
export { isStep, isStream, plannerState, toYields } from './maker.ts';
export type { MoveRules, PlanHow } from './moves.ts';
export { branchesOfPlan, branchOfStep, isAnew, planDecision, planMove, policyFaults, stepMove } from './moves.ts';
export {
  boundToEarlier,
  earlierPlaces,
  endOfNodes,
  finishOfNodes,
  finishOfPlan,
  freshPlanId,
  knownArgs,
  lastPlan,
  notesOf,
  type PlanNode,
  placesOf,
  planFailed,
  planIdOf,
  planNodes,
  type ResultLocation,
  undoneNodes,
  wasInterrupted,
  wasRedirected,
  wholeArgs,
} from './outcome.ts';
export type { Plan, PlanStep, PlanStepType, ReadyPlan, ReadyStep } from './plan.ts';
export { PLAN_SCHEMA, STEP_TYPES } from './plan.ts';
