/** What a model call used, and what that costs. */
import type { LanguageModelV4Usage } from '@ai-sdk/provider';
import { amountOf, DETAILS, PilotageError, shownAmount, type Usage, usageIn } from '#core';
import { type CountedReply, type CountedRequest, estimateReplyTokens, estimateTokens } from './tokens.ts';

/** Prices in US dollars for a million tokens, as providers state them: 3 is three dollars. 0 is for a model that costs nothing. */
export interface Prices {
  readonly input: number;
  /** The price of input tokens that the provider read from its cache. Default: `input`. */
  readonly cachedInput?: number;
  /** The price of input tokens that the provider wrote to its cache. Default: `input`. */
  readonly cacheWriteInput?: number;
  /** The price of output tokens, including reasoning. */
  readonly output: number;
}

const PRICES = ['input', 'cachedInput', 'cacheWriteInput', 'output'] as const;
/** A price outside of these bounds, in dollars for a million tokens, was probably meant in another unit. */
const LEAST_PRICE = 0.0001;
const MOST_PRICE = 1_000;

/** @throws PilotageError `invalid_config` naming a key that is not a price, or a price that cannot be meant. */
export function assertPrices(prices: Prices): void {
  const other = Object.keys(prices).find((key) => !PRICES.some((name) => name === key));
  if (other !== undefined) {
    throw new PilotageError('invalid_config', `prices.${other} is not a price; the prices are ${PRICES.join(', ')}.`);
  }
  for (const name of PRICES) {
    const price: unknown = prices[name];
    if (price === undefined && name !== 'input' && name !== 'output') continue;
    const why = whyNoPrice(price);
    if (why === undefined) continue;
    const given = price === undefined ? 'missing' : shownAmount(price);
    throw new PilotageError('invalid_config', `prices.${name} is ${given}; ${why}.`);
  }
}

function whyNoPrice(price: unknown): string | undefined {
  if (typeof price !== 'number' || !Number.isFinite(price) || price < 0) {
    return 'give US dollars for a million tokens, from 0 up';
  }
  if (price === 0 || (price >= LEAST_PRICE && price <= MOST_PRICE)) return undefined;
  const what = price < LEAST_PRICE ? 'less than any model costs' : 'more than any model costs';
  return `that is ${what}: prices are US dollars for a million tokens, such as 2.5`;
}

/** More tokens than any one call can have. */
const MOST_TOKENS = 1e9;

const TOKENS = ['inputTokens', 'outputTokens', ...DETAILS] as const;

/** The sum of the parts, for a provider that reports the parts and not the whole; `undefined` when it reports none. */
function sumOf(...parts: readonly unknown[]): number | undefined {
  const known = parts.filter((part) => typeof part === 'number');
  return known.length === 0 ? undefined : known.reduce((sum, part) => sum + part, 0);
}

export interface ProviderUsage {
  /** The usage that the provider reported, as far as it can be true; absent when there is none. */
  readonly usage?: Usage;
  /** What the provider reported that cannot be true. */
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
  const take = (part: (typeof TOKENS)[number], value: unknown, most: number): void => {
    if (value === undefined || value === null) return;
    const amount = amountOf(value, most);
    if (amount === undefined) wrong.push(`${part} is ${shownAmount(value)}`);
    else if (amount > 0 || part === 'outputTokens') usage[part] = amount;
  };
  take(
    'inputTokens',
    inputTokens?.total ?? sumOf(inputTokens?.noCache, inputTokens?.cacheRead, inputTokens?.cacheWrite),
    MOST_TOKENS,
  );
  take('outputTokens', outputTokens?.total ?? sumOf(outputTokens?.text, outputTokens?.reasoning), MOST_TOKENS);
  const input = usage.inputTokens ?? 0;
  take('cachedInputTokens', inputTokens?.cacheRead, input);
  take('cacheWriteInputTokens', inputTokens?.cacheWrite, input - (usage.cachedInputTokens ?? 0));
  take('reasoningTokens', outputTokens?.reasoning, usage.outputTokens ?? 0);
  const said: { -readonly [K in keyof ProviderUsage]: ProviderUsage[K] } = {};
  if (Object.keys(usage).length > 0) said.usage = usage;
  if (wrong.length > 0) said.refused = wrong.join('; ');
  return said;
}

/** The reported usage, with an estimate for each part that was not reported. */
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
  return PilotageError.is(error) ? usageIn(error.data).usage : undefined;
}

/**
 * The usage with its cost, rounded up to a whole millionth, so that no call is free: a dollar for a million tokens is a millionth
 * for a token.
 */
export function priced(usage: Usage, prices: Prices): Usage {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, cacheWriteInputTokens = 0 } = usage;
  const { input, output, cachedInput = input, cacheWriteInput = input } = prices;
  const plain = Math.max(0, inputTokens - cachedInputTokens - cacheWriteInputTokens);
  const cost =
    plain * input + cachedInputTokens * cachedInput + cacheWriteInputTokens * cacheWriteInput + outputTokens * output;
  // The rounding error of floating point is not part of the price.
  return { ...usage, costMicroUsd: Math.ceil(cost - 1e-6) };
}
