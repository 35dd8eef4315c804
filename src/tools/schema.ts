/** Schemas at the tool's edge: what the model is shown, and the check that arguments and values pass. */
import { createRequire } from 'node:module';
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import type { ValidateFunction } from 'ajv';
import { PilotageError } from '../core/errors.ts';
import { captureObject, type Json, type JsonObject, thaw } from '../core/json.ts';
import type { InputSchema } from './tool.ts';

/** `value` is what to hand on: a private copy, after the schema's own defaults and transforms. */
export type Checked = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string };
export type Check = (value: Json) => Checked | Promise<Checked>;

type Standard = StandardSchemaV1 | (StandardSchemaV1 & StandardJSONSchemaV1);

export function isStandard(schema: InputSchema): schema is Standard {
  return '~standard' in schema && (typeof schema === 'object' || typeof schema === 'function');
}

/**
 * The JSON Schema of a Standard Schema (through its own converter) or of a plain one.
 * @throws PilotageError `tool_schema_invalid` when a library gives no JSON Schema.
 */
export function jsonSchemaOf(schema: InputSchema, owner: string): JsonObject {
  if (!isStandard(schema)) return captureObject(schema, `${owner} schema`).json;
  const props = schema['~standard'];
  if (!('jsonSchema' in props)) {
    throw new PilotageError(
      'tool_schema_invalid',
      `${owner} has a ${props.vendor} schema that gives no JSON Schema. Upgrade ${props.vendor}, or pass a plain JSON Schema.`,
    );
  }
  try {
    return captureObject(props.jsonSchema.input({ target: 'draft-07' }), `${owner} schema`).json;
  } catch (cause) {
    throw new PilotageError('tool_schema_invalid', `${owner} has a schema that cannot be written as JSON Schema.`, {
      cause,
    });
  }
}

/** The check is compiled at its first use, once. */
export function checkOf(schema: InputSchema, owner: string): Check {
  return isStandard(schema) ? (value) => checkStandard(schema, value) : checkJsonSchema(schema, owner);
}

function checkStandard(schema: StandardSchemaV1, value: Json): Checked | Promise<Checked> {
  const result = schema['~standard'].validate(thaw(value));
  return result instanceof Promise ? result.then(standardResult) : standardResult(result);
}

function standardResult(result: StandardSchemaV1.Result<unknown>): Checked {
  if (result.issues === undefined) return { ok: true, value: result.value };
  const why = result.issues.map(({ path, message }) => {
    const keys = path?.map((part) => String(typeof part === 'object' ? part.key : part)) ?? [];
    return `${['', ...keys].join('/') || '/'}: ${message}`;
  });
  return { ok: false, why: why.join('; ') };
}

function checkJsonSchema(schema: JsonObject, owner: string): Check {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= compile(schema, owner);
    if (validate(value)) return { ok: true, value: thaw(value) };
    return { ok: false, why: validate.errors?.map(explain).join('; ') ?? 'it does not fit the schema' };
  };
}

function explain(error: NonNullable<ValidateFunction['errors']>[number]): string {
  const extra: unknown = error.params['additionalProperty'];
  const name = typeof extra === 'string' ? ` (${extra})` : '';
  return `${error.instancePath || '/'}: ${error.message ?? error.keyword}${name}`;
}

type AjvClass = typeof import('ajv').Ajv;
type AjvInstance = InstanceType<AjvClass>;
const instances = new Map<string, AjvInstance>();

/** ajv is loaded with the first JSON Schema that is checked: importing the package stays light. */
function ajv(path: 'ajv' | 'ajv/dist/2020.js', name: 'Ajv' | 'Ajv2020'): AjvInstance {
  const known = instances.get(path);
  if (known !== undefined) return known;
  const loaded: Readonly<Record<'Ajv' | 'Ajv2020', AjvClass>> = createRequire(import.meta.url)(path);
  const made = new loaded[name]({ strict: false, allErrors: true, validateFormats: false, addUsedSchema: false });
  instances.set(path, made);
  return made;
}

function compile(schema: JsonObject, owner: string): ValidateFunction {
  const { $schema, ...rest } = schema;
  const modern = typeof $schema === 'string' && /20(19-09|20-12)/.test($schema);
  try {
    return (modern ? ajv('ajv/dist/2020.js', 'Ajv2020') : ajv('ajv', 'Ajv')).compile(rest);
  } catch (cause) {
    throw new PilotageError('tool_schema_invalid', `${owner} has an invalid JSON Schema: ${String(cause)}`, { cause });
  }
}

/** Compiles now, so that a bad schema is found where the tool is registered. */
export function assertSchema(schema: InputSchema, owner: string): void {
  if (!isStandard(schema)) compile(schema, owner);
}
