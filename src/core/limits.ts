/** The budget of a run together with its tasks. An absent limit means unlimited, except for `steps`. */
import { PilotageError } from './errors.ts';
import { microUsdOf, whyNoUsd } from './money.ts';
import { shownAmount } from './usage.ts';

interface Common {
  /** How many decisions are carried out. Default 64; with 0 the run decides nothing. */
  readonly steps?: number;
  /** How many calls of tools are started. A further call is refused: the refusal is the call's outcome. */
  readonly calls?: number;
  /** Milliseconds since the epoch. */
  readonly deadlineAt?: number;
  /** Input and output tokens of all model calls. */
  readonly tokens?: number;
  /**
   * What happens when a limit is reached, or the next call does not fit what is left: `finish` ends the run, or refuses the call;
   * `pause` holds the run until somebody raises the limit, and makes the call then. Tasks have `finish`. Default `finish`.
   */
  readonly onCeiling?: 'finish' | 'pause';
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

const KEYS: ReadonlySet<string> = new Set<keyof Required<Limits>>([
  ...(['steps', 'calls', 'deadlineAt', 'costUsd', 'tokens', 'onCeiling'] as const),
]);

/**
 * The limits that are set, each read by its name: a class may define them as getters, which copying would lose.
 * @throws PilotageError `invalid_config` naming a key that is not a limit.
 */
export function givenLimits(limits: Limits | undefined): Limits {
  if (limits === undefined) return {};
  assertNames(limits);
  const set: Record<string, unknown> = {};
  for (const name of KEYS) {
    const value: unknown = Reflect.get(limits, name);
    if (value !== undefined) set[name] = value;
  }
  return set;
}

function assertNames(limits: Limits): void {
  const other = Object.keys(limits).find((key) => !KEYS.has(key));
  if (other === undefined) return;
  throw refusal(`limits.${other} is not a limit; the limits are ${[...KEYS].join(', ')}. costUsd is in US dollars.`);
}

/** @throws PilotageError `invalid_config` naming a key that is not a limit, or a limit with a wrong value. */
export function assertLimits(limits: Limits): void {
  assertNames(limits);
  for (const name of ['steps', 'calls', 'deadlineAt', 'tokens'] as const) {
    const value = limits[name];
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    throw refusal(`limits.${name} is ${shownAmount(value)}; give a number from 0 up, or leave it out.`);
  }
  const { costUsd, onCeiling } = limits;
  const why = costUsd === undefined ? undefined : whyNoUsd(costUsd);
  if (why !== undefined) throw refusal(`limits.costUsd is ${shownAmount(costUsd)}; ${why}.`);
  if (onCeiling !== undefined && onCeiling !== 'finish' && onCeiling !== 'pause') {
    throw refusal(`limits.onCeiling is ${String(onCeiling)}; give finish or pause.`);
  }
}

/** @throws PilotageError `invalid_config` also for `costUsd: 0`, with which a run would end before its first move. */
export function assertRunLimits(limits: Limits): void {
  assertLimits(limits);
  if (limits.costUsd !== 0) return;
  throw refusal(
    'limits.costUsd is 0, which leaves nothing for the first move. Give more, or leave it out for no limit.',
  );
}

/** Converts limits to the form that a run records. @throws as `assertLimits`. */
export function runLimitsOf(limits: Limits): RunLimits {
  assertLimits(limits);
  const { costUsd, ...same } = givenLimits(limits);
  return costUsd === undefined ? same : { ...same, costMicroUsd: microUsdOf(costUsd) };
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
