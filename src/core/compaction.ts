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
 * - `summariser_error`: the summariser could not be asked, or did not reply.
 * - `empty_summary`: the summary is empty.
 * - `invalid_summary`: a part of the summary is missing, empty or cut off.
 * - `long_summary`: the summary is not shorter than the steps that it would replace.
 * - `estimator_error`: the request could not be counted.
 */
export type CompactionErrorCode =
  | 'summariser_error'
  | 'empty_summary'
  | 'invalid_summary'
  | 'long_summary'
  | 'estimator_error';

/** Failed tries to summarise, in a row. The more there were, the longer is the wait before the next try. */
export interface CompactionFailures {
  readonly times: number;
  /** The step before which the last try was made. */
  readonly step: number;
}

/** The result of trying to shorten a run's history. A failure is recorded, and the try is repeated at a later step. */
export type CompactionAttempt = { readonly usage?: Usage } & (
  | { readonly compaction: Compaction }
  | { readonly failure: ErrorData & { readonly code: CompactionErrorCode }; readonly tokenEstimate: number }
);
