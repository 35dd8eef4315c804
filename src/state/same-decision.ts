/** Whether two decisions are the same, apart from the ids that their planner gave to the calls. */
import { asJson, type Decision, isJsonObject, type Json, type JsonObject, jsonEquals } from '#core';

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
