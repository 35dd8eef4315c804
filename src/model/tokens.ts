/**
 * How many tokens a request has, by rule of thumb: characters / 4 + 1 a text, 4 more a message, 256 for a part that is not text.
 * It counts what is sent: system prompt, messages, tools and response format. What providers want back (signatures) is
 * theirs to count: their own number of the last call, as the base, sets the estimate right.
 */
import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider';

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

export interface CountedReply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly tool: string; readonly input: string }[];
}

/** Counts what can be seen of a reply: the provider may have counted more, such as reasoning that it does not send. */
export function estimateReplyTokens({ text, reasoning, calls }: CountedReply): number {
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
      return jsonTokens(output.value);
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
  return Math.floor(text.length / 4) + 1;
}
