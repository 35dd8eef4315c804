/** What a parse had to change, to leave out, or could not make right. */
import { pointerTo } from '#core';

/**
 * - `repaired`: the text was not well-formed and was read all the same.
 * - `coerced`: a value was changed to fit the schema.
 * - `renamed`: a tool or an argument was written in another way than it is declared.
 * - `extra_field_dropped`: a field such as `reasoning` beside the tool and its arguments was left out.
 * - `argument_dropped`: an argument that the schema does not allow, or an optional one that was null, was left out.
 * - `default_filled`: a required argument was missing and the schema names its default.
 * - `mismatch`: a value still does not fit the schema.
 * - `unresolved`: code stands where the schema wants a value, such as a variable for the result of another call. Such a call
 *   is left out when there are others.
 * - `unknown_tool`: a call of a tool that was not given; it is not among the calls.
 * - `not_taken`: a call in a form that is less certain than the strictness asks for; it is not among the calls.
 * - `duplicate_dropped`: the same call written again, or a call of a draft that a later version replaces.
 * - `truncated`: the text ends inside this call; its last value may be cut short. Such a call should not be run.
 * - `limit`: a limit ended the reading early.
 */
export type ParseIssueCode =
  | 'repaired'
  | 'coerced'
  | 'renamed'
  | 'extra_field_dropped'
  | 'argument_dropped'
  | 'default_filled'
  | 'mismatch'
  | 'unresolved'
  | 'unknown_tool'
  | 'not_taken'
  | 'duplicate_dropped'
  | 'truncated'
  | 'limit';

export interface ParseIssue {
  readonly code: ParseIssueCode;
  /** Names places and types, never argument values. */
  readonly message: string;
  /** Index into the calls of the result. */
  readonly call?: number;
  /** JSON Pointer into the arguments. */
  readonly path?: string;
  /** With `extra_field_dropped`: the name of the field. */
  readonly field?: string;
}

/** One step of a JSON Pointer (RFC 6901). */
export function pointerStep(key: string | number): string {
  return pointerTo('', key);
}
