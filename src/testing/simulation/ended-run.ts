/** A run of a history that is over, as its checks read it. */
import type { Entry } from '../../core/entry.ts';
import type { RunState } from '../../view/run-state.ts';
import type { LedgerRun } from './ledger.ts';

export interface EndedRun extends LedgerRun {
  readonly id: string;
  readonly state: RunState;
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

export function ownEntries({ entries }: Pick<EndedRun, 'entries'>): readonly Entry[] {
  const [first] = entries;
  const isFork = first?.kind === 'started' && first.fork !== undefined && first.task === undefined;
  return isFork ? entries.slice(first.fork.entries) : entries;
}
