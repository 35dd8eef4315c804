/** Nodes of a flow document that wait: for somebody's answer, for a time, for an event. */
import { atPointer, type Json, PilotageError } from '#core';
import { node } from '../node.ts';
import { type AnyWait, type FromInput, waitCall } from '../wait.ts';
import { type DocumentPart, quotedName } from './parts.ts';
import {
  type DocumentReading,
  type Fields,
  type Form,
  fieldsOf,
  flagOf,
  functionOf,
  givenField,
  noteFault,
  numberOf,
  pointerOf,
  readSchema,
  readTextPart,
  wrongType,
} from './values.ts';

/** What a node waits for, each with its keys. */
const WAITS = {
  ask: ['question', 'schema', 'expiresInMs'],
  sleep: ['until', 'forMs'],
  event: ['key', 'schema', 'timeoutMs'],
} as const;

/** @param kind its key, which the node has. */
export function readWait(
  kind: keyof typeof WAITS,
  name: string,
  part: DocumentPart,
  reading: DocumentReading,
): Form | undefined {
  const outer = fieldsOf(part, [kind, 'description', 'allowCycle', 'onError'], reading);
  const wait = outer?.get(kind);
  const fields = wait && fieldsOf(wait, WAITS[kind], reading);
  if (outer === undefined || wait === undefined || fields === undefined) return undefined;
  const faults = reading.faults.length;
  const options = {
    [kind]: waitOf(fields, reading),
    ...givenField('description', outer, (value) => readTextPart(value, reading)),
    ...givenField('allowCycle', outer, (value) => flagOf(value, reading)),
  } as AnyWait;
  // What was read with a fault is not whole, and a stand-in keeps the graph so.
  if (reading.faults.length === faults) noteUnfit(name, options, wait, reading);
  if (reading.faults.length > faults) return { needs: [], make: () => node(name, { execute: () => null }) };
  return { needs: [], make: () => node(name, options as never) };
}

function waitOf(fields: Fields, reading: DocumentReading): object {
  const text = (part: DocumentPart): string | undefined => readTextPart(part, reading);
  const from = <T extends string | number>(part: DocumentPart, read: (literal: DocumentPart) => T | undefined) =>
    part.fields === undefined ? read(part) : readFromInput<T>(part, reading);
  return {
    ...givenField('question', fields, (part) => from(part, text)),
    ...givenField('key', fields, (part) => from(part, text)),
    ...givenField('until', fields, (part) =>
      from<string | number>(part, (at) =>
        typeof at.json === 'number' ? at.json : readTextPart(at, reading, 'a time'),
      ),
    ),
    ...givenField('forMs', fields, (part) => from(part, (value) => numberOf(value, 0, reading))),
    ...givenField('schema', fields, (part) => readSchema(part, reading)),
    ...givenField('expiresInMs', fields, (part) => numberOf(part, 0, reading)),
    ...givenField('timeoutMs', fields, (part) => numberOf(part, 0, reading)),
  };
}

/** `{ path }` is what stands there in the node's input, `{ function }` the name of a function that gets the input. */
function readFromInput<T>(part: DocumentPart, reading: DocumentReading): FromInput<Json, T> | undefined {
  const fields = fieldsOf(part, ['path', 'function'], reading);
  const [path, named] = [fields?.get('path'), fields?.get('function')];
  if (fields === undefined) return undefined;
  if ((path === undefined) === (named === undefined)) {
    return wrongType(
      part,
      `a value, ${quotedName('path')}: where it stands in the input, or ${quotedName('function')}: the name of one`,
      reading,
    );
  }
  if (named !== undefined) return functionOf(named, reading) as (input: Json) => T;
  const pointer = path && pointerOf(path, reading);
  // Whoever waits says what is wrong with a value that cannot be.
  return pointer === undefined ? undefined : (input) => atPointer(input, pointer) as T;
}

function noteUnfit(name: string, options: AnyWait, wait: DocumentPart, reading: DocumentReading): void {
  try {
    waitCall(name, options);
  } catch (cause) {
    if (!PilotageError.is(cause)) throw cause;
    noteFault(reading, 'bad_wait', wait, cause.message);
  }
}
