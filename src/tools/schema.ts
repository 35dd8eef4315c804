/** Schemas at the tool's edge: what the model is shown, and the check that arguments and values pass. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  assertKnownKeys,
  captureObject,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  limitTime,
  type OptionShape,
  PilotageError,
  systemClock,
  thaw,
} from '#core';
import { assertSchema, compileSchema, explainSchemaError, firstIssues, isStandard, standardMisfit } from '#schema';
import type { InputSchema, Tool, ToolExample } from './tool.ts';

/** `value` is what to hand on: a private copy, after the schema's own defaults and transforms. */
export type Checked = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string };
export type ValueCheck = (value: Json) => Checked | Promise<Checked>;

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
  return result.issues === undefined
    ? { ok: true, value: result.value }
    : { ok: false, why: standardMisfit(result.issues) };
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
