/** What the other rooms and the tests may use of `model`. */
export type { AskOptions, ModelAnswer } from './attempts.ts';
export { askModel, streamModel } from './attempts.ts';
export { type CacheUse, cachedRequest, cacheUseOf } from './cache.ts';
export type { LanguageModel, ModelEntry, ReadyModel } from './entry.ts';
export { asLanguageModel, oneCallAtATime, readyModel, readyModels, takesMedia } from './entry.ts';
export {
  BrokenReply,
  closedPort,
  failureData,
  isTransientFailure,
  remedyFor,
  retryAfterMs,
  whyUnavailable,
} from './failure.ts';
export type { Counted } from './overflow.ts';
export { overflowIn, overflowOf, roomFor, silentOverflow } from './overflow.ts';
export type { ProviderState, StoredPart } from './provider-state.ts';
export { assertOffered } from './provider-tools.ts';
export { type ModelRefusal, refusalError, refusalIn, refusalOf, refusalText } from './refusal.ts';
export type { MeasuresData, ModelCallResult, ModelRegistry, Needs, RecordedModelCall } from './registry.ts';
export { createModelRegistry, rankModels } from './registry.ts';
export type { ModelCall, Reply, StopReason } from './reply.ts';
export { generatedReply, StreamedContent, streamReply } from './reply.ts';
export { type BudgetLeft, fitted, leftAfter } from './reply-room.ts';
export { mostFileBytes, takesInResults, takesUrl } from './result-files.ts';
export type { Structured, StructuredOptions } from './structured.ts';
export { askStructured, isFormatRefusal, oneLower, structuredFormat } from './structured.ts';
export type { CountedBefore, CountedRequest, Prices } from './usage.ts';
export {
  assertPrices,
  estimated,
  estimateTokens,
  priced,
  TokenCounter,
  usageOf,
  usageOfError,
  usageOfText,
} from './usage.ts';
export { Watch } from './watch.ts';
