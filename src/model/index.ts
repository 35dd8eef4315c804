/** `pilotage/model`: models beside the calling of one. */
export type { Source } from '#core';
export type { AskOptions, ModelAnswer } from './attempts.ts';
export type { CacheTtl } from './cache.ts';
export type { LanguageModel, ModelEntry, ReadyModel } from './entry.ts';
export { readyModel } from './entry.ts';
export type { ModelRefusal } from './refusal.ts';
export type {
  MeasuresData,
  ModelCallResult,
  ModelMeasures,
  ModelRegistry,
  Needs,
  RecordedModelCall,
  RegistryOptions,
} from './registry.ts';
export { createModelRegistry, rankModels } from './registry.ts';
export type { Reply, StopReason } from './reply.ts';
export type { CountedBefore, CountedRequest, Prices } from './usage.ts';
export { estimateTokens } from './usage.ts';
