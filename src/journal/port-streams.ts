/** The store's side of streams. */
import type { Json, StreamRow } from '#core';

/** A row behind the last one of its stream, or the end of the stream. */
export type NewStreamRow = { readonly name: string } & ({ readonly value: Json } | { readonly closes: true });

export interface StreamAppend {
  readonly run: string;
  /** That of the lease under which the call is made. */
  readonly fence: number;
  readonly step: number;
  readonly call: number;
  readonly attempt: number;
  readonly rows: readonly NewStreamRow[];
}

export interface StreamRecord {
  readonly name: string;
  /** How many rows it has. */
  readonly rows: number;
  /** True: nothing was written since somebody has closed it. */
  readonly closed: boolean;
}

/** Rows beside a run's entries. They are gone with the run, and when its content is erased. */
export interface StreamStore {
  /**
   * Adds rows, all of them in one commit and in order, each with the next number of its stream.
   * @throws PilotageError `lease_lost` when the fence is not the run's any more, `run_not_found`.
   */
  append(append: StreamAppend): Promise<void>;
  /** Rows from number `from` on, in order, at most `limit`, and what is known of the stream in that moment. @throws PilotageError `run_not_found`. */
  read(
    run: string,
    name: string,
    from: number,
    limit: number,
  ): Promise<{ readonly rows: readonly StreamRow[]; readonly closed: boolean }>;
  /** In the order of their names. @throws PilotageError `run_not_found`. */
  list(run: string): Promise<readonly StreamRecord[]>;
}
