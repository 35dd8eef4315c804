/** Schemas that callers give: a Standard Schema of a library, such as zod, or a plain JSON Schema. */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import {
  captureObject,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEquals,
  PilotageError,
} from '#core';
import { firstIssues } from './json-schema.ts';

type GivenSchema = StandardSchemaV1 | JsonObject;
type Standard = StandardSchemaV1 | (StandardSchemaV1 & StandardJSONSchemaV1);

export function isStandard(schema: object): schema is Standard {
  return '~standard' in schema;
}

/** By the schema object: a catalogue is made more than once from the same tools. */
const written = new WeakMap<GivenSchema, JsonObject>();

/**
 * The JSON Schema of a Standard Schema (through its own converter) or of a plain one: a private, frozen copy, and the same one each
 * time for the same schema object.
 * @throws PilotageError `tool_schema_invalid` when a library gives no JSON Schema.
 */
export function jsonSchemaOf(schema: GivenSchema, owner: string): JsonObject {
  assertSchema(schema, owner);
  const known = written.get(schema);
  if (known !== undefined) return known;
  const json = isStandard(schema) ? standardSchema(schema, owner) : plainSchema(schema, owner);
  written.set(schema, json);
  return json;
}

export function assertSchema(schema: GivenSchema, owner: string): void {
  if (typeof schema === 'function' || isJsonObject(schema)) return;
  throw new PilotageError('tool_schema_invalid', `${owner} has no schema. Give a Standard Schema or a JSON Schema.`);
}

function standardSchema(schema: Standard, owner: string): JsonObject {
  const props = schema['~standard'];
  if (!('jsonSchema' in props)) {
    throw new PilotageError(
      'tool_schema_invalid',
      `${owner} has a schema of ${props.vendor} that gives no JSON Schema. Upgrade ${props.vendor}, or pass a plain JSON Schema.`,
    );
  }
  const write = (): JsonObject => captureObject(props.jsonSchema.input({ target: 'draft-07' }), `${owner} schema`).json;
  try {
    const json = write();
    if (!JSON.stringify(json).includes('"default":')) return json;
    untilNextMillisecond();
    return captureObject(constantPart(json, write()), `${owner} schema`).json;
  } catch (cause) {
    const why = describeThrown(cause).replace(/\.?$/, '.');
    const message = `${owner} has a schema that cannot be written as JSON Schema: ${why} Use types that JSON has: for a date its text.`;
    throw new PilotageError('tool_schema_invalid', message, { cause });
  }
}

/** A default that is made anew each time is another one at another moment. */
function untilNextMillisecond(): void {
  for (const now = Date.now(); Date.now() === now; );
}

/**
 * The schema without defaults that are made anew each time, such as a moment or an id: they are made when arguments are checked. Written down,
 * they would show a model a value that no call gets, and make the tool another one in each process.
 */
function constantPart(one: Json, other: Json): Json {
  if (Array.isArray(one))
    return one.map((item, index) => constantPart(item, (other as readonly Json[])[index] ?? null));
  if (!isJsonObject(one)) return one;
  const again = other as JsonObject;
  const kept = Object.entries(one).filter(([key, value]) => key !== 'default' || jsonEquals(value, again[key] ?? null));
  return Object.fromEntries(kept.map(([key, value]) => [key, constantPart(value, again[key] ?? null)]));
}

function plainSchema(schema: JsonObject, owner: string): JsonObject {
  try {
    return captureObject(schema, `${owner} schema`).json;
  } catch (cause) {
    throw new PilotageError('tool_schema_invalid', `${owner} has a schema that is not JSON: ${describeThrown(cause)}`, {
      cause,
    });
  }
}

/** What a Standard Schema says of a value that does not fit, each with its place as a JSON Pointer. */
export function standardMisfit(issues: readonly StandardSchemaV1.Issue[]): string {
  const why = issues.map(({ path, message }) => {
    const keys = path?.map((part) => String(typeof part === 'object' ? part.key : part)) ?? [];
    return `${['', ...keys].join('/') || '/'}: ${message}`;
  });
  return firstIssues(why);
}
