/** Makes a value fit a schema where that is safe, and says what was changed and what still does not fit. */
import { isJsonObject, type Json, type JsonObject, jsonEquals, setField, shownName } from '#core';
import { booleanIn, isDecimal, numberIn } from './code-reader.ts';
import { type ParseIssue, type ParseIssueCode, pointerStep } from './issue.ts';
import {
  CodeText,
  isExactNumber,
  isLooseList,
  isLooseObject,
  type Loose,
  type LooseObject,
  looseToJson,
  NumberText,
} from './loose-value.ts';
import { plainName } from './names.ts';
import { alternativesOf, fits, followReference, type SchemaType, typesOf } from './schema.ts';
import { readWhole } from './value-reader.ts';

/** What a coercion needs beside the value. */
export interface Coercion {
  readonly root: JsonObject;
  readonly issues: ParseIssue[];
  /** The source text of containers that were read from source code. */
  readonly sources: ReadonlyMap<object, string>;
  /** The value that a list was made for, of which it is the only item: no list is made for it again. */
  readonly only?: Loose;
}

const NO_SOURCES: ReadonlyMap<object, string> = new Map();
const MAX_DEPTH = 200;

/** Fits a value to a JSON Schema. The value itself is not changed; when it fits already, it is the result. */
export function coerceToSchema(value: Json, schema: JsonObject): { value: Json; issues: ParseIssue[] } {
  const issues: ParseIssue[] = [];
  if (isTooDeep(value, MAX_DEPTH)) {
    issues.push({ code: 'limit', message: `nested deeper than ${MAX_DEPTH} levels; not looked at`, path: '' });
    return { value, issues };
  }
  return { value: coerce(value, schema, '', { root: schema, issues, sources: NO_SOURCES }), issues };
}

function isTooDeep(value: Json, left: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return left <= 0 || Object.values(value).some((inner: Json) => isTooDeep(inner, left - 1));
}

/** Fits a value that was read from a model's text, at the JSON Pointer `path`. */
function coerce(value: Loose, schema: Json | undefined, path: string, coercion: Coercion, depth: number = 0): Json {
  const followed = isJsonObject(schema) ? followReference(schema, coercion.root) : undefined;
  if (depth > MAX_DEPTH) {
    report(coercion, 'mismatch', path, `nested deeper than ${MAX_DEPTH} levels`);
    return plain(value, path, coercion);
  }
  if (followed === undefined) return plain(value, path, coercion);
  if (isPlain(value) && fits(value, schema, coercion.root)) return value;
  const all = followed['allOf'];
  let json: Json | undefined;
  const alternatives = alternativesOf(followed);
  if (alternatives !== undefined) json = coerceToOne(value, alternatives, path, coercion, depth);
  else json = coerceToTypes(value, followed, path, coercion, depth);
  if (Array.isArray(all)) for (const one of all) json = coerce(json, one, path, coercion, depth + 1);
  return coerceToChoice(json, followed, path, coercion);
}

/** Whether a value is JSON to the last leaf: only then can it be handed on as it is. */
export function isPlain(value: Loose): value is Json {
  if (typeof value !== 'object' || value === null) return true;
  if (value instanceof CodeText || value instanceof NumberText) return false;
  if (isLooseList(value)) return value.every(isPlain);
  for (const key in value) {
    const inner = value[key];
    if (inner !== undefined && !isPlain(inner)) return false;
  }
  return true;
}

function report(coercion: Coercion, code: ParseIssueCode, path: string, message: string): void {
  coercion.issues.push({ code, path, message });
}

/** The value where the schema says nothing about it. */
function plain(value: Loose, path: string, coercion: Coercion): Json {
  if (isPlain(value)) return value;
  if (value instanceof NumberText && !isExactNumber(value)) {
    report(coercion, 'coerced', path, 'a number too large to be exact is kept as text');
  }
  if (isLooseList(value)) return value.map((item, index) => plain(item, path + pointerStep(index), coercion));
  if (!isLooseObject(value)) return looseToJson(value);
  const fields: { [key: string]: Json } = {};
  for (const [key, inner] of Object.entries(value))
    setField(fields, key, plain(inner, path + pointerStep(key), coercion));
  return fields;
}

/** The first alternative that the value fits, else the first that it can be made to fit. */
function coerceToOne(
  value: Loose,
  alternatives: readonly Json[],
  path: string,
  coercion: Coercion,
  depth: number,
): Json {
  let best: { json: Json; issues: ParseIssue[] } | undefined;
  for (const alternative of alternatives) {
    const issues: ParseIssue[] = [];
    const json = coerce(value, alternative, path, { ...coercion, issues }, depth + 1);
    if (fits(json, alternative, coercion.root)) {
      coercion.issues.push(...issues);
      return json;
    }
    best ??= { json, issues };
  }
  coercion.issues.push(...(best?.issues ?? []));
  return best?.json ?? plain(value, path, coercion);
}

