/** What the other rooms and the tests may use of `planners/htn`. */
export type { HtnDomain, HtnTask, Method } from './domain.ts';
export { htnDomain } from './domain.ts';
export type { HddlPlanning } from './hddl/read.ts';
export { readHddl } from './hddl/read.ts';
export type { HtnOptions } from './htn.ts';
export { htn } from './htn.ts';
export type { ChooseMethod, FillLeaf } from './questions.ts';
export type { HtnResult, SearchOptions } from './search.ts';
export { findPlan } from './search.ts';
export type { HTNNode, HTNPlanner } from './seed-contract.ts';
export { fromHtnPlanner } from './seed-contract.ts';
export type { HtnState, HtnTables } from './state.ts';
export { htnState } from './state.ts';
export type { HtnTrace } from './trace.ts';
export { traceOfStep, traceText } from './trace.ts';
export type { HtnStep } from './work.ts';
