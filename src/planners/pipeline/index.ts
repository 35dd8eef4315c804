/** `pilotage/planners/pipeline` */

export type { RedactRule } from '#core';
export { redactor } from '#core';
export { fileMeasures, type MeasuresStore } from './measures.ts';
export { type PlanMetrics, type PlanMetricsRow, planMetrics } from './metrics.ts';
export type { PipelineOptions, ScorePlans, Verifier } from './options.ts';
export { pipeline } from './pipeline.ts';
export {
  type PromptAudit,
  type PromptStore,
  type PromptStoreOptions,
  promptStore,
  type RenderedPrompt,
  type TemplatePolicy,
} from './prompt-store.ts';
export type { RetrievedDocument, Retriever } from './retrieve.ts';
export type { PromptTemplate, TemplateDraft, TemplateVars } from './template.ts';
