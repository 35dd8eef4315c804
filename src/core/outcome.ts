/** The outcome of a call. Every call has exactly one. */
import type { ArtifactRef } from './artifact.ts';
import type { ErrorData } from './errors.ts';
import type { Json, JsonObject } from './json.ts';
import type { ModelOutput, TakenMedia } from './model-output.ts';

/** The answer to what a planner asks. `superseded`: nobody answered before the goal changed, or a message came. */
export type Verdict = 'approve' | 'reject' | 'resume' | 'timeout' | 'superseded';
/** The answer to any pause. `settle`: somebody has said what became of a call in doubt. `answer`: somebody gave a value in place of the call. */
export type PauseVerdict = Verdict | 'settle' | 'answer';

export type Outcome =
  /** The tool's value. */
  | {
      readonly kind: 'value';
      readonly value: Json;
      /** The whole value, of which `value` is a preview. */
      readonly artifact?: ArtifactRef;
      /** Files that were taken out of the value. */
      readonly media?: readonly TakenMedia[];
      /** What a model reads in place of the value, where the tool has `toModelOutput`. */
      readonly modelOutput?: ModelOutput;
    }
  | { readonly kind: 'error'; readonly error: ErrorData }
  /** The call may or may not have happened: its `once` tool has `inDoubt: 'tell'`, or its run was cancelled. */
  | { readonly kind: 'unknown'; readonly error: ErrorData }
  /** Stopped by its join, by a cancel or by a deadline. */
  | { readonly kind: 'cancelled'; readonly error: ErrorData }
  /**
   * The call never started, because a branch that it needed did not end with a value, its condition did not hold, or the question whether
   * it may be made was withdrawn.
   */
  | { readonly kind: 'skipped'; readonly error: ErrorData }
  /** The answer to a pause. */
  | { readonly kind: 'verdict'; readonly verdict: Verdict; readonly payload?: JsonObject };

/** The tool's value stands in the outcome as it is. */
export function isWholeValue({ artifact, media }: Extract<Outcome, { kind: 'value' }>): boolean {
  return artifact === undefined && media === undefined;
}

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

/** Whether a pause ended because tasks ended; no person has said anything. */
export function isWokenByTasks({
  verdict,
  payload,
}: {
  verdict: PauseVerdict;
  payload?: JsonObject | undefined;
}): boolean {
  if (verdict !== 'resume' || payload === undefined) return false;
  const keys = Object.keys(payload);
  return keys.length === 1 && keys[0] === 'group_id';
}

/**
 * Whether a skipped branch was passed over: somebody took it out, a condition did not hold, or so for the branch because of
 * which it was skipped. It names that one; when that has a value, it was not the value asked for.
 * @param known what was found out before, by the branch. Added to.
 */
export function isPassedOver(
  branch: number,
  outcomeOf: (branch: number) => Outcome | undefined,
  known: Map<number, boolean>,
): boolean {
  const path: number[] = [];
  let isPassed = false;
  for (let at: number | undefined = branch; at !== undefined; ) {
    const outcome = outcomeOf(at);
    const before = known.get(at);
    isPassed = before ?? (outcome?.kind === 'value' ? path.length > 0 : isRemoved(outcome));
    if (before !== undefined || outcome?.kind !== 'skipped') break;
    known.set(at, isPassed);
    path.push(at);
    at = causeOf(outcome);
  }
  for (const each of path) known.set(each, isPassed);
  return isPassed;
}

function isRemoved(outcome: Outcome | undefined): boolean {
  return outcome?.kind === 'skipped' && outcome.error.code === 'node_removed';
}

function causeOf({ error }: Extract<Outcome, { kind: 'skipped' }>): number | undefined {
  const cause = error.data?.['branch'];
  return typeof cause === 'number' ? cause : undefined;
}
