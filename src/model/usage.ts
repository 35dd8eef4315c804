/** What a model call used, and what that costs. */
import type { LanguageModelV4Usage } from '@ai-sdk/provider';
import { PilotageError } from '../core/errors.ts';
import type { Usage } from '../core/step.ts';

/** Millionths of a US dollar for a million tokens: 3 dollars a million tokens are 3,000,000. */
export interface Prices {
  readonly input: number;
  /** For input tokens that the provider read from its cache. Default: as `input`. */
  readonly cachedInput?: number;
  readonly output: number;
}

/** @throws PilotageError `invalid_config` naming the price that is no number from 0 up. */
export function assertPrices(prices: Prices): void {
  for (const name of ['input', 'cachedInput', 'output'] as const) {
    const price: unknown = prices[name];
    if (price === undefined && name === 'cachedInput') continue;
    if (typeof price === 'number' && Number.isFinite(price) && price >= 0) continue;
    throw new PilotageError(
      'invalid_config',
      `prices.${name} is ${String(price)}; give millionths of a US dollar for a million tokens, from 0 up.`,
    );
  }
}

/** `undefined` when the provider told nothing. */
export function usageOf({ inputTokens, outputTokens }: LanguageModelV4Usage): Usage | undefined {
  const input = inputTokens.total;
  const cached = inputTokens.cacheRead;
  const output = outputTokens.total;
  if (input === undefined && output === undefined) return undefined;
  return {
    ...(input === undefined ? {} : { inputTokens: input }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
  };
}

/** The usage with its cost, rounded up to a whole millionth, so that no call is free. */
export function priced(usage: Usage, prices: Prices): Usage {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0 } = usage;
  const cost =
    (inputTokens - cachedInputTokens) * prices.input +
    cachedInputTokens * (prices.cachedInput ?? prices.input) +
    outputTokens * prices.output;
  return { ...usage, costMicroUsd: Math.ceil(cost / 1_000_000) };
}
