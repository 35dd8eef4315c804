/** Schemas at the tool's edge: what the model is shown, and the check that arguments and values pass. */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import {
  assertKnownKeys,
  captureObject,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEquals,
  limitTime,
  type OptionShape,
  PilotageError,
  systemClock,
  thaw,
} from '#core';
import { compileSchema, explainSchemaError, firstIssues } from '#schema';
import type { InputSchema, Tool, ToolExample } from './tool.ts';

/** `value` is what to hand on: a private copy, after the schema's own defaults and transforms. */
export type Checked = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string };
export type ValueCheck = (value: Json) => Checked | Promise<Checked>;

type Standard = StandardSchemaV1 | (StandardSchemaV1 & StandardJSONSchemaV1);

function isStandard(schema: InputSchema): schema is Standard {
  return '~standard' in schema && (typeof schema === 'object' || typeof schema === 'function');
}

/** By the schema object: a catalogue is made more than once from the same tools. */
const written = new WeakMap<InputSchema, JsonObject>();

/**
 * The JSON Schema of a Standard Schema (through its own converter) or of a plain one: a private, frozen copy, and the same one each
 * time for the same schema object.
 * @throws PilotageError `tool_schema_invalid` when a library gives no JSON Schema.
 */
export function jsonSchemaOf(schema: InputSchema, owner: string): JsonObject {
  assertSchema(schema, owner);
  const known = written.get(schema);
  if (known !== undefined) return known;
  const json = isStandard(schema) ? standardSchema(schema, owner) : plainSchema(schema, owner);
  written.set(schema, json);
  return json;
}

function assertSchema(schema: InputSchema, owner: string): void {
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

/**
 * The compiled check. It never throws, also when the schema's own code does.
 * @throws PilotageError `tool_schema_invalid`.
 */
export function checkOf(schema: InputSchema, owner: string): ValueCheck {
  assertSchema(schema, owner);
  if (isStandard(schema)) return (value) => fitStandard(schema, thaw(value));
  const check = fitJsonSchema(schema, owner);
  return (value) => {
    const checked = check(value);
    return checked.ok ? { ok: true, value: thaw(value) } : checked;
  };
}

/** As `checkOf`, for a value that need not be JSON: it is not copied. */
export function fitOf(schema: InputSchema, owner: string): (value: unknown) => Checked | Promise<Checked> {
  return isStandard(schema) ? (value) => fitStandard(schema, value) : fitJsonSchema(schema, owner);
}

/** A check that asks somebody else may take so long. Whoever stops a run, or closes its runtime, waits for it. */
const CHECKED_WITHIN_MS = 10_000;

function fitStandard(schema: StandardSchemaV1, value: unknown): Checked | Promise<Checked> {
  try {
    const result = schema['~standard'].validate(value);
    return result instanceof Promise ? inTime(result.then(standardResult).catch(threw)) : standardResult(result);
  } catch (thrown) {
    return threw(thrown);
  }
}

function inTime(checked: Promise<Checked>): Promise<Checked> {
  const { promise, resolve } = Promise.withResolvers<Checked>();
  const why = `its check gave no answer within ${CHECKED_WITHIN_MS} ms`;
  const lift = limitTime(systemClock, CHECKED_WITHIN_MS, () => resolve({ ok: false, why }));
  return Promise.race([checked, promise]).finally(lift);
}

function threw(thrown: unknown): Checked {
  return { ok: false, why: `its check threw: ${describeThrown(thrown)}` };
}

function standardResult(result: StandardSchemaV1.Result<unknown>): Checked {
  if (result.issues === undefined) return { ok: true, value: result.value };
  const why = result.issues.map(({ path, message }) => {
    const keys = path?.map((part) => String(typeof part === 'object' ? part.key : part)) ?? [];
    return `${['', ...keys].join('/') || '/'}: ${message}`;
  });
  return { ok: false, why: firstIssues(why) };
}

function fitJsonSchema(schema: JsonObject, owner: string): (value: unknown) => Checked {
  const compiled = compileSchema(schema);
  if ('cause' in compiled) {
    const { cause } = compiled;
    throw new PilotageError('tool_schema_invalid', `${owner} has an invalid JSON Schema: ${String(cause)}`, { cause });
  }
  const { validate } = compiled;
  return (value) => {
    if (validate(value)) return { ok: true, value };
    return { ok: false, why: firstIssues(validate.errors?.map(explainSchemaError) ?? []) };
  };
}

// Examples of a tool's arguments: checked once, and put in the order in which they are shown.

const EXAMPLE: OptionShape<ToolExample> = { args: 'any', tag: 'any?' };
const RANKS: readonly ToolExample['tag'][] = ['minimal', 'common', 'edge-case', undefined];

/** The arguments alone, frozen, the plainest first. @throws PilotageError `tool_example_invalid`. */
export function rankedExamples(
  tool: Pick<Tool, 'name' | 'examples'>,
  schema: JsonObject,
  check: ValueCheck,
): readonly JsonObject[] {
  const { examples = [] } = tool;
  if (!Array.isArray(examples)) {
    const message = `The examples of the tool ${tool.name} are no list; give one: [{ args: { … } }].`;
    throw new PilotageError('tool_example_invalid', message);
  }
  const ranked = examples.map((example: ToolExample, index) => {
    const why = misfit(example, schema, check);
    if (why !== undefined) {
      throw new PilotageError(
        'tool_example_invalid',
        `Example ${index} of the tool ${tool.name} does not fit: ${why}.`,
      );
    }
    assertKnownKeys(`Example ${index} of the tool ${tool.name}`, example, Object.keys(EXAMPLE));
    return { args: captureObject(example.args, 'example').json, rank: RANKS.indexOf(example.tag) };
  });
  return Object.freeze(ranked.sort((a, b) => a.rank - b.rank).map(({ args }) => args));
}

function misfit(example: ToolExample | null, schema: JsonObject, check: ValueCheck): string | undefined {
  const { args, tag }: Partial<ToolExample> = example ?? {};
  if (!RANKS.includes(tag)) return `its tag is ${JSON.stringify(tag)}; use minimal, common or edge-case`;
  if (!isJsonObject(args)) return 'it has no args; give { args: { … } }';
  const checked = check(args);
  // An asynchronous schema cannot be asked here: only the names of such an example are checked.
  const why = checked instanceof Promise || checked.ok ? undefined : checked.why;
  return why ?? unnamedArgument(schema, args);
}

/** These let a schema name arguments elsewhere than in its own `properties`. */
const OPEN_KEYWORDS = ['additionalProperties', 'patternProperties', 'allOf', 'anyOf', 'oneOf', 'if', '$ref'];

/** Most schemas let unknown arguments pass, but an example that has one shows a mistake. */
function unnamedArgument(schema: JsonObject, example: JsonObject): string | undefined {
  const { properties } = schema;
  if (!isJsonObject(properties) || OPEN_KEYWORDS.some((keyword) => keyword in schema)) return undefined;
  const unnamed = Object.keys(example).find((key) => !Object.hasOwn(properties, key));
  return unnamed === undefined ? undefined : `it has no argument ${JSON.stringify(unnamed)}`;
}
