/** The form of an answer that has to fit a schema: what the model is asked for, and how its answer is read. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  captureObject,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEquals,
  PilotageError,
  thaw,
} from '#core';
import { coerceToSchema, DEFAULT_PARSE_LIMITS, isObjectSchema, type ParseIssue, readStrictJson } from '#parse';
import { explainSchemaError, firstIssues, isStandard, jsonSchemaOf, schemaErrors, standardMisfit } from '#schema';

/** The answer as the user's schema wants it, or what does not fit, in words for the model. */
type ReadAnswer =
  /** `exact`: well-formed JSON was written, and nothing was changed to make it fit. */
  { readonly answer: Json; readonly exact: boolean } | { readonly misfit: string };

export interface AnswerForm {
  /** What the model is asked for: always an object, since servers take no other root. */
  readonly schema: JsonObject;
  /** The arguments of a call that ends the run with the answer. */
  readonly callSchema: JsonObject;
  /** @param answer JSON, or the text of a reply. */
  read(answer: Json): ReadAnswer;
}

/** What a schema says beyond what JSON Schema can: `undefined` when the answer fits. */
type OwnCheck = (answer: Json) => string | undefined;

/**
 * An answer that need not be an object is asked for as `{ "answer": … }`, and taken out of it again.
 * @throws PilotageError `invalid_config` for what is neither a Standard Schema nor a JSON Schema.
 */
export function answerForm(given: object): AnswerForm {
  const schema = writtenSchema(given);
  const check = ownCheck(given);
  const wrapper = wrapped(schema);
  const read = (answer: Json): ReadAnswer =>
    isObjectSchema(schema) ? readAs(jsonIn(answer), schema) : readWrapped(jsonIn(answer), schema, wrapper);
  return {
    schema: isObjectSchema(schema) ? schema : wrapper,
    callSchema: wrapper,
    read: (answer) => {
      const found = read(answer);
      const why = 'misfit' in found ? undefined : check?.(found.answer);
      return why === undefined ? found : misfit(why);
    },
  };
}

const OWNER = 'The option answerSchema of react';

/** What makes a JSON Schema may give it a type, and functions, of its own. */
function writtenSchema(given: object): JsonObject {
  try {
    return isLibrarySchema(given) ? closed(jsonSchemaOf(given, OWNER)) : captureObject(given, 'answerSchema').json;
  } catch (cause) {
    if (PilotageError.is(cause) && cause.code === 'tool_schema_invalid') {
      throw new PilotageError('invalid_config', cause.message, { cause });
    }
    const message = `${OWNER} must be a JSON Schema, or a schema of a library such as zod: ${describeThrown(cause)}`;
    throw new PilotageError('invalid_config', message, { cause });
  }
}

/** A JSON Schema that a library has written may keep the schema that it comes from, where nobody sees it. */
function isLibrarySchema(given: object): given is StandardSchemaV1 {
  if (!isStandard(given)) return false;
  return Object.getPrototypeOf(given) !== Object.prototype || Object.keys(given).includes('~standard');
}

/** The answer stays as it was written: only whether it fits is asked. */
function ownCheck(given: object): OwnCheck | undefined {
  if (!isLibrarySchema(given)) return undefined;
  return (answer) => {
    const result = given['~standard'].validate(thaw(answer));
    if (!(result instanceof Promise)) return result.issues && standardMisfit(result.issues);
    const message = `${OWNER} has a check that is a promise. Leave it out of answerSchema, and make it where the answer is used.`;
    throw new PilotageError('invalid_config', message);
  };
}

/** These hold schemas of which a value has to fit one, or which describe a part of it. */
const BY_NAME: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
const BY_PLACE: ReadonlySet<string> = new Set(['items', 'prefixItems', 'additionalProperties', 'anyOf', 'oneOf']);

/** Libraries leave the objects that they describe open, and providers that hold a model to a schema want them closed. */
function closed(schema: JsonObject): JsonObject {
  const parts = Object.entries(schema).map(([key, value]): [string, Json] => {
    if (BY_PLACE.has(key)) return [key, closedIn(value)];
    if (!BY_NAME.has(key) || !isJsonObject(value)) return [key, value];
    return [key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, closedIn(inner)]))];
  });
  const isOpen = isJsonObject(schema['properties']) && schema['additionalProperties'] === undefined;
  return { ...Object.fromEntries(parts), ...(isOpen ? { additionalProperties: false } : {}) };
}

function closedIn(value: Json): Json {
  if (Array.isArray(value)) return value.map(closedIn);
  return isJsonObject(value) ? closed(value) : value;
}

