/** What the other rooms and the tests may use of `planners/pipeline`. */

export type { MeasuresFailure, MeasuresStore } from './measures.ts';
export { fileMeasures, keepMeasures } from './measures.ts';
export type { PlanMetricsRow } from './metrics.ts';
export { planMetrics } from './metrics.ts';
export type { PipelineOptions, ScorePlans, Verifier } from './options.ts';
export { pipeline } from './pipeline.ts';
export { PlanDraft } from './plan-draft.ts';
export { planVariables } from './prompt.ts';
export type { PromptAudit, PromptStore } from './prompt-store.ts';
export { promptStore } from './prompt-store.ts';
export { type PlanLine, PlanLines, type PlanReply, type ReadPlan, readPlan } from './read-plan.ts';
export { type PlanForm, planRequest } from './request.ts';
export type { Retrieved, Retriever } from './retrieve.ts';
export { retrieveFor } from './retrieve.ts';
