/** A run of a history that is over, as its checks read it: by its entries, and not by the fold that they judge. */
import type { Entry, RunLimits } from '#core';
import type { Ledger, LedgerRun } from './ledger.ts';

export interface EndedRun extends LedgerRun {
  readonly id: string;
}

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

/** The run's own entries of a kind; of a fork those behind the ones that it was made with. */
export function entriesOf<K extends Entry['kind']>(run: Pick<EndedRun, 'entries'>, kind: K): Of<K>[] {
  return ownEntries(run).filter((entry): entry is Of<K> => entry.kind === kind);
}

/** What the run was started with. */
export function startOf({ entries: [first] }: Pick<EndedRun, 'entries'>): Of<'started'> | undefined {
  return first?.kind === 'started' ? first : undefined;
}

/** `undefined` while it goes on. */
export function endingOf({ entries }: Pick<EndedRun, 'entries'>): Of<'finished'> | Of<'failed'> | undefined {
  const last = entries.at(-1);
  return last?.kind === 'finished' || last?.kind === 'failed' ? last : undefined;
}

/** The run that it is a task of. */
export function parentOf(run: Pick<EndedRun, 'entries'> | undefined): string | undefined {
  return run && startOf(run)?.task?.parent;
}

/** Its limits at the end: whoever answers a pause of the whole run may raise them. */
export function limitsOf(run: Pick<EndedRun, 'entries'>): RunLimits {
  const whole = new Set(
    run.entries.flatMap((entry) => (entry.kind === 'paused' && entry.step === undefined ? [entry.token] : [])),
  );
  let limits: RunLimits = startOf(run)?.limits ?? {};
  for (const entry of run.entries) {
    if (entry.kind === 'resumed' && whole.has(entry.token)) limits = { ...limits, ...entry.limits };
  }
  return limits;
}

/** It undoes what it has done, or has: the limits of the run do not stop that. */
export function hasUnwound({ entries }: Pick<EndedRun, 'entries'>): boolean {
  return entries.some(({ kind }) => kind === 'unwinding');
}

export function ownEntries({ entries }: Pick<EndedRun, 'entries'>): readonly Entry[] {
  const [first] = entries;
  const isFork = first?.kind === 'started' && first.fork !== undefined && first.task === undefined;
  return isFork ? entries.slice(first.fork.entries) : entries;
}

/** Whether the entry says that a time has come which the clock of whoever wrote it had not shown: it may have been set back since. */
export function isBeforeTime({ seq, at }: Entry, time: number, run: string, ledger: Ledger): boolean {
  if (at >= time) return false;
  const landed = ledger.appends.find((append) => append.run === run && append.from <= seq && seq <= append.to);
  return !ledger.clocksSet.some((set) => set.shown >= time && set.at <= (landed?.at ?? at));
}
