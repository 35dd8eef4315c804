/** The budget of a run together with its tasks. An absent limit means unlimited, except for `steps`. */
import { PilotageError } from './errors.ts';
import { isInSeconds, secondsGiven } from './moment.ts';
import { assertKnownKeys, type OptionShape } from './options.ts';

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
const WITHIN = {
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

interface ReadUsage {
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
  if (hasDetails(usage)) {
    for (const part of DETAILS) {
      const whole = usage[WITHIN[part]];
      const amount = usage[part] ?? 0;
      if (whole === undefined || amount <= whole) continue;
      wrong.push(`${part} is ${amount}, of ${whole} ${WITHIN[part]}`);
      delete usage[part];
    }
  }
  if (said.estimated === true) usage.estimated = true;
  return wrong.length === 0 ? { usage } : { usage, wrong: wrong.join('; ') };
}

function hasDetails({ cachedInputTokens, cacheWriteInputTokens, reasoningTokens }: Usage): boolean {
  return cachedInputTokens !== undefined || cacheWriteInputTokens !== undefined || reasoningTokens !== undefined;
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
  return value === null ? 'null' : `a value of the type ${typeof value}`;
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
  if (hasDetails(usage)) {
    for (const part of DETAILS) {
      if (usage[part] !== undefined) totals[part] = added(totals[part] ?? 0, usage[part]);
    }
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
function added(total: number, more: unknown): number {
  return Math.min(total + (amountOf(more, Number.MAX_SAFE_INTEGER) ?? 0), Number.MAX_SAFE_INTEGER);
}

/** Money as people write it, in US dollars, and as runs count it: in whole millionths of one, so that sums are exact. */
const MICRO_USD = 1_000_000;

/** Above this amount in dollars, a number was probably meant in another unit. */
const MOST_USD = 100_000;

/** Rounds to the nearest millionth. */
export function microUsdOf(usd: number): number {
  return Math.round(usd * MICRO_USD);
}

/** Money that was used, rounded up, as tokens are: many amounts of less than a millionth are not nothing. */
export function usedMicroUsd(usd: number): number {
  return Math.max(0, Math.ceil(usd * MICRO_USD - FLOAT_NOISE));
}

/** What a product may have too much, in millionths of a dollar, because 1.1 cannot be written in binary. */
const FLOAT_NOISE = 1e-6;

export function usdOf(microUsd: number): number {
  return microUsd / MICRO_USD;
}

/** Why the value is not a plausible amount of US dollars; `undefined` when it is. 0 is plausible. */
export function whyNoUsd(value: unknown): string | undefined {
  if (typeof value !== 'number' || !(value >= 0)) return 'give US dollars, a number from 0 up, or leave it out';
  if (value > 0 && value * MICRO_USD < 1)
    return 'that is less than a millionth of a US dollar; give more, or leave it out';
  if (value <= MOST_USD) return undefined;
  return `that is more than ${MOST_USD.toLocaleString('en')} US dollars; give the amount in dollars, not in cents or millionths`;
}

interface Common {
  /**
   * How many decisions are carried out for one message of the user: each further message (`USER_MESSAGE`, `REDIRECT`, the answer to a
   * pause with the reason `await_input`) begins a turn of its own. Default 64; with 0 the run decides nothing.
   */
  readonly steps?: number;
  /** What `steps` is counted in. `turn`: from the user's last message. `run`: from the start of the run. Default `turn`. */
  readonly stepsPer?: 'turn' | 'run';
  /** How many calls of tools are started. A further call is refused: the refusal is the call's outcome. */
  readonly calls?: number;
  /** Milliseconds since the epoch. */
  readonly deadlineAt?: number;
  /** Input and output tokens of all model calls. */
  readonly tokens?: number;
  /**
   * What happens when a limit is reached, or the next call does not fit what is left: `finish` ends the run, or refuses the call;
   * `pause` holds the run until somebody raises the limit, and makes the call then. `answer` ends the run too, or refuses the call, but keeps
   * something back from the beginning, so that the planner has one more move, without calls, to say what it has found. Tasks have `finish`.
   * Default `finish`.
   */
  readonly onCeiling?: 'finish' | 'pause' | 'answer';
}

/** Limits as people and programs write them. */
export interface Limits extends Common {
  /** US dollars, for model calls and priced tools: 0.5 is fifty cents. Every model that may be asked needs prices. */
  readonly costUsd?: number;
  /** Only `RunLimits` has this field. */
  readonly costMicroUsd?: never;
}

/** Limits as a run records them. */
export interface RunLimits extends Common {
  /** Whole millionths of a US dollar. */
  readonly costMicroUsd?: number;
  /** Only `Limits` has this field. */
  readonly costUsd?: never;
}

/** The axes on which a task has limits, and on which its owner reserves a share for it. */
export type TaskShare = Pick<RunLimits, 'steps' | 'calls' | 'deadlineAt' | 'costMicroUsd' | 'tokens'>;

export const DEFAULT_STEP_LIMIT = 64;

export type BudgetAxis = 'steps' | 'calls' | 'deadline' | 'cost' | 'tokens';

/** The axes whose limit ends a run. Calls are not among them: a run without calls can still decide. */
export type CeilingAxis = Exclude<BudgetAxis, 'calls'>;

/** The reason that a run ends with when a limit ended it. Each limit has its own reason. */
export type CeilingReason = 'max_steps' | 'max_cost' | 'max_tokens' | 'deadline_exceeded';

export const CEILING_REASONS: Readonly<Record<CeilingAxis, CeilingReason>> = {
  steps: 'max_steps',
  cost: 'max_cost',
  tokens: 'max_tokens',
  deadline: 'deadline_exceeded',
};

const AXES_BY_REASON: ReadonlyMap<string, CeilingAxis> = new Map(
  (Object.keys(CEILING_REASONS) as CeilingAxis[]).map((axis) => [CEILING_REASONS[axis], axis]),
);

/** The limit that ends runs with this reason; `undefined` for other reasons. */
export function ceilingOf(reason: string): CeilingAxis | undefined {
  return AXES_BY_REASON.get(reason);
}

const SHAPE: OptionShape<Omit<Limits, 'costMicroUsd'>> = {
  ...({
    steps: 'any?',
    stepsPer: 'any?',
    calls: 'any?',
    deadlineAt: 'any?',
    costUsd: 'any?',
    tokens: 'any?',
    onCeiling: 'any?',
  } as const),
};
const KEYS: readonly string[] = Object.keys(SHAPE);

/**
 * The limits that are set, each read by its name: a class may define them as getters, which copying would lose.
 * @throws PilotageError `invalid_config` naming a key that is not a limit.
 */
export function givenLimits(limits: Limits | undefined): Limits {
  if (limits === undefined) return {};
  assertKnownKeys('limits', limits, KEYS);
  const set: Record<string, unknown> = {};
  for (const name of KEYS) {
    const value: unknown = Reflect.get(limits, name);
    if (value !== undefined) set[name] = value;
  }
  return set;
}

/** @throws PilotageError `invalid_config` naming a key that is not a limit, or a limit with a wrong value. */
export function assertLimits(limits: Limits): void {
  assertKnownKeys('limits', limits, KEYS);
  for (const name of ['steps', 'calls', 'deadlineAt', 'tokens'] as const) {
    const value = limits[name];
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    throw refusal(`limits.${name} is ${shownAmount(value)}; give a number from 0 up, or leave it out.`);
  }
  const { costUsd, onCeiling, stepsPer } = limits;
  const why = costUsd === undefined ? undefined : whyNoUsd(costUsd);
  if (why !== undefined) throw refusal(`limits.costUsd is ${shownAmount(costUsd)}; ${why}.`);
  if (onCeiling !== undefined && onCeiling !== 'finish' && onCeiling !== 'pause' && onCeiling !== 'answer') {
    throw refusal(`limits.onCeiling is ${String(onCeiling)}; give finish, pause or answer.`);
  }
  if (stepsPer !== undefined && stepsPer !== 'turn' && stepsPer !== 'run') {
    throw refusal(`limits.stepsPer is ${String(stepsPer)}; give turn or run.`);
  }
}

/**
 * @param now milliseconds since the epoch.
 * @throws PilotageError `invalid_config` also for `costUsd: 0`, with which a run would end before its first move, and for a deadline in seconds.
 */
export function assertRunLimits(limits: Limits, now: number): void {
  assertLimits(limits);
  const { deadlineAt } = limits;
  if (deadlineAt !== undefined && isInSeconds(deadlineAt, now))
    throw refusal(secondsGiven('limits.deadlineAt', deadlineAt));
  if (limits.costUsd !== 0) return;
  throw refusal(
    'limits.costUsd is 0, which leaves nothing for the first move. Give more, or leave it out for no limit.',
  );
}

/** Converts limits to the form that a run records. @throws as `assertLimits`. */
export function runLimitsOf(limits: Limits): RunLimits {
  assertLimits(limits);
  const { costUsd, steps, ...same } = givenLimits(limits);
  return {
    ...same,
    // A step is not begun for half of one.
    ...(steps === undefined ? {} : { steps: Math.floor(steps) }),
    ...(costUsd === undefined ? {} : { costMicroUsd: microUsdOf(costUsd) }),
  };
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
