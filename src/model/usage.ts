/** What a model call used: as its provider says, or estimated; and what that costs. */
import type { LanguageModelV4CallOptions, LanguageModelV4Message, LanguageModelV4Usage } from '@ai-sdk/provider';
import {
  amountOf,
  assertKnownKeys,
  DETAILS,
  type OptionShape,
  PilotageError,
  shownAmount,
  type Usage,
  usageIn,
} from '#core';

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

const SHAPE: OptionShape<Prices> = { input: 'any', cachedInput: 'any?', cacheWriteInput: 'any?', output: 'any' };
const PRICES = Object.keys(SHAPE) as (keyof Prices)[];
/** A price outside of these bounds, in dollars for a million tokens, was probably meant in another unit. */
const LEAST_PRICE = 0.0001;
const MOST_PRICE = 1_000;

/** @throws PilotageError `invalid_config` naming a key that is not a price, or a price that cannot be meant. */
export function assertPrices(prices: Prices): void {
  assertKnownKeys('prices', prices, PRICES);
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
  const wrong: string[] = [];
  const taken = (part: (typeof TOKENS)[number], value: unknown, most: number): number | undefined => {
    if (value === undefined || value === null) return undefined;
    const amount = amountOf(value, most);
    if (amount === undefined) wrong.push(`${part} is ${shownAmount(value)}`);
    return amount;
  };
  const input = taken(
    'inputTokens',
    inputTokens?.total ?? sumOf(inputTokens?.noCache, inputTokens?.cacheRead, inputTokens?.cacheWrite),
    MOST_TOKENS,
  );
  const output = taken(
    'outputTokens',
    outputTokens?.total ?? sumOf(outputTokens?.text, outputTokens?.reasoning),
    MOST_TOKENS,
  );
  const cached = taken('cachedInputTokens', inputTokens?.cacheRead, input ?? 0);
  const cacheWrite = taken('cacheWriteInputTokens', inputTokens?.cacheWrite, (input ?? 0) - (cached ?? 0));
  const reasoning = taken('reasoningTokens', outputTokens?.reasoning, output ?? 0);
  const usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  // A reply may have no output; of the other parts 0 says nothing.
  if (input) usage.inputTokens = input;
  if (output !== undefined) usage.outputTokens = output;
  if (cached) usage.cachedInputTokens = cached;
  if (cacheWrite) usage.cacheWriteInputTokens = cacheWrite;
  if (reasoning) usage.reasoningTokens = reasoning;
  const said: { -readonly [K in keyof ProviderUsage]: ProviderUsage[K] } = {};
  if (input || output !== undefined || cached || cacheWrite || reasoning) said.usage = usage;
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

/** An estimate of what a reply has used that nobody reads to its end. */
export function usageOfText(request: CountedRequest, text: string, { prices }: { readonly prices?: Prices }): Usage {
  const used = estimated(undefined, request, { text, reasoning: '', calls: [] });
  return prices === undefined ? used : priced(used, prices);
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

// How many tokens a request has, by rule of thumb: characters / 4 + 1 a text (more where a script has fewer characters in a token), 4 more a
// message, 256 for a part that is not text. It counts what is sent: system prompt, messages, tools and response format. What providers want back
// (signatures) is theirs to count: their own number of the last call, as the base, sets the estimate right.

export type CountedRequest = Pick<LanguageModelV4CallOptions, 'prompt' | 'tools' | 'responseFormat'>;

/** The provider's own count for an earlier request that this request continues. */
export interface CountedBefore {
  readonly inputTokens: number;
  /** How many messages, from the first on, are the same in both; later ones are estimated. */
  readonly messages: number;
  /** How many tools, from the first on, are the same in both. Default: all of them. */
  readonly tools?: number;
}

type Tool = NonNullable<CountedRequest['tools']>[number];
type Part = Exclude<LanguageModelV4Message['content'], string>[number];
type ToolOutput = Extract<Part, { type: 'tool-result' }>['output'];

const MESSAGE_TOKENS = 4;
const FILE_TOKENS = 256;

interface CountedReply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly tool: string; readonly input: string }[];
}

/** Counts what can be seen of a reply: the provider may have counted more, such as reasoning that it does not send. */
function estimateReplyTokens({ text, reasoning, calls }: CountedReply): number {
  let tokens = 0;
  for (const said of [text, reasoning]) if (said !== '') tokens += textTokens(said);
  for (const { tool, input } of calls) tokens += textTokens(tool) + textTokens(input);
  return tokens;
}

/** A new count each time; for a history that grows there is `TokenCounter`. */
export function estimateTokens(request: CountedRequest, before?: CountedBefore): number {
  return new TokenCounter().estimate(request, before);
}

/** Estimates requests that grow: what it has counted before, known by reference, it does not count again. */
export class TokenCounter {
  readonly #messages = new Sums(messageTokens);
  readonly #tools = new Sums(toolTokens);

