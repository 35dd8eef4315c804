/** The budget of a whole run with its children. An absent limit is no limit, but for steps. */
import { PilotageError } from './errors.ts';
import { microUsdOf, whyNoUsd } from './money.ts';
import { shownAmount } from './usage.ts';

interface Common {
  /** Decisions carried out. Default 64. 0 means none left. */
  readonly steps?: number;
  /** Calls of tools that are started. One more is refused, as the outcome of that call. */
  readonly calls?: number;
  /** Milliseconds since the epoch. */
  readonly deadlineAt?: number;
  /** Input and output tokens of all model calls. */
  readonly tokens?: number;
  /**
   * What happens when one is reached, or the next call does not fit what is left of it: `finish` ends the run, or refuses the call;
   * `pause` holds the run until somebody raises the limit, and makes the call then. Tasks have `finish`. Default `finish`.
   */
  readonly onCeiling?: 'finish' | 'pause';
}

/** As people and programs write them. */
export interface Limits extends Common {
  /** US dollars, for model calls and priced tools: 0.5 is fifty cents. Every model that may be asked needs prices. */
  readonly costUsd?: number;
  /** Is of `RunLimits`. */
  readonly costMicroUsd?: never;
}

/** As a run records them. */
export interface RunLimits extends Common {
  /** Whole millionths of a US dollar. */
  readonly costMicroUsd?: number;
  /** Is of `Limits`. */
  readonly costUsd?: never;
}

/** The part of a run's limits that a task has, and that its owner sets aside. */
export type TaskShare = Pick<RunLimits, 'steps' | 'calls' | 'deadlineAt' | 'costMicroUsd' | 'tokens'>;

export const DEFAULT_STEP_LIMIT = 64;

export type BudgetAxis = 'steps' | 'calls' | 'deadline' | 'cost' | 'tokens';

/** The axes on which a run may come to its end: without calls it can still decide. */
export type CeilingAxis = Exclude<BudgetAxis, 'calls'>;

/** What a run ends with that a limit has ended: each limit has a word of its own. */
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

/** Which limit has ended a run with this reason, if one has. */
export function ceilingOf(reason: string): CeilingAxis | undefined {
  return AXES_BY_REASON.get(reason);
}

const KEYS: ReadonlySet<string> = new Set<keyof Required<Limits>>([
  ...(['steps', 'calls', 'deadlineAt', 'costUsd', 'tokens', 'onCeiling'] as const),
]);

/**
 * The limits that are set, each read by its name: those of a class may be getters, which copying leaves behind.
 * @throws PilotageError `invalid_config` naming what is no limit.
 */
export function givenLimits(limits: Limits | undefined): Limits {
  if (limits === undefined) return {};
  assertNames(limits);
  const set = [...KEYS].flatMap((name) => {
    const value: unknown = Reflect.get(limits, name);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(set);
}

function assertNames(limits: Limits): void {
  const other = Object.keys(limits).find((key) => !KEYS.has(key));
  if (other === undefined) return;
  throw refusal(`limits.${other} is not a limit; the limits are ${[...KEYS].join(', ')}. costUsd is in US dollars.`);
}

/** @throws PilotageError `invalid_config` naming what is no limit, or a limit that cannot be meant. */
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

/** @throws PilotageError `invalid_config` also for a limit of no money at all: a run would end before its first move. */
export function assertRunLimits(limits: Limits): void {
  assertLimits(limits);
  if (limits.costUsd !== 0) return;
  throw refusal(
    'limits.costUsd is 0, which leaves nothing for the first move. Give more, or leave it out for no limit.',
  );
}

/** As a run records them. @throws as `assertLimits`. */
export function runLimitsOf(limits: Limits): RunLimits {
  assertLimits(limits);
  const { costUsd, ...same } = givenLimits(limits);
  return costUsd === undefined ? same : { ...same, costMicroUsd: microUsdOf(costUsd) };
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
