/** Undo: what a run that ends without having reached its goal does about the calls that it has made. */
import { isControl, type Message } from './control.ts';
import type { FinishReason } from './decision.ts';
import { PilotageError } from './errors.ts';
import { microUsdOf, shownAmount, whyNoUsd } from './limits.ts';
import { assertOptions, type OptionShape } from './options.ts';

/** What becomes of calls of a run that ends other than by its goal. `undo`: those whose tools name an undo are undone. `keep`: they stay as they are. */
export const ON_FAIL = ['undo', 'keep'] as const;
export type OnFail = (typeof ON_FAIL)[number];

/** What undoing may use, beside the limits of the run. */
export interface UndoLimits {
  /** How many calls may be started to undo others. Default 1,000. */
  readonly calls?: number;
  /** US dollars. Default: a tenth of the run's own limit, and no limit where the run has none. */
  readonly costUsd?: number;
  /** Milliseconds from its beginning; the time in which a person is asked does not count. Default 300,000 (5 minutes). */
  readonly timeoutMs?: number;
}

/** What callers, agents and runtimes say of it. */
export interface UndoOptions {
  /**
   * What becomes of the calls that the run has made when it ends other than by its goal: by a failure, a cancel, a limit, or because its planner
   * saw no way. With `undo` those whose tools name an `undo` are undone first, the last one first. It is recorded with the run. Default `keep`.
   */
  readonly onFail?: OnFail;
  /** What undoing may use, however much of the run's own limits is left. */
  readonly undo?: UndoLimits;
}

/** What a run that undoes its calls may use for it, as it records it. Present: it does so. */
export interface RunUndo {
  readonly calls: number;
  readonly timeoutMs: number;
  /** Absent: no limit. */
  readonly costMicroUsd?: number;
}

const LIMITS: OptionShape<UndoLimits> = { calls: 'whole?', costUsd: 'any?', timeoutMs: 'count?' };
const DEFAULTS = { calls: 1_000, timeoutMs: 300_000 } as const;
/** So much of the limit on cost of a run is there for undoing, beside it. */
const COST_PART = 10;

/** @param of who is given the options, for messages. @throws PilotageError `invalid_config`. */
export function assertUndoOptions(of: string, { onFail, undo }: UndoOptions): void {
  if (onFail !== undefined && !ON_FAIL.includes(onFail)) {
    throw refusal(`The option onFail of ${of} is ${JSON.stringify(onFail)}; give undo or keep, or leave it out.`);
  }
  if (undo === undefined) return;
  assertOptions(`undo of ${of}`, undo, LIMITS);
  const why = undo.costUsd === undefined ? undefined : whyNoUsd(undo.costUsd);
  if (why !== undefined) throw refusal(`The option undo.costUsd of ${of} is ${shownAmount(undo.costUsd)}; ${why}.`);
}

/**
 * What a run records of these options, those that count most last; `undefined`: it keeps what it has done.
 * @param costMicroUsd the limit of the run.
 */
export function runUndoOf(given: readonly UndoOptions[], costMicroUsd: number | undefined): RunUndo | undefined {
  const onFail = given.reduce<OnFail>((before, { onFail: own = before }) => own, 'keep');
  if (onFail === 'keep') return undefined;
  const { calls, timeoutMs, costUsd } = Object.assign({}, DEFAULTS, ...given.map(({ undo }) => undo)) as UndoLimits &
    typeof DEFAULTS;
  const part = costMicroUsd === undefined ? undefined : Math.ceil(costMicroUsd / COST_PART);
  const cost = costUsd === undefined ? part : microUsdOf(costUsd);
  return cost === undefined ? { calls, timeoutMs } : { calls, timeoutMs, costMicroUsd: cost };
}

/** Reasons that leave what was done as it is: the goal is reached, or somebody else goes on. */
const KEEPS: ReadonlySet<FinishReason> = new Set(['goal', 'continued', 'handed_over']);

/** Whether a run with this ending has not reached its goal, and nobody goes on with it. */
export function isUndoneBy(
  ending: { readonly kind: 'failed' } | { readonly kind: 'finished'; readonly reason: FinishReason },
): boolean {
  return ending.kind === 'failed' || !KEEPS.has(ending.reason);
}

/**
 * Whether a CANCEL is a second one: by somebody who does not want to wait for what the first one has led to (`again`). Two that come before that are
 * one. Neither that a run above has ended nor that the user has sent another message is such a one.
 */
export function isSecondCancel(message: Message): boolean {
  if (!isControl(message) || message.type !== 'CANCEL') return false;
  return message.again === true || (message.payload?.['cascaded'] === true && message.payload['stopsUndo'] === true);
}

/** Begins the id of the CANCEL by which a session's next turn interrupts the one under way. */
export const INTERRUPT = 'interrupt_';

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
