/** Tokens and money of model calls. Absent parts are not known. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** The part of `inputTokens` that the provider read from its cache. */
  readonly cachedInputTokens?: number;
  readonly costMicroUsd?: number;
  /** Some of the tokens, and what they cost, were estimated: the provider said nothing of them that can be believed. */
  readonly estimated?: true;
}

/** More tokens, or millionths of a dollar, than one move can have used. */
const MOST = 1e12;
const PARTS = ['inputTokens', 'outputTokens', 'cachedInputTokens', 'costMicroUsd'] as const;

/** The sum; a part that neither knows stays absent. */
export function addUsage(left: Usage | undefined, right: Usage): Usage {
  if (left === undefined) return right;
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = { ...left };
  for (const part of PARTS) {
    const more = right[part];
    if (more !== undefined) sum[part] = (sum[part] ?? 0) + more;
  }
  if (right.estimated === true) sum.estimated = true;
  return sum;
}

export interface ReadUsage {
  /** The parts that are right. */
  readonly usage: Usage;
  /** What is wrong with the others; absent when nothing is. */
  readonly wrong?: string;
}

/** Reads what somebody says was used. A limit that counts it must not be lifted by a number that cannot be. */
export function readUsage(given: unknown): ReadUsage {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return { usage: {}, wrong: 'it is no object' };
  }
  const said = given as { readonly [part: string]: unknown };
  const usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  const wrong: string[] = [];
  for (const part of PARTS) {
    const value = said[part];
    if (value === undefined) continue;
    const amount = amountOf(value, MOST);
    if (amount === undefined) wrong.push(`${part} is ${shown(value)}`);
    else usage[part] = amount;
  }
  const { inputTokens = MOST, cachedInputTokens = 0 } = usage;
  if (cachedInputTokens > inputTokens) {
    wrong.push(`cachedInputTokens is ${cachedInputTokens}, of ${inputTokens} inputTokens`);
    delete usage.cachedInputTokens;
  }
  if (said['estimated'] === true) usage.estimated = true;
  return wrong.length === 0 ? { usage } : { usage, wrong: wrong.join('; ') };
}

/** A number from 0 to `most`, a part of a whole counting as a whole; `undefined` for everything else. */
export function amountOf(value: unknown, most: number): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= most ? Math.ceil(value) : undefined;
}

/** How a message names what is no amount. */
export function shown(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  return value === null ? 'null' : `a ${typeof value}`;
}

/** A total with one amount more. What an entry says that is no amount counts for nothing, and a total never falls. */
export function added(total: number, more: unknown): number {
  return Math.min(total + (amountOf(more, Number.MAX_SAFE_INTEGER) ?? 0), Number.MAX_SAFE_INTEGER);
}
