/** A run of a history that is over, as its checks read it. */
import type { Entry } from '../../core/entry.ts';
import type { RunState } from '../../view/run-state.ts';
import type { LedgerRun } from './ledger.ts';

export interface EndedRun extends LedgerRun {
  readonly id: string;
  readonly state: RunState;
}

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

/** The entries of a kind. */
export function entriesOf<K extends Entry['kind']>({ entries }: Pick<EndedRun, 'entries'>, kind: K): Of<K>[] {
  return entries.filter((entry): entry is Of<K> => entry.kind === kind);
}
