/** Detects a run that repeats itself: the same decisions with the same outcomes, over and over. Checked before each move. */
import {
  asJson,
  type CallRecord,
  type Decision,
  type ErrorData,
  errorOf,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEquals,
  type Outcome,
  type Step,
} from '#core';

/** The longest repeated sequence that is looked for, in steps. */
export const MAX_PERIOD = 4;
/** The greatest number of repetitions that is counted, so that a step never looks at the whole run. */
export const MAX_TIMES = 12;

export interface Repetition {
  /** Steps of the repeated sequence, 1 to `MAX_PERIOD`. */
  readonly period: number;
  /** How often the sequence came, 2 to `MAX_TIMES`. */
  readonly times: number;
}

/**
 * The shortest round that the last steps were, `least` times (default 2) or more in a row. A step counts with its decision,
 * but for call ids, and its outcomes; not with what was said or used. A pause that was answered is not a repetition, nor are
 * steps none of which has made a call.
 * @param steps all closed steps of the run.
 * @param from steps before this index do not count.
 */
export function repetitionIn(
  steps: readonly Step[],
  from: number,
  { least = 2 }: { readonly least?: number } = {},
): Repetition | undefined {
  for (let period = 1; period <= MAX_PERIOD; period += 1) {
    const times = timesOf(steps, from, period);
    if (times >= least && steps.slice(-period).some(({ calls }) => calls.length > 0)) return { period, times };
  }
  return undefined;
}

function timesOf(steps: readonly Step[], from: number, period: number): number {
  const first = Math.max(from, steps.length - period * MAX_TIMES);
  let same = 0;
  for (let index = steps.length - 1; index - period >= first; index -= 1, same += 1) {
    if (!isSame(steps[index] as Step, steps[index - period] as Step)) break;
  }
  return Math.floor(same / period) + 1;
}

/** What is cheap to compare, and mostly differs, comes first. */
function isSame(left: Step, right: Step): boolean {
  if (left.calls.length !== right.calls.length || left.decision.kind !== right.decision.kind) return false;
  // A decision that did not pass may have any shape.
  if (left.calls.length === 0) {
    return sameError(left.error, right.error) && jsonEquals(asJson(left.decision), asJson(right.decision));
  }
  return (
    sameTools(left.decision, right.decision) &&
    sameOutcomes(left.calls, right.calls) &&
    sameDecision(left.decision, right.decision)
  );
}

/** For as many calls. */
function sameOutcomes(left: readonly CallRecord[], right: readonly CallRecord[]): boolean {
  for (let call = 0; call < left.length; call += 1) {
    if (!sameOutcome((left[call] as CallRecord).outcome, (right[call] as CallRecord).outcome)) return false;
  }
  return true;
}

/** For two of the same kind with as many calls. */
function sameTools(left: Decision, right: Decision): boolean {
  if (left.kind === 'call_tool' && right.kind === 'call_tool') return left.tool === right.tool;
  if (left.kind !== 'call_parallel' || right.kind !== 'call_parallel') return true;
  return left.branches.every(({ tool }, index) => tool === right.branches[index]?.tool);
}

function sameOutcome(left: Outcome, right: Outcome): boolean {
  if (left.kind !== right.kind) return false;
  if (left.kind !== 'value' || right.kind !== 'value') return sameError(errorOf(left), errorOf(right));
  // A large value is here only as a preview.
  return left.artifact?.artifactRef === right.artifact?.artifactRef && jsonEquals(left.value, right.value);
}

/** No error, as with a verdict, is never the same: somebody outside has moved the run. */
function sameError(left: ErrorData | undefined, right: ErrorData | undefined): boolean {
  return left !== undefined && left.code === right?.code && left.message === right.message;
}

/** Compares part by part, without a copy: most decisions that differ do so early. A decision that was refused may have any shape. */
export function sameDecision(left: Decision, right: Decision): boolean {
  return sameDecisionJson(asJson(left), asJson(right));
}

export function sameDecisionJson(one: Json, other: Json): boolean {
  if (!isJsonObject(one) || !isJsonObject(other)) return jsonEquals(one, other);
  return sameParts(one, other) && sameBranches(one['branches'], other['branches']);
}

function sameBranches(one: Json | undefined, other: Json | undefined): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return jsonEquals(one, other);
  return one.length === other.length && one.every((branch: Json, at) => sameBranch(branch, other[at]));
}

function sameBranch(one: Json, other: Json | undefined): boolean {
  return isJsonObject(one) && isJsonObject(other) ? sameParts(one, other) : jsonEquals(one, other);
}

/** Equal but for the id of the call and the branches, which are compared one by one. */
function sameParts(one: JsonObject, other: JsonObject): boolean {
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  keys.delete('callId');
  keys.delete('branches');
  return [...keys].every((key) => jsonEquals(one[key], other[key]));
}
