/** What the other rooms and the tests may use of `planners/pipeline`. */
export { GrowingPlan } from './growing-plan.ts';
export type { MeasuresFailure, MeasuresStore } from './measures.ts';
export { fileMeasures, keepMeasures } from './measures.ts';
export type { PlanMetricsRow } from './metrics.ts';
export { planMetrics } from './metrics.ts';
export type { PipelineOptions, ScorePlans, Verifier } from './options.ts';
export { pipeline } from './pipeline.ts';
export type { PromptAudit, PromptStore } from './prompt-store.ts';
export { promptStore } from './prompt-store.ts';
export type { PlanReply, ReadPlan } from './read-plan.ts';
export { readPlan } from './read-plan.ts';
export type { PlanLine } from './read-plan-lines.ts';
export { PlanLines } from './read-plan-lines.ts';
export type { PlanForm } from './request.ts';
export { planRequest } from './request.ts';
export type { Retrieved, Retriever } from './retrieve.ts';
export { retrieveFor } from './retrieve.ts';
export { planVariables } from './template-variables.ts';
