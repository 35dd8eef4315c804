/** Tokens and money of model calls. Absent parts are not known. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** The part of `inputTokens` that the provider read from its cache. */
  readonly cachedInputTokens?: number;
  /** The part of `inputTokens` that the provider wrote to its cache. */
  readonly cacheWriteInputTokens?: number;
  /** The part of `outputTokens` that was reasoning. */
  readonly reasoningTokens?: number;
  readonly costMicroUsd?: number;
  /** True: some of the tokens, and their cost, were estimated, because the provider reported nothing credible. */
  readonly estimated?: true;
}

/** More tokens, or millionths of a dollar, than one move can have used. */
const MOST = 1e12;
/** Parts of another part: never more than that part, and absent where no provider reported them. */
export const WITHIN = {
  cachedInputTokens: 'inputTokens',
  cacheWriteInputTokens: 'inputTokens',
  reasoningTokens: 'outputTokens',
} as const;
export const DETAILS = ['cachedInputTokens', 'cacheWriteInputTokens', 'reasoningTokens'] as const;
const PARTS = ['inputTokens', 'outputTokens', 'costMicroUsd', ...DETAILS] as const;

/** The sum of two usages. A part that neither of them has stays absent. */
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
  /** The parts that are valid. */
  readonly usage: Usage;
  /** What is wrong with the other parts; absent when every part is valid. */
  readonly wrong?: string;
}

/** Reads usage that somebody reports. An impossible number must not lift a limit that counts it. */
export function readUsage(given: unknown): ReadUsage {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return { usage: {}, wrong: 'the usage is not an object' };
  }
  const said: Partial<Record<keyof Usage, unknown>> = given;
  const usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  const wrong: string[] = [];
  takeAmount(usage, 'inputTokens', said.inputTokens, wrong);
  takeAmount(usage, 'outputTokens', said.outputTokens, wrong);
  takeAmount(usage, 'costMicroUsd', said.costMicroUsd, wrong);
  takeAmount(usage, 'cachedInputTokens', said.cachedInputTokens, wrong);
  takeAmount(usage, 'cacheWriteInputTokens', said.cacheWriteInputTokens, wrong);
  takeAmount(usage, 'reasoningTokens', said.reasoningTokens, wrong);
  for (const part of DETAILS) {
    const whole = usage[WITHIN[part]];
    const amount = usage[part] ?? 0;
    if (whole === undefined || amount <= whole) continue;
    wrong.push(`${part} is ${amount}, of ${whole} ${WITHIN[part]}`);
    delete usage[part];
  }
  if (said.estimated === true) usage.estimated = true;
  return wrong.length === 0 ? { usage } : { usage, wrong: wrong.join('; ') };
}

/** Each part is written out where it is read: a usage is read in every step, and a loop over names takes five times as long. */
function takeAmount(
  usage: { -readonly [K in (typeof PARTS)[number]]?: Usage[K] },
  part: (typeof PARTS)[number],
  value: unknown,
  wrong: string[],
): void {
  if (value === undefined) return;
  const amount = amountOf(value, MOST);
  if (amount === undefined) wrong.push(`${part} is ${shownAmount(value)}`);
  else usage[part] = amount;
}

/** The usage in the data of an error; empty when there is no valid usage. */
export function usageIn(data: unknown): { readonly usage?: Usage } {
  const given: unknown = typeof data === 'object' && data !== null && 'usage' in data ? data.usage : undefined;
  const usage = given === undefined ? {} : readUsage(given).usage;
  return Object.keys(usage).length === 0 ? {} : { usage };
}

/** A whole number from 0 to `most`, with fractions rounded up; `undefined` for every other value. */
export function amountOf(value: unknown, most: number): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= most ? Math.ceil(value) : undefined;
}

/** How a message names a value that is not an amount. */
export function shownAmount(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  return value === null ? 'null' : `a ${typeof value}`;
}

/** Sums of usage. They only grow. */
export interface UsageTotals {
  inputTokens: number;
  outputTokens: number;
  costMicroUsd: number;
  /** The part of the input tokens that providers read from their caches; absent when no provider reported it. */
  cachedInputTokens?: number;
  /** The part of the input tokens that providers wrote to their caches; absent when no provider reported it. */
  cacheWriteInputTokens?: number;
  /** The part of the output tokens that was reasoning; absent when no provider reported it. */
  reasoningTokens?: number;
  /** Some of the tokens, and of the cost, were estimated. */
  estimated?: true;
}

/** Adds to the totals what was used. */
export function countUsage(totals: UsageTotals, usage: Usage): void {
  totals.inputTokens = added(totals.inputTokens, usage.inputTokens);
  totals.outputTokens = added(totals.outputTokens, usage.outputTokens);
  totals.costMicroUsd = added(totals.costMicroUsd, usage.costMicroUsd);
  for (const part of DETAILS) {
    if (usage[part] !== undefined) totals[part] = added(totals[part] ?? 0, usage[part]);
  }
  if (usage.estimated === true) totals.estimated = true;
}

/** The optional parts of the totals, without those that no provider reported. */
export function detailsOf(totals: UsageTotals): Omit<UsageTotals, 'inputTokens' | 'outputTokens' | 'costMicroUsd'> {
  const { inputTokens: _, outputTokens: __, costMicroUsd: ___, ...rest } = totals;
  const known = [...DETAILS, 'estimated' as const].filter((part) => rest[part] !== undefined);
  return Object.fromEntries(known.map((part) => [part, rest[part]]));
}

/** A total plus one amount. A value of an entry that is not an amount counts as 0, and a total never falls. */
export function added(total: number, more: unknown): number {
  return Math.min(total + (amountOf(more, Number.MAX_SAFE_INTEGER) ?? 0), Number.MAX_SAFE_INTEGER);
}
