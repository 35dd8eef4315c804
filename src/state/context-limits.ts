/** What a run has learnt of how much its models take, as a fold over what did not fit. */
import type { ContextLimit, Overflowed } from '#core';

/** How much of what may fit is used: our count is rough, and the reply needs room. */
const ROOM_SHARE = 0.9;
/** How much of a request is left where nobody says how much is too much. */
const GUESS_SHARE = 0.75;
/** A reply that is counted with the request gets at most this share of the window. */
const REPLY_SHARE = 0.25;

/** With what this request tells of its model. A limit only gets lower, so that no request is made that did not fit before. */
export function withLimit(limits: readonly ContextLimit[], overflowed: Overflowed): readonly ContextLimit[] {
  const before = limits.find(({ model }) => model === overflowed.model);
  const others = limits.filter((limit) => limit !== before);
  return Object.freeze([...others, Object.freeze(limitAfter(before, overflowed))]);
}

function limitAfter(before: ContextLimit | undefined, { model, tokens, overflow }: Overflowed): ContextLimit {
  const { kind, limitTokens, sentTokens, wishTokens, mostTokens } = overflow;
  const limit: { -readonly [K in keyof ContextLimit]: ContextLimit[K] } = { ...before, model };
  if (sentTokens !== undefined && tokens > 0) limit.scale = sentTokens / tokens;
  if (limitTokens !== undefined) limit.windowTokens = Math.min(limitTokens, before?.windowTokens ?? limitTokens);
  if (limitTokens !== undefined && wishTokens !== undefined) limit.wishTokens = wishTokens;
  // What a shared window leaves is found out for each request.
  if (kind === 'output' && limitTokens === undefined) limit.replyTokens = least(mostTokens, before?.replyTokens);
  if (kind === 'input') limit.tokens = least(longest(overflow, tokens), before?.tokens);
  return limit;
}

/** The longest request that is made from now on, by our own count: in any case a shorter one. */
function longest({ limitTokens, sentTokens, wishTokens }: Overflowed['overflow'], tokens: number): number {
  if (limitTokens === undefined) return tokens * GUESS_SHARE;
  if (sentTokens === undefined) return Math.min(limitTokens * ROOM_SHARE, tokens * GUESS_SHARE);
  const reply = Math.min(wishTokens ?? 0, limitTokens * REPLY_SHARE);
  return tokens * ROOM_SHARE * Math.min(1, (limitTokens - reply) / sentTokens);
}

function least(one: number | undefined, other: number | undefined): number {
  return Math.max(1, Math.floor(Math.min(one ?? Number.MAX_SAFE_INTEGER, other ?? Number.MAX_SAFE_INTEGER)));
}
