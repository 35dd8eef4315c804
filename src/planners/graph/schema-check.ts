/** JSON Schema, for the shape of plans and the inputs of their steps. */
import { createRequire } from 'node:module';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { Json, JsonObject } from '#core';

export type SchemaError = ErrorObject;

type AjvClass = typeof import('ajv').Ajv;
type AjvInstance = InstanceType<AjvClass>;
const instances = new Map<string, AjvInstance>();

/** ajv is loaded with the first plan that is checked: importing the planner stays light. */
function ajv(path: 'ajv' | 'ajv/dist/2020.js', name: 'Ajv' | 'Ajv2020'): AjvInstance {
  const known = instances.get(path);
  if (known !== undefined) return known;
  const loaded: Readonly<Record<'Ajv' | 'Ajv2020', AjvClass>> = createRequire(import.meta.url)(path);
  const made = new loaded[name]({
    strict: false,
    allErrors: true,
    validateFormats: false,
    ownProperties: true,
    logger: false,
  });
  instances.set(path, made);
  return made;
}

/** By the schema object. `undefined` for a schema that cannot be compiled: the tool itself judges its arguments. */
const compiled = new WeakMap<JsonObject, { readonly validate: ValidateFunction | undefined }>();

function compile(schema: JsonObject): ValidateFunction | undefined {
  const known = compiled.get(schema);
  if (known !== undefined) return known.validate;
  // `$async` would make ajv answer with a promise.
  const { $schema, $async: _, ...rest } = schema;
  const modern = typeof $schema === 'string' && /20(19-09|20-12)/.test($schema);
  const instance = modern ? ajv('ajv/dist/2020.js', 'Ajv2020') : ajv('ajv', 'Ajv');
  let validate: ValidateFunction | undefined;
  try {
    validate = instance.compile(rest);
  } catch {
    // Nothing to check by.
  }
  // ajv knows it by its $id now, and another tool's schema may have the same.
  instance.removeSchema(rest);
  compiled.set(schema, { validate });
  return validate;
}

/** What is wrong with the value; empty for one that fits, and for a schema that cannot be compiled. */
export function schemaErrors(schema: JsonObject, value: Json): readonly SchemaError[] {
  const validate = compile(schema);
  if (validate === undefined || validate(value)) return [];
  return validate.errors ?? [];
}

export function explain(error: SchemaError): string {
  const extra: unknown = error.params['additionalProperty'];
  const name = typeof extra === 'string' ? ` (${extra})` : '';
  return `${error.instancePath || '/'}: ${error.message ?? error.keyword}${name}`.slice(0, MAX_ISSUE_CHARS);
}

const MAX_ISSUES = 10;
const MAX_ISSUE_CHARS = 300;

/** What a model can work with: a value that is wrong in a thousand places is told the first ten. */
export function explainAll(errors: readonly SchemaError[]): string {
  const shown = errors.slice(0, MAX_ISSUES).map(explain);
  const more = errors.length - shown.length;
  return more > 0 ? `${shown.join('; ')}; and ${more} more` : shown.join('; ');
}