function coerceToTypes(value: Loose, schema: JsonObject, path: string, coercion: Coercion, depth: number): Json {
  const types = typesOf(schema);
  if (types.length === 0) return plain(value, path, coercion);
  const own = types.find((type) => isOfType(value, type));
  for (const type of own === undefined ? types : [own, ...types]) {
    const json = coerceToType(value, type, schema, path, coercion, depth);
    if (json !== undefined) return json;
  }
  const code = value instanceof CodeText ? 'unresolved' : 'mismatch';
  report(coercion, code, path, `the schema wants ${types.join(' or ')}, this is ${typeName(value)}`);
  return looseToJson(value);
}

function isOfType(value: Loose, type: SchemaType): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string';
    case 'number':
      return typeof value === 'number' || (value instanceof NumberText && isExactNumber(value));
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'null':
      return value === null;
    case 'array':
      return isLooseList(value);
    case 'object':
      return isLooseObject(value);
    default:
      return type satisfies never;
  }
}

function typeName(value: Loose): string {
  if (value === null) return 'null';
  if (value instanceof CodeText) return 'code';
  if (value instanceof NumberText) return 'number';
  return Array.isArray(value) ? 'array' : typeof value;
}

function coerceToType(
  value: Loose,
  type: SchemaType,
  schema: JsonObject,
  path: string,
  coercion: Coercion,
  depth: number,
): Json | undefined {
  switch (type) {
    case 'string':
      return toText(value, path, coercion);
    case 'number':
    case 'integer':
      return toNumber(value, type, path, coercion);
    case 'boolean':
      return toBoolean(value, path, coercion);
    case 'null':
      return toNull(value, path, coercion);
    case 'array':
      return toList(value, schema, path, coercion, depth);
    case 'object':
      return toObject(value, schema, path, coercion, depth);
    default:
      return type satisfies never;
  }
}

function toText(value: Loose, path: string, coercion: Coercion): string | undefined {
  if (typeof value === 'string') return value;
  if (value === null) return undefined;
  const text = textOf(value, coercion);
  if (text === undefined) return undefined;
  if (!(value instanceof CodeText)) report(coercion, 'coerced', path, `${typeName(value)} to string`);
  return text;
}

/** An object or a list never becomes a text, unless there is code in it: then the code may be what is meant. */
function textOf(value: Loose, { sources }: Coercion): string | undefined {
  if (value instanceof CodeText || value instanceof NumberText) return value.text;
  if (typeof value !== 'object' || value === null) return String(value);
  return isPlain(value) ? undefined : sources.get(value);
}

function toNumber(value: Loose, type: 'number' | 'integer', path: string, coercion: Coercion): number | undefined {
  const number = numberIn(value);
  if (number === undefined || !Number.isFinite(number)) return undefined;
  const isExact = value instanceof NumberText ? isExactNumber(value) : Number.isSafeInteger(number);
  if (Number.isInteger(number) && !isExact && typeof value !== 'number') return undefined;
  if (type === 'integer' && !Number.isInteger(number)) return undefined;
  if (typeof value !== 'number' && !(value instanceof NumberText)) {
    report(coercion, 'coerced', path, `${typeName(value)} to ${type}`);
  }
  return number;
}

function toBoolean(value: Loose, path: string, coercion: Coercion): boolean | undefined {
  const boolean = booleanIn(value);
  if (boolean !== undefined && boolean !== value) report(coercion, 'coerced', path, `${typeName(value)} to boolean`);
  return boolean;
}

function toNull(value: Loose, path: string, coercion: Coercion): null | undefined {
  if (value === null) return null;
  if (typeof value !== 'string' || !/^(?:null|none|nil|undefined|)$/i.test(value.trim())) return undefined;
  report(coercion, 'coerced', path, 'string to null');
  return null;
}

function toList(
  value: Loose,
  schema: JsonObject,
  path: string,
  coercion: Coercion,
  depth: number,
): readonly Json[] | undefined {
  if (value === null) return undefined;
  const list = isLooseList(value) ? value : listIn(value, schema, coercion);
  if (list === undefined) return undefined;
  if (list !== value) report(coercion, 'coerced', path, `${typeName(value)} to array`);
  const inner = list !== value && list.length === 1 ? { ...coercion, only: list[0] ?? null } : coercion;
  const tuple = schema['prefixItems'];
  const firsts = Array.isArray(tuple) ? tuple : [];
  return list.map((item, index) =>
    coerce(item, index < firsts.length ? firsts[index] : schema['items'], path + pointerStep(index), inner, depth + 1),
  );
}

/** A list that was written as text, or the value as the only item. What is written is read: the text of an object counts as that object. */
function listIn(value: Loose, schema: JsonObject, coercion: Coercion): readonly Loose[] | undefined {
  const text = value instanceof CodeText ? value.text : value;
  if (coercion.only !== undefined && coercion.only === value) return undefined;
  if (typeof text !== 'string') return [value];
  const read = readWhole(text, '[({');
  if (isLooseList(read)) return read;
  if (value instanceof CodeText) return undefined;
  if (isLooseObject(read)) return [read];
  return splitText(text, schema, coercion) ?? [value];
}

