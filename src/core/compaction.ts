/** How a request becomes shorter, and what a run learns of how long it may be. */
import type { ErrorData } from './errors.ts';
import type { Usage } from './limits.ts';

/** A summary in place of a run's first steps. The steps stay in the journal; only requests to a model get shorter. */
export interface Summary {
  readonly goals: readonly string[];
  readonly facts: readonly string[];
  readonly pending: readonly string[];
  readonly lastOutputDigest: string;
  readonly note: string;
}

/** What a server, or a planner, says of the size of a request. All counts are tokens, as the server counts them. */
export interface Overflow {
  /** `input`: the request is too long. `output`: it asks for too long a reply. */
  readonly kind: 'input' | 'output';
  /** The window, or the longest request. */
  readonly limitTokens?: number;
  /** The length of the request. */
  readonly sentTokens?: number;
  /** The length of the reply that was asked for. */
  readonly wishTokens?: number;
  /** The length of a reply that may be asked for. */
  readonly mostTokens?: number;
}

export interface Compaction {
  readonly summary: Summary;
  /** The summary covers the steps before this index; from it on they are sent in full. */
  readonly before: number;
  /** Estimated tokens of the request that was found too long. */
  readonly tokenEstimate: number;
  /** The summary covers the earlier turns too, up to and with this run of the session. Absent: none of them. */
  readonly earlier?: string;
  /** The calls of those turns that may have changed something, a line each, as they were recorded. Absent: there were none. */
  readonly made?: readonly string[];
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

/** What a run has learnt of how much one of its models takes. All counts are tokens. */
export interface ContextLimit {
  /** The name of the model in its pool. */
  readonly model: string;
  /** By our own count a request must have fewer than this. Absent: only the length of replies is known to be limited. */
  readonly tokens?: number;
  /** The window, or the longest request, as its server said. */
  readonly windowTokens?: number;
  /** How many of the server's tokens one of ours is. */
  readonly scale?: number;
  /** The reply that was asked for, of a server that counts it as part of the window. */
  readonly wishTokens?: number;
  /** The longest reply that may be asked for. */
  readonly replyTokens?: number;
}

/** Results of the last step that are to be sent as previews. */
export interface Shortening {
  /** Indexes of the calls. */
  readonly calls: readonly number[];
  /** How many bytes each of their previews may have. */
  readonly bytes: number;
}

/** The result of trying to shorten a run's history. A failure is recorded, and the try is repeated at a later step. */
export type CompactionAttempt = { readonly usage?: Usage } & (
  | { readonly compaction: Compaction }
  | { readonly shorten: Shortening; readonly tokenEstimate: number }
  | { readonly failure: ErrorData & { readonly code: CompactionErrorCode }; readonly tokenEstimate: number }
);