function wrapped({ default: _, $schema, ...schema }: JsonObject): JsonObject {
  // References within a schema that has an id are relative to that, wherever it stands.
  const answer = typeof schema['$id'] === 'string' ? schema : movedBelow(schema, '#/properties/answer');
  const wrapper = { type: 'object', properties: { answer }, required: ['answer'], additionalProperties: false };
  return $schema === undefined ? wrapper : { $schema, ...wrapper };
}

/** These hold values, in which nothing is a reference. */
const VALUES: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples']);

/** The schema, whose references within itself lead to its new place. */
function movedBelow(value: Json, place: string): Json {
  if (Array.isArray(value)) return value.map((item) => movedBelow(item, place));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const isOwn = key === '$ref' && typeof inner === 'string' && (inner === '#' || inner.startsWith('#/'));
      if (isOwn) return [key, `${place}${inner.slice(1)}`];
      return [key, VALUES.has(key) ? inner : movedBelow(inner, place)];
    }),
  );
}

function readWrapped(answer: Json, schema: JsonObject, wrapper: JsonObject): ReadAnswer {
  const { value, issues } = coerceToSchema(answer, wrapper);
  const misfits = misfitsIn(issues);
  if (misfits === undefined) {
    return checked((value as { readonly answer: Json }).answer, schema, isExact(answer, issues));
  }
  // Without its wrapper it counts as it was written: of something else no list is made.
  if (isJsonObject(answer)) return isBareObject(answer, schema) ? { answer, exact: true } : misfit(misfits);
  const scalar = scalarIn(answer);
  if (scalar !== undefined && schemaErrors(schema, scalar).length === 0) return { answer: scalar, exact: true };
  const bare = readAs(answer, schema);
  return 'answer' in bare && Array.isArray(bare.answer) && !isList(answer) ? misfit(misfits) : bare;
}

/** One of the schema's own objects, as models like to write a variant of a union; not one in a wrapper of another name, nor what is left of the wrapper. */
function isBareObject(answer: JsonObject, schema: JsonObject): boolean {
  if ('answer' in answer || schemaErrors(schema, answer).length > 0) return false;
  return schemaErrors(schema, { wrapper: answer }).length > 0;
}

/** A list, or the text of one. */
function isList(answer: Json): boolean {
  return Array.isArray(answer) || !jsonEquals(coerceToSchema(answer, { type: 'array' }).value, [answer]);
}

function readAs(answer: Json, schema: JsonObject): ReadAnswer {
  const { value, issues } = coerceToSchema(answer, schema);
  const misfits = misfitsIn(issues);
  return misfits === undefined ? checked(value, schema, isExact(answer, issues)) : misfit(misfits);
}

function isExact(written: Json, issues: readonly ParseIssue[]): boolean {
  return typeof written !== 'string' && issues.length === 0;
}

/** What is read looks at shapes and choices; the schema may say more. */
function checked(answer: Json, schema: JsonObject, exact: boolean): ReadAnswer {
  const errors = schemaErrors(schema, answer);
  return errors.length === 0 ? { answer, exact } : misfit(firstIssues(errors.map(explainSchemaError)));
}

function misfit(why: string): ReadAnswer {
  return { misfit: `The answer does not fit its schema: ${why}.` };
}

/** The object or list that a text is, where it is JSON as a whole; otherwise what was given, without a fence. */
function jsonIn(answer: Json): Json {
  if (typeof answer !== 'string') return answer;
  const text = withoutFence(answer);
  return readStrictJson(text, DEFAULT_PARSE_LIMITS.maxDepth) ?? text;
}

const SCALAR = /^(?:".*"|-?\d[\d.eE+-]*|true|false|null)$/s;

/** The JSON that a text is as a whole, where that is a text in quotes, a number, true, false or null: a model that is asked for JSON means that. */
function scalarIn(answer: Json): Json | undefined {
  if (typeof answer !== 'string' || !SCALAR.test(answer.trim())) return undefined;
  try {
    const value = JSON.parse(answer) as string | number | boolean | null;
    // Digits that a number does not keep stay the text that they are.
    return typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? undefined : value;
  } catch {
    return undefined;
  }
}

/** The text inside a fence that encloses all of it; models like to put JSON into one. */
function withoutFence(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```') || trimmed.length < 6) return text;
  return trimmed.slice(trimmed.indexOf('\n') + 1, -3).trim();
}

const MAX_SHOWN = 10;

/** `undefined` when everything fits. Each part names its place, as a JSON Pointer. */
export function misfitsIn(issues: readonly ParseIssue[]): string | undefined {
  const misfits = issues.filter(({ code }) => code === 'mismatch');
  if (misfits.length === 0) return undefined;
  return misfits
    .slice(0, MAX_SHOWN)
    .map(({ path = '', message }) => `${path || '/'}: ${message}`)
    .join('; ');
}
