/** The values of options: read from their text, or refused. Values are not repeated: one of them may be a secret. */
import { isJsonObject, type Json, type JsonObject } from '#core';
import type { RunStatus } from '#journal';
import type { Resumption } from '#runtime';
import { UsageError } from './exit-code.ts';

export const STATUSES: readonly RunStatus[] = [
  'pending',
  'running',
  'waiting',
  'paused',
  'finished',
  'failed',
  'cancelled',
];

export function givenOption<K extends string, V>(name: K, value: V | undefined): Partial<Record<K, V>> {
  return value === undefined ? {} : ({ [name]: value } as Record<K, V>);
}

export function wholeNumber(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(`--${name} takes a whole number from 1 up.`);
}

export function positive(text: string | undefined, name: string): number | undefined {
  const value = plainNumber(text);
  if (value === undefined || value > 0) return value;
  throw new UsageError(`--${name} takes a number over 0.`);
}

export function notNegative(text: string | undefined, name: string): number | undefined {
  const value = plainNumber(text);
  if (value === undefined || value >= 0) return value;
  throw new UsageError(`--${name} takes a number from 0 up.`);
}

/** NaN for a text that is not a number. */
function plainNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^[\d.]+$/.test(text) && Number.isFinite(Number(text)) ? Number(text) : Number.NaN;
}

export function jsonValue(text: string | undefined, name: string): Json | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new UsageError(`--${name} is not JSON. Put it in quotes, such as --${name} '{"amount": 90}'.`);
  }
}

export function jsonObjectOption(text: string | undefined, name: string): JsonObject | undefined {
  const value = jsonValue(text, name);
  if (value === undefined || isJsonObject(value)) return value;
  throw new UsageError(`--${name} takes a JSON object, such as --${name} '{"note": "checked"}'.`);
}

export type NodeEdits = NonNullable<Resumption['nodes']>;

/** For each node `{"args": …}` or `{"skip": true}`. */
export function nodeEditsOption(text: string | undefined): NodeEdits | undefined {
  const edits = jsonObjectOption(text, 'nodes');
  if (edits === undefined) return undefined;
  if (Object.keys(edits).length > 0 && Object.values(edits).every(isEdit)) return edits as NodeEdits;
  throw new UsageError(`--nodes takes edits by the ids of nodes: '{"a": {"args": {"n": 1}}, "b": {"skip": true}}'.`);
}

function isEdit(edit: Json): boolean {
  if (!isJsonObject(edit) || Object.keys(edit).length !== 1) return false;
  return edit['skip'] === true || edit['args'] !== undefined;
}

export function statusesOf(value: unknown): RunStatus[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value
    .flatMap(String)
    .flatMap((list) => list.split(','))
    .map((word) => {
      const status = STATUSES.find((known) => known === word.trim());
      if (status === undefined) throw new UsageError(`--status takes ${STATUSES.join(', ')}.`);
      return status;
    });
}
