/**
 * Runs that this process has claimed and could not carry out: their code is another one, or they cannot be read here. Each
 * was let go of at once, for others who can, and is not claimed here again for a while, so that processes of two versions
 * do not take turns at it.
 */
import { type Clock, type ErrorData, PilotageError, steadyMs, Thrown } from '#core';
import { isTransientStoreError } from '../journal/patience.ts';

const FIRST_MS = 2_000;
const LONGEST_MS = 300_000;
/** The oldest are forgotten beyond this. They are claimed again at once then, before what waits behind them: so it is far out. */
const MOST = 100_000;

const MOST_WORDS_CHARS = 2_000;

/** What the record of a run says of why it was let go of. */
export function problemOf(error: unknown): ErrorData {
  const { code, name, message } = Thrown.of(error);
  return { code: code ?? name, message: message.slice(0, MOST_WORDS_CHARS) };
}

/** Whether this process cannot use its journal any more: trying again is useless, for every run. */
export function isJournalGone(error: unknown): boolean {
  if (!PilotageError.is(error)) return false;
  if (error.code === 'journal_newer') return error.data?.['run'] === undefined;
  return error.code === 'journal_closed' || error.code === 'journal_replaced';
}

/** The store cannot take it now; a disk that cannot be written may be one day. */
export function mayComeBack(error: unknown): boolean {
  return isTransientStoreError(error) || PilotageError.is(error, 'journal_read_only');
}

interface Refusal {
  readonly times: number;
  /** By the steady clock. */
  readonly until: number;
}

export class Refusals {
  readonly #clock: Clock;
  readonly #refused = new Map<string, Refusal>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns how often in a row it was refused, and until when it is left to others. */
  note(run: string): Refusal {
    const times = (this.#refused.get(run)?.times ?? 0) + 1;
    const refusal = { times, until: steadyMs(this.#clock) + Math.min(FIRST_MS * 2 ** (times - 1), LONGEST_MS) };
    this.#refused.delete(run);
    this.#refused.set(run, refusal);
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > MOST && oldest !== undefined) this.#refused.delete(oldest);
    return refusal;
  }

  /** The run is left to others now. */
  has(run: string): boolean {
    const refusal = this.#refused.get(run);
    return refusal !== undefined && refusal.until > steadyMs(this.#clock);
  }

  /** The runs that are left to others now. */
  all(): readonly string[] {
    if (this.#refused.size === 0) return [];
    const now = steadyMs(this.#clock);
    const runs: string[] = [];
    for (const [run, { until }] of this.#refused) if (until > now) runs.push(run);
    return runs;
  }

  forget(run: string): void {
    this.#refused.delete(run);
  }
}