  /** With `before`, the provider's own count and an estimate of what was added since. */
  estimate({ prompt, tools = [], responseFormat }: CountedRequest, before?: CountedBefore): number {
    this.#messages.extend(prompt);
    this.#tools.extend(tools);
    const { messages = 0, inputTokens = 0, tools: toolsBefore = tools.length } = before ?? {};
    const messageSum = this.#messages.from(messages);
    if (before !== undefined) return inputTokens + messageSum + this.#tools.from(toolsBefore);
    const format = responseFormat?.type === 'json' && responseFormat.schema !== undefined;
    return messageSum + this.#tools.from(0) + (format ? jsonTokens(responseFormat.schema) : 0);
  }
}

/** Running sums over a list that mostly grows at its end; a change before it makes only what follows count anew. */
class Sums<T extends object> {
  readonly #tokensOf: (item: T) => number;
  readonly #items: T[] = [];
  /** `#sums[i]` is the sum of the first i items. */
  readonly #sums: number[] = [0];

  constructor(tokensOf: (item: T) => number) {
    this.#tokensOf = tokensOf;
  }

  extend(list: readonly T[]): void {
    const items = this.#items;
    let same = 0;
    // Every item is looked at, by reference: a summary may stand in the middle, and leave what follows where it was.
    while (same < items.length && same < list.length && items[same] === list[same]) same += 1;
    items.length = same;
    this.#sums.length = same + 1;
    let sum = this.#sums[same] as number;
    for (const item of list.slice(same)) {
      sum += this.#tokensOf(item);
      items.push(item);
      this.#sums.push(sum);
    }
  }

  from(start: number): number {
    const last = this.#sums.length - 1;
    return (this.#sums[last] as number) - (this.#sums[Math.min(Math.max(start, 0), last)] as number);
  }
}

/** Each message is sent with every later request of its run, and counted once. */
const counted = new WeakMap<object, number>();

function messageTokens(message: LanguageModelV4Message): number {
  const { content } = message;
  if (typeof content === 'string') return MESSAGE_TOKENS + textTokens(content);
  let tokens = counted.get(message);
  if (tokens !== undefined) return tokens;
  tokens = MESSAGE_TOKENS;
  for (const part of content) tokens += partTokens(part);
  counted.set(message, tokens);
  return tokens;
}

function partTokens(part: Part): number {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return textTokens(part.text);
    case 'tool-call':
      return textTokens(part.toolName) + jsonTokens(part.input);
    case 'tool-result':
      return outputTokens(part.output);
    case 'file':
      return fileTokens(part.data);
    case 'custom':
    case 'reasoning-file':
    case 'tool-approval-response':
      return FILE_TOKENS;
    default:
      part satisfies never;
      return FILE_TOKENS; // what a later version adds
  }
}

function outputTokens(output: ToolOutput): number {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return textTokens(output.value);
    case 'json':
    case 'error-json':
      return formTokens(output.value);
    case 'execution-denied':
      return textTokens(output.reason ?? '');
    case 'content':
      return output.value.reduce((sum, item) => {
        if (item.type === 'text') return sum + textTokens(item.text);
        return sum + (item.type === 'file' ? fileTokens(item.data) : FILE_TOKENS);
      }, 0);
    default:
      output satisfies never;
      return FILE_TOKENS;
  }
}

function fileTokens(data: Extract<Part, { type: 'file' }>['data']): number {
  return data.type === 'text' ? textTokens(data.text) : FILE_TOKENS;
}

/** A screenshot in a form of its provider's is base64 within the JSON. */
function formTokens(value: unknown): number {
  let files = 0;
  const text = JSON.stringify(value, (key, each: unknown) => {
    if (key !== 'imageUrl' || typeof each !== 'string' || !each.startsWith('data:')) return each;
    files += 1;
    return '';
  });
  return textTokens(text ?? '') + files * FILE_TOKENS;
}

function toolTokens(tool: Tool): number {
  const known = counted.get(tool);
  if (known !== undefined) return known;
  const tokens = jsonTokens(tool);
  counted.set(tool, tokens);
  return tokens;
}

function jsonTokens(value: unknown): number {
  return textTokens(JSON.stringify(value) ?? '');
}

function textTokens(text: string): number {
  return Math.floor((text.length + denser(text)) / 4) + 1;
}

/** Greek, Cyrillic, Hebrew and Arabic have about two characters in a token, and what stands behind them (Indic scripts, Thai, Chinese, Japanese, Korean, emoji) about one. */
const HALF_DENSE = 0x370;
const DENSE = 0x900;
/** Punctuation, arrows and lines, which are as frequent in every script. */
const [SIGNS, AFTER_SIGNS] = [0x2000, 0x2e80];

/** Finds in no time that a text has Latin letters alone. */
const NOT_LATIN = /[\u0370-\u1fff\u2e80-\uffff]/;

/** How many more characters a text of a script with fewer of them in a token would have in Latin. */
function denser(text: string): number {
  if (!NOT_LATIN.test(text)) return 0;
  let more = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < HALF_DENSE || (unit >= SIGNS && unit < AFTER_SIGNS)) continue;
    more += unit < DENSE ? 1 : 3;
  }
  return more;
}
