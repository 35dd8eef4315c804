/** `pilotage/model`: models beside the calling of one. */
export type { AskOptions, ModelAnswer } from './attempts.ts';
export type { ModelEntry, ReadyModel } from './entry.ts';
export { readyModel } from './entry.ts';
export type { LanguageModel } from './language-model.ts';
export type {
  MeasuresData,
  ModelCallResult,
  ModelMeasures,
  ModelRegistry,
  RecordedModelCall,
  RegistryOptions,
} from './registry.ts';
export { createModelRegistry } from './registry.ts';
export type { Reply, StopReason } from './reply.ts';
export type { Needs } from './selector.ts';
export { rankModels } from './selector.ts';
export type { CountedBefore, CountedRequest } from './tokens.ts';
export { estimateTokens } from './tokens.ts';
export type { Prices } from './usage.ts';