/** `a, b` is two items only where every part clearly is an item: a number, or a word of the enum. */
function splitText(text: string, schema: JsonObject, coercion: Coercion): readonly Loose[] | undefined {
  const items = isJsonObject(schema['items']) ? followReference(schema['items'], coercion.root) : undefined;
  if (items === undefined || !text.includes(',') || text.length > 10_000) return undefined;
  const parts = text.split(',').map((part) => part.trim());
  const types = typesOf(items);
  if (types.length === 1 && (types[0] === 'number' || types[0] === 'integer')) {
    return parts.every((part) => isDecimal(part)) ? parts : undefined;
  }
  const choices = items['enum'];
  if (!Array.isArray(choices)) return undefined;
  return parts.every((part) => choices.some((choice) => choice === part)) ? parts : undefined;
}

function toObject(
  value: Loose,
  schema: JsonObject,
  path: string,
  coercion: Coercion,
  depth: number,
): JsonObject | undefined {
  const object = objectIn(value);
  if (object === undefined) return undefined;
  if (object !== value) report(coercion, 'coerced', path, `${typeName(value)} to object`);
  return coerceFields(object, schema, path, coercion, depth);
}

function objectIn(value: Loose): LooseObject | undefined {
  if (isLooseObject(value)) return value;
  if (isLooseList(value)) {
    const only = value[0];
    return value.length === 1 && isLooseObject(only) ? only : undefined;
  }
  const text = value instanceof CodeText ? value.text : value;
  const read = typeof text === 'string' ? readWhole(text, '{') : undefined;
  return isLooseObject(read) ? read : undefined;
}

/** Fits the fields of an object: names, values, defaults, and what is not allowed. */
export function coerceFields(
  object: LooseObject,
  schema: JsonObject,
  path: string,
  coercion: Coercion,
  depth: number,
): JsonObject {
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
  const result: { [key: string]: Json } = {};
  for (const [key, value] of Object.entries(object)) {
    const name = declaredName(key, object, properties);
    const at = path + pointerStep(name);
    if (name !== key) report(coercion, 'renamed', at, `written as ${shownName(key)}`);
    if (Object.hasOwn(properties, name)) {
      if (value === null && isDroppedNull(name, schema, properties, coercion)) {
        report(coercion, 'argument_dropped', at, 'null for an optional value that cannot be null');
      } else setField(result, name, coerce(value, properties[name], at, coercion, depth + 1));
    } else if (schema['additionalProperties'] === false && schema['patternProperties'] === undefined) {
      report(coercion, 'argument_dropped', at, 'the schema does not allow this name');
    } else setField(result, name, coerce(value, schema['additionalProperties'], at, coercion, depth + 1));
  }
  fillRequired(result, schema, properties, path, coercion);
  return result;
}

/** The declared name that is written in another case or with other joints, when only one can be meant. */
function declaredName(key: string, object: LooseObject, properties: JsonObject): string {
  if (Object.hasOwn(properties, key)) return key;
  const wanted = plainName(key);
  const same = Object.keys(properties).filter((name) => plainName(name) === wanted && !Object.hasOwn(object, name));
  const [only] = same;
  return same.length === 1 && only !== undefined && wanted !== '' ? only : key;
}

function isDroppedNull(name: string, schema: JsonObject, properties: JsonObject, coercion: Coercion): boolean {
  const required = schema['required'];
  if (Array.isArray(required) && required.includes(name)) return false;
  return !fits(null, properties[name], coercion.root);
}

function fillRequired(
  result: { [key: string]: Json },
  schema: JsonObject,
  properties: JsonObject,
  path: string,
  coercion: Coercion,
): void {
  const required = schema['required'];
  if (!Array.isArray(required)) return;
  for (const key of required) {
    if (typeof key !== 'string' || Object.hasOwn(result, key)) continue;
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const at = path + pointerStep(key);
    if (isJsonObject(property) && property['default'] !== undefined) {
      setField(result, key, property['default']);
      report(coercion, 'default_filled', at, 'missing; the default of the schema is used');
    } else report(coercion, 'mismatch', at, 'required, and missing');
  }
}

function coerceToChoice(value: Json, schema: JsonObject, path: string, coercion: Coercion): Json {
  const choices = schema['enum'];
  if (!Array.isArray(choices) || choices.some((choice) => jsonEquals(choice, value))) return value;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    const wanted = plainName(String(value));
    const same = choices.filter((choice) => typeof choice !== 'object' && plainName(String(choice)) === wanted);
    const [only] = same;
    if (same.length === 1 && only !== undefined && wanted !== '') {
      report(coercion, 'coerced', path, 'written otherwise than in the enum');
      return only;
    }
  }
  report(coercion, 'mismatch', path, 'not one of the values of the enum');
  return value;
}
