/** What a planner says beside its decision, on its way into an entry. */
import { PilotageError } from '../core/errors.ts';
import { captureJson, captureObject, isJsonObject } from '../core/json.ts';
import type { Move } from '../core/planner.ts';
import { isRemarkType, type Remark } from '../core/remark.ts';
import type { MoveNotes } from '../core/step.ts';

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The notes that the move has, as frozen JSON, without empty ones. */
export function takeNotes(moved: Mutable<MoveNotes>, move: Move): void {
  const { text, reasoning, usage, providerState, provenance, remarks } = move;
  if (text !== undefined && text !== '') moved.text = textOf(text, 'text');
  if (reasoning !== undefined && reasoning !== '') moved.reasoning = textOf(reasoning, 'reasoning');
  if (usage !== undefined) moved.usage = captureObject(usage, 'move.usage').json;
  if (providerState !== undefined) moved.providerState = captureJson(providerState, 'move.providerState').json;
  if (remarks !== undefined && remarks.length > 0) moved.remarks = remarksOf(remarks);
  if (provenance !== undefined) moved.provenance = captureObject(provenance, 'move.provenance').json;
}

function remarksOf(remarks: readonly Remark[]): readonly Remark[] {
  const { json } = captureJson(remarks, 'move.remarks');
  // Each becomes an event of its type: nothing else may pass for one.
  if (Array.isArray(json) && json.every((remark) => isJsonObject(remark) && isRemarkType(remark['type']))) {
    return json as unknown as readonly Remark[];
  }
  throw new PilotageError('invalid_decision', "The remarks of the planner's move must be a list of known remarks.");
}

function textOf(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw new PilotageError(
    'invalid_decision',
    `The ${name} of the planner's move must be a string, not ${typeof value}.`,
  );
}
