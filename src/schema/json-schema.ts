/** JSON Schema: ajv set up once, for the inputs of tools and for the shape of plans. */
import { createRequire } from 'node:module';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { Json, JsonObject } from '#core';
import { inWordsOfToday } from './older-dialects.ts';
import { TimeLimit } from './time-limit.ts';

export type SchemaError = ErrorObject;

/** A schema that cannot be compiled has the reason in place of its check. */
export type Compiled = { readonly validate: Validate } | { readonly cause: unknown };

/** Says whether a value fits, and leaves what is wrong with it. */
interface Validate {
  (value: unknown): boolean;
  errors?: readonly SchemaError[] | null | undefined;
}

type AjvClass = typeof import('ajv').Ajv;
type AjvInstance = InstanceType<AjvClass>;
/** An instance keeps all that it has ever compiled, so that it is replaced after so many schemas. */
const MOST_OF_INSTANCE = 500;
const instances = new Map<string, { readonly ajv: AjvInstance; compiles: number }>();

/** ajv is loaded with the first JSON Schema that is checked: importing the package stays light. */
function ajv(path: 'ajv' | 'ajv/dist/2020.js', name: 'Ajv' | 'Ajv2020'): AjvInstance {
  const known = instances.get(path);
  if (known !== undefined && known.compiles < MOST_OF_INSTANCE) {
    known.compiles += 1;
    return known.ajv;
  }
  const loaded: Readonly<Record<'Ajv' | 'Ajv2020', AjvClass>> = createRequire(import.meta.url)(path);
  const made = new loaded[name]({
    strict: false,
    allErrors: true,
    validateFormats: false,
    // Without this, a field named `constructor` is always there.
    ownProperties: true,
    logger: false,
    code: { regExp },
  });
  instances.set(path, { ajv: made, compiles: 1 });
  return made;
}

/** Patterns are written for validators that know no `u`, under which `[\w-.]` is a fault. */
const regExp = Object.assign(
  (pattern: string, flags: string): RegExp => {
    try {
      return new RegExp(pattern, flags);
    } catch {
      return new RegExp(pattern);
    }
  },
  { code: 'new RegExp' },
);

/** By the schema object: a catalogue is made more than once from the same tools. */
const compiled = new WeakMap<JsonObject, Compiled>();

/** By what it says, those used last: a program that makes its tools for each request makes the same schemas again. */
const compiledTexts = new Map<string, Compiled>();
const KEPT_TEXTS = 256;
const KEPT_TEXT_CHARS = 32_768;

export function compileSchema(schema: JsonObject): Compiled {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const text = JSON.stringify(schema);
  const made = compiledTexts.get(text) ?? compile(schema, text);
  compiled.set(schema, made);
  keepText(text, made);
  return made;
}

function keepText(text: string, made: Compiled): void {
  if (text.length > KEPT_TEXT_CHARS) return;
  compiledTexts.delete(text);
  compiledTexts.set(text, made);
  if (compiledTexts.size <= KEPT_TEXTS) return;
  for (const oldest of compiledTexts.keys()) {
    compiledTexts.delete(oldest);
    return;
  }
}

function compile(schema: JsonObject, text: string): Compiled {
  // `$async` would make ajv answer with a promise.
  const { $schema, $async: _, ...rest } = inWordsOfToday(schema, text);
  const modern = typeof $schema === 'string' ? /20(19-09|20-12)/.test($schema) : text.includes('"prefixItems"');
  const instance = modern ? ajv('ajv/dist/2020.js', 'Ajv2020') : ajv('ajv', 'Ajv');
  try {
    const validate = instance.compile(rest);
    return { validate: PATTERNS.test(text) ? inTime(validate) : validate };
  } catch (cause) {
    return { cause };
  } finally {
    // ajv knows it by its $id now, and another tool's schema may have the same.
    instance.removeSchema(rest);
  }
}

const PATTERNS = /"pattern(Properties)?":/;
/** How long a schema with patterns may look at one value; once more, since on a busy machine the first time may have been that of others. */
const CHECK_TIMES_MS = [200, 1_000] as const;

/** A schema may be a model's, a user's or a server's, and its pattern one that takes for ever: what cannot be checked in time does not fit. */
function inTime(validate: ValidateFunction): Validate {
  let limits: readonly TimeLimit[] | undefined;
  const check: Validate = (value) => {
    let fits = false;
    limits ??= CHECK_TIMES_MS.map((timeMs) => new TimeLimit(timeMs));
    const look = (): void => {
      fits = validate(value);
    };
    const isDone = limits.some((limit) => limit.run(look));
    check.errors = isDone ? validate.errors : [TOO_SLOW];
    return isDone && fits;
  };
  return check;
}

const TOO_SLOW: SchemaError = {
  instancePath: '',
  schemaPath: '#',
  keyword: 'pattern',
  params: {},
  message: `a pattern of the schema takes more than ${CHECK_TIMES_MS[1]} ms; give a simpler pattern, or a shorter text`,
};

/** What is wrong with the value; empty for one that fits, and for a schema that cannot be compiled. */
export function schemaErrors(schema: JsonObject, value: Json): readonly SchemaError[] {
  const made = compileSchema(schema);
  if ('cause' in made || made.validate(value)) return [];
  return made.validate.errors ?? [];
}

const MAX_ISSUES = 10;
const MAX_ISSUE_CHARS = 300;

export function explainSchemaError(error: SchemaError): string {
  const extra: unknown = error.params['additionalProperty'];
  const name = typeof extra === 'string' ? ` (${extra})` : '';
  return `${error.instancePath || '/'}: ${error.message ?? error.keyword}${name}`.slice(0, MAX_ISSUE_CHARS);
}

/** What a model can work with: a value that is wrong in a thousand places is told the first ten. */
export function firstIssues(issues: readonly string[]): string {
  const shown = issues.slice(0, MAX_ISSUES).map((issue) => issue.slice(0, MAX_ISSUE_CHARS));
  const more = issues.length - shown.length;
  return more > 0 ? `${shown.join('; ')}; and ${more} more` : shown.join('; ');
}
