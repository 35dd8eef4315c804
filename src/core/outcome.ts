/** The outcome of a call. Every call has exactly one. */
import type { ArtifactRef } from './artifact.ts';
import type { ErrorData } from './errors.ts';
import type { Json, JsonObject } from './json.ts';

/** The answer to what a planner asks. */
export type Verdict = 'approve' | 'reject' | 'resume' | 'timeout';
/** The answer to any pause. `settle`: somebody has said what became of a call in doubt. */
export type PauseVerdict = Verdict | 'settle';

export type Outcome =
  /** The tool's value. With `artifact`, the value is a preview and the artifact has the whole. */
  | { readonly kind: 'value'; readonly value: Json; readonly artifact?: ArtifactRef }
  | { readonly kind: 'error'; readonly error: ErrorData }
  /** The call may or may not have happened: its `once` tool has `inDoubt: 'tell'`, or its run was cancelled. */
  | { readonly kind: 'unknown'; readonly error: ErrorData }
  /** Stopped by its join, by a cancel or by a deadline. */
  | { readonly kind: 'cancelled'; readonly error: ErrorData }
  /** The call never started, because a branch that it needed did not end with a value, or its condition did not hold. */
  | { readonly kind: 'skipped'; readonly error: ErrorData }
  /** The answer to a pause. */
  | { readonly kind: 'verdict'; readonly verdict: Verdict; readonly payload?: JsonObject };

/** Kinds of failures: somebody rejected the call, or nobody approved it in time (`rejected`), or any other failure. */
export type FailureKind = 'error' | 'rejected';

/** The kind of a failed call. `undefined` for a value, and for a call that was skipped or stopped because of another call. */
export function failureKindOf(outcome: Outcome): FailureKind | undefined {
  if (outcome.kind !== 'error' && outcome.kind !== 'unknown') return undefined;
  return NOES.has(outcome.error.code) ? 'rejected' : 'error';
}

const NOES: ReadonlySet<string> = new Set(['tool_rejected', 'approval_timeout']);

/** The error of an outcome; `undefined` when it has none. */
export function errorOf(outcome: Outcome): ErrorData | undefined {
  return 'error' in outcome ? outcome.error : undefined;
}
