/** Keeps a request and its reply within what is left of a budget. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { PilotageError, type Usage } from '#core';
import { type ReadyModel, thoughtTokens } from './entry.ts';
import type { Prices } from './usage.ts';

/** What is left for a request and its reply. An absent part is unlimited. */
export interface BudgetLeft {
  readonly tokens?: number | undefined;
  readonly costMicroUsd?: number | undefined;
}

/** What is left of it when this was used. */
export function leftAfter(left: BudgetLeft, used: Usage | undefined): BudgetLeft {
  if (used === undefined) return left;
  const { inputTokens = 0, outputTokens = 0, costMicroUsd: spent = 0 } = used;
  const { tokens, costMicroUsd } = left;
  return {
    tokens: tokens === undefined ? undefined : tokens - inputTokens - outputTokens,
    costMicroUsd: costMicroUsd === undefined ? undefined : costMicroUsd - spent,
  };
}

/** How many tokens a reply may have at most, so that it and its request fit each part; below 0 where the request alone is too large. */
export interface ReplyRoom {
  readonly tokens: number;
  readonly costMicroUsd: number;
}

/** Providers refuse to write fewer, and nothing can be said with them. */
const LEAST_REPLY_TOKENS = 16;

/** For models without prices: nothing of the cost is reckoned. */
export const FREE: Prices = { input: 0, output: 0 };

/** The most that a token of a request may cost: providers may ask more for one that they write to their cache. */
export function inputPrice({ input, cacheWriteInput = input }: Prices): number {
  return Math.max(input, cacheWriteInput);
}

/** @param prices dollars for a million tokens are millionths of a dollar for one. */
export function replyRoom(
  { tokens = Number.POSITIVE_INFINITY, costMicroUsd = Number.POSITIVE_INFINITY }: BudgetLeft,
  inputTokens: number,
  prices: Prices = FREE,
): ReplyRoom {
  const money = costMicroUsd - inputTokens * inputPrice(prices);
  const paid = money < 0 ? -1 : prices.output === 0 ? Number.POSITIVE_INFINITY : Math.floor(money / prices.output);
  return { tokens: Math.floor(tokens - inputTokens), costMicroUsd: paid };
}

/** A request that is judged by what is left. */
export interface Sized {
  readonly request: LanguageModelV4CallOptions;
  /** About how many tokens it has. */
  readonly tokens: number;
  readonly model: Pick<ReadyModel, 'name' | 'prices' | 'model'>;
}

/** What is asked for, and what that may use at most; or what has no room for it and any reply, and how much of that it takes. */
export type Fitted =
  | {
      readonly maxOutputTokens: number | undefined;
      readonly most: { readonly tokens: number; readonly costMicroUsd: number };
    }
  | { readonly lacks: 'tokens' | 'cost'; readonly needs: number };

/** How long the reply to a request is asked to be at most, so that both fit what is left. */
export function fitted(left: BudgetLeft, { request, tokens: input, model: { prices = FREE, model } }: Sized): Fitted {
  const wished = request.maxOutputTokens ?? Number.POSITIVE_INFINITY;
  const thoughts = thoughtTokens(model, request);
  const least = thoughts + Math.min(wished, LEAST_REPLY_TOKENS);
  const room = replyRoom(left, input, prices);
  const costOf = (output: number): number => Math.ceil(input * inputPrice(prices) + output * prices.output);
  if (room.tokens < least) return { lacks: 'tokens', needs: input + least };
  if (room.costMicroUsd < least) return { lacks: 'cost', needs: costOf(least) };
  const answer = Math.min(room.tokens - thoughts, room.costMicroUsd - thoughts, wished);
  if (!Number.isFinite(answer)) return { maxOutputTokens: undefined, most: { tokens: input, costMicroUsd: costOf(0) } };
  const output = thoughts + answer;
  return { maxOutputTokens: answer, most: { tokens: input + output, costMicroUsd: costOf(output) } };
}

/**
 * The request, whose reply is asked to be no longer than what is left.
 * @param used what tries before it have used of what was left.
 * @throws PilotageError `budget_exceeded` when the request has no room for any reply, with `data.axis`, `data.needs` (tokens, or millionths
 * of a dollar) and `data.usage` of the tries before.
 */
export function withinBudget(left: BudgetLeft, sized: Sized, used?: Usage): LanguageModelV4CallOptions {
  const { request, tokens, model } = sized;
  const found = fitted(leftAfter(left, used), sized);
  if ('lacks' in found) {
    const { lacks: axis, needs } = found;
    throw new PilotageError(
      'budget_exceeded',
      `The request to the model ${model.name} has about ${tokens} tokens, and the ${axis} that the run has left have no room for it and a reply. It was not asked: raise the limit on ${axis}.`,
      { data: { axis, needs, ...(used === undefined ? {} : { usage: { ...used } }) } },
    );
  }
  const { maxOutputTokens } = found;
  return maxOutputTokens === undefined ? request : { ...request, maxOutputTokens };
}
