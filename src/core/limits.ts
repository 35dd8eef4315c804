/** The budget of a whole run with its children. An absent limit is no limit, but for steps. */
import { PilotageError } from './errors.ts';

export interface Limits {
  /** Decisions carried out. Default 64. 0 means none left. */
  readonly steps?: number;
  /** Calls of tools that are started. One more is refused, as the outcome of that call. */
  readonly calls?: number;
  /** Milliseconds since the epoch. */
  readonly deadlineAt?: number;
  /** Millionths of a US dollar, for model calls and priced tools. */
  readonly costMicroUsd?: number;
  /** Input and output tokens of all model calls. */
  readonly tokens?: number;
  /** What happens when one is reached: end the run, or pause it until somebody raises the limit. Default `finish`. */
  readonly onCeiling?: 'finish' | 'pause';
}

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

/** @throws PilotageError `invalid_config` naming the limit that is no number from 0 up. */
export function assertLimits(limits: Limits): void {
  for (const name of ['steps', 'calls', 'deadlineAt', 'costMicroUsd', 'tokens'] as const) {
    const value = limits[name];
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    throw new PilotageError('invalid_config', `limits.${name} is ${value}; give a number from 0 up, or leave it out.`);
  }
  if (limits.onCeiling !== undefined && limits.onCeiling !== 'finish' && limits.onCeiling !== 'pause') {
    throw new PilotageError('invalid_config', `limits.onCeiling is ${String(limits.onCeiling)}; give finish or pause.`);
  }
}
