/** A summary in place of a run's first steps. The steps stay in the journal; only requests to a model get shorter. */
import type { ErrorData } from './errors.ts';
import type { Usage } from './usage.ts';

export interface Summary {
  readonly goals: readonly string[];
  readonly facts: readonly string[];
  readonly pending: readonly string[];
  readonly lastOutputDigest: string;
  readonly note: string;
}

export interface Compaction {
  readonly summary: Summary;
  /** The summary covers the steps before this index; from it on they are sent in full. */
  readonly before: number;
  /** Estimated tokens of the request that was found too long. */
  readonly tokenEstimate: number;
}

/**
 * - `summariser_error`: it could not be asked, or its reply did not come.
 * - `empty_summary`: it said nothing.
 * - `invalid_summary`: a part is missing, says nothing or is cut off.
 * - `long_summary`: it is no shorter than what it would replace.
 * - `estimator_error`: the request could not be counted.
 */
export type CompactionErrorCode =
  | 'summariser_error'
  | 'empty_summary'
  | 'invalid_summary'
  | 'long_summary'
  | 'estimator_error';

/** Tries in a row that gave no summary. Whoever tries again waits the longer the more there were. */
export interface CompactionFailures {
  readonly times: number;
  /** The step before which the last of them was made. */
  readonly step: number;
}

/** What came of trying to shorten a run's history. A failure is recorded, and tried again at a later step. */
export type CompactionAttempt = { readonly usage?: Usage } & (
  | { readonly compaction: Compaction }
  | { readonly failure: ErrorData & { readonly code: CompactionErrorCode }; readonly tokenEstimate: number }
);
