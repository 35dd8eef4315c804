/** Tokens and money of model calls. Absent parts are not known. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** The part of `inputTokens` that the provider read from its cache. */
  readonly cachedInputTokens?: number;
  readonly costMicroUsd?: number;
}
