/**
 * What tools that were made from OpenAPI 3.0 or draft 04 say in words that JSON Schema has no more: `nullable` beside anything but a `type`, and
 * `exclusiveMinimum: true` beside a `minimum`. Many servers of MCP list such tools.
 */
import { isJsonObject, type Json, type JsonObject, setField } from '#core';

const WORDS = /"(nullable|exclusiveM(in|ax)imum)":(true|false)/;
/** Their fields are names of the author's, and each value a schema. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
/** Their values are data. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'example', 'examples']);

/** @param text the schema as JSON. @returns the schema itself, when it says nothing of the kind. */
export function inWordsOfToday(schema: JsonObject, text: string): JsonObject {
  // Arguments are an object, and references begin at the root: that is not wrapped.
  return WORDS.test(text) ? withExclusiveBounds(withoutNullable(eachSchema(schema))) : schema;
}

function translated(schema: Json): Json {
  if (!isJsonObject(schema)) return Array.isArray(schema) ? schema.map(translated) : schema;
  const read = withExclusiveBounds(eachSchema(schema));
  const { nullable, type } = read;
  if (typeof nullable !== 'boolean' || (type !== undefined && !saysNull(type))) return read;
  const rest = withoutNullable(read);
  return nullable ? { anyOf: [rest, { type: 'null' }] } : rest;
}

function saysNull(type: Json): boolean {
  return type === 'null' || (Array.isArray(type) && type.includes('null'));
}

function withoutNullable(schema: JsonObject): JsonObject {
  const { nullable, ...rest } = schema;
  return typeof nullable === 'boolean' ? rest : schema;
}

function eachSchema(schema: JsonObject): JsonObject {
  return mapped(schema, (value, key) => {
    if (DATA.has(key)) return value;
    return NAMED.has(key) && isJsonObject(value) ? mapped(value, translated) : translated(value);
  });
}

function mapped(object: JsonObject, change: (value: Json, key: string) => Json): JsonObject {
  const made: Record<string, Json> = {};
  for (const [key, value] of Object.entries(object)) setField(made, key, change(value, key));
  return made;
}

function withExclusiveBounds(schema: JsonObject): JsonObject {
  return exclusive(exclusive(schema, 'minimum', 'exclusiveMinimum'), 'maximum', 'exclusiveMaximum');
}

function exclusive(schema: JsonObject, bound: string, word: string): JsonObject {
  const { [word]: said, [bound]: value, ...rest } = schema;
  if (typeof said !== 'boolean') return schema;
  if (value === undefined) return rest;
  return { ...rest, [said ? word : bound]: value };
}
