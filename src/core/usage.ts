/** Tokens and money of model calls. Absent parts are not known. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** The part of `inputTokens` that the provider read from its cache. */
  readonly cachedInputTokens?: number;
  readonly costMicroUsd?: number;
}

/** The sum; a part that neither knows stays absent. */
export function addUsage(left: Usage | undefined, right: Usage): Usage {
  if (left === undefined) return right;
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = { ...left };
  for (const part of ['inputTokens', 'outputTokens', 'cachedInputTokens', 'costMicroUsd'] as const) {
    const more = right[part];
    if (more !== undefined) sum[part] = (sum[part] ?? 0) + more;
  }
  return sum;
}
