/** The person who is asked about calls in doubt: looks at the world before answering, and answers the truth. */

import type { PauseNotice, Settlement } from '#runtime';
import { type LedgerLine, ledgerOf } from './ledger.ts';

/**
 * A person knows what no runtime can: that a process stands still, or is at the effect this moment. Nobody answers for a call
 * that may be carried out still.
 */
export interface Surroundings {
  readonly folder: string;
  /** Some process stands still. */
  isAnyStill(): boolean;
  isAlive(pid: number): boolean;
}

/** Attempts that have begun and can still do something. */
export function openAttempts(lines: readonly LedgerLine[], { isAlive }: Pick<Surroundings, 'isAlive'>): LedgerLine[] {
  const left = new Set(lines.flatMap(({ what, attempt }) => (what === 'left' ? [attempt] : [])));
  return lines.filter(({ what, attempt, pid }) => what === 'entered' && !left.has(attempt) && isAlive(pid));
}

/** The answer; `undefined` while it cannot be known. */
export function answerTo(
  { run, payload }: Pick<PauseNotice, 'run' | 'payload'>,
  around: Surroundings,
): Settlement | undefined {
  if (around.isAnyStill()) return undefined;
  const lines = ledgerOf(around.folder, run).filter(({ key }) => key === payload?.['key']);
  if (openAttempts(lines, around).length > 0) return undefined;
  const done = lines.find(({ what }) => what === 'done');
  return done === undefined ? { happened: false } : { happened: true, value: done.value ?? null };
}

/** What the pause lacks that a person needs to answer it. */
export function missingIn({ payload = {} }: PauseNotice): string[] {
  return ['tool', 'args', 'key', 'since', 'why'].filter((part) => payload[part] === undefined);
}
