/** What a model call used, and what that costs. */
import type { LanguageModelV4Usage } from '@ai-sdk/provider';
import { PilotageError } from '../core/errors.ts';
import { amountOf, readUsage, shown, type Usage } from '../core/usage.ts';
import { type CountedReply, type CountedRequest, estimateReplyTokens, estimateTokens } from './tokens.ts';

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

/** More tokens than any one call can have. */
const MOST_TOKENS = 1e9;

export interface ProviderUsage {
  /** What the provider said, as far as it can be; absent when that is nothing. */
  readonly usage?: Usage;
  /** What it said that cannot be. */
  readonly refused?: string;
}

/**
 * Reads what a provider says that a call used. A request without input tokens does not exist: 0 is what gateways say
 * that do not know, and is taken for nothing said.
 */
export function usageOf(given: LanguageModelV4Usage | undefined): ProviderUsage {
  // A provider need not keep to its type.
  const { inputTokens, outputTokens }: Partial<LanguageModelV4Usage> = given ?? {};
  const usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  const wrong: string[] = [];
  const take = (part: 'inputTokens' | 'outputTokens' | 'cachedInputTokens', value: unknown, most: number): void => {
    if (value === undefined || value === null) return;
    const amount = amountOf(value, most);
    if (amount === undefined) wrong.push(`${part} is ${shown(value)}`);
    else if (amount > 0 || part !== 'inputTokens') usage[part] = amount;
  };
  take('inputTokens', inputTokens?.total, MOST_TOKENS);
  take('outputTokens', outputTokens?.total, MOST_TOKENS);
  if (usage.inputTokens !== undefined) take('cachedInputTokens', inputTokens?.cacheRead, usage.inputTokens);
  return {
    ...(Object.keys(usage).length === 0 ? {} : { usage }),
    ...(wrong.length === 0 ? {} : { refused: wrong.join('; ') }),
  };
}

/** What was said, with an estimate in the place of each part that was not. */
export function estimated(said: Usage | undefined, request: CountedRequest, reply: CountedReply): Usage {
  const { inputTokens, outputTokens = 0 } = said ?? {};
  const output = outputTokens > 0 ? outputTokens : estimateReplyTokens(reply);
  if (said !== undefined && inputTokens !== undefined && output === outputTokens) return said;
  return { ...said, inputTokens: inputTokens ?? requestTokens(request), outputTokens: output, estimated: true };
}

/** For each message of a request that cannot be counted, though its model took it. */
const UNCOUNTED_TOKENS = 256;

function requestTokens(request: CountedRequest): number {
  try {
    return estimateTokens(request);
  } catch {
    return request.prompt.length * UNCOUNTED_TOKENS;
  }
}

/** What an error says that its tries have used. */
export function usageOfError(error: unknown): Usage | undefined {
  const data: unknown = PilotageError.is(error) ? error.data : undefined;
  const given: unknown = typeof data === 'object' && data !== null && 'usage' in data ? data.usage : undefined;
  return given === undefined ? undefined : readUsage(given).usage;
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
