/** Keeps a request and its reply within what is left of a budget. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { PilotageError, type Usage } from '#core';
import type { ReadyModel } from './entry.ts';
import { estimateTokens, type Prices } from './usage.ts';

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

/**
 * The request, whose reply is asked to be no longer than what is left.
 * @param used what tries before it have used of what was left.
 * @throws PilotageError `budget_exceeded` when the request has no room for any reply, with `data.axis`, `data.needs` (tokens, or millionths
 * of a dollar) and `data.usage` of the tries before.
 */
export function withinBudget(
  left: BudgetLeft,
  request: LanguageModelV4CallOptions,
  { name, prices = FREE }: Pick<ReadyModel, 'name' | 'prices'>,
  used?: Usage,
): LanguageModelV4CallOptions {
  const input = estimateTokens(request);
  const room = replyRoom(leftAfter(left, used), input, prices);
  const needs = {
    tokens: input + LEAST_REPLY_TOKENS,
    costMicroUsd: Math.ceil(input * inputPrice(prices) + LEAST_REPLY_TOKENS * prices.output),
  };
  for (const part of ['tokens', 'costMicroUsd'] as const) {
    if (room[part] >= LEAST_REPLY_TOKENS) continue;
    const axis = part === 'tokens' ? 'tokens' : 'cost';
    throw new PilotageError(
      'budget_exceeded',
      `The request to the model ${name} has about ${input} tokens, and the ${axis} that the run has left have no room for it and a reply. It was not asked: raise the limit on ${axis}.`,
      { data: { axis, needs: needs[part], ...(used === undefined ? {} : { usage: { ...used } }) } },
    );
  }
  const most = Math.min(room.tokens, room.costMicroUsd, request.maxOutputTokens ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(most) ? { ...request, maxOutputTokens: most } : request;
}
