/**
 * The store's side of what passes in a run and is recorded nowhere, such as the text of the open step, on its way to readers in other
 * processes. Its rows say nothing that counts: they may be lost, and nobody waits for them.
 */
import type { Json } from '#core';

/** A run that somebody in some process reads, or has read lately. */
export interface ReadRun {
  readonly run: string;
  /** For how many milliseconds it is read still, by the store's clock. 0 or less: no more. */
  readonly leftMs: number;
}

/** What the owner of a run tells its readers. */
export interface NewPassing {
  readonly run: string;
  /** That of the lease under which the run is driven. Under another one than the run's nothing is put. */
  readonly fence: number;
  /** True: what was put before goes. */
  readonly clears?: boolean;
  /** Absent: nothing is added. */
  readonly value?: Json;
}

export interface PassingRow {
  /** It grows from row to row of a run. */
  readonly number: number;
  readonly fence: number;
  readonly value: Json;
}

/** So long it is known that a run was read. Its rows go after that, when somebody begins to read some run. */
export const READ_LATELY_MS = 600_000;

export interface PassingStore {
  /** These runs are read for `forMs` from now on. Runs that are not there are left out. */
  want(runs: readonly string[], forMs: number): Promise<void>;
  /** The runs that are read, and those that were not long ago. */
  wanted(): Promise<readonly ReadRun[]>;
  /** Calls `wake` when other runs may be read, by what another process did. It may be called without news, and news may be lost. */
  watchWanted(wake: () => void): () => void;
  /** Puts rows, each behind those of its run. Runs that are not there, or have another fence, are left out. */
  put(rows: readonly NewPassing[]): Promise<void>;
  /** The rows of the run behind the one of this number, in order. None for a run that is not there. */
  read(run: string, after: number): Promise<readonly PassingRow[]>;
  /** Calls `wake` when rows of the run were put, from any process. It may be called without news. */
  watch(run: string, wake: () => void): () => void;
}
