/** What became of one call: exactly one of these, always. */
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
  /** It may have happened and may not: of a `once` tool that says `inDoubt: 'tell'`, or of a run that was cancelled. */
  | { readonly kind: 'unknown'; readonly error: ErrorData }
  /** Stopped by its join, by a cancel or by a deadline. */
  | { readonly kind: 'cancelled'; readonly error: ErrorData }
  /** Never started, because a branch it needed did not end well or its `when` did not hold. */
  | { readonly kind: 'skipped'; readonly error: ErrorData }
  /** What was answered to a pause. */
  | { readonly kind: 'verdict'; readonly verdict: Verdict; readonly payload?: JsonObject };

/** How a call came to nothing: somebody said no, or nobody said yes in time; or everything else. */
export type FailureKind = 'error' | 'rejected';

/** `undefined` for what is no failure of the call itself: a value, or one that was skipped or stopped for another. */
export function failureKindOf(outcome: Outcome): FailureKind | undefined {
  if (outcome.kind !== 'error' && outcome.kind !== 'unknown') return undefined;
  return NOES.has(outcome.error.code) ? 'rejected' : 'error';
}

const NOES: ReadonlySet<string> = new Set(['tool_rejected', 'approval_timeout']);

/** The error of an outcome that has one. */
export function errorOf(outcome: Outcome): ErrorData | undefined {
  return 'error' in outcome ? outcome.error : undefined;
}
