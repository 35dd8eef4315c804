/**
 * Whether the input of a step fits its tool, as far as that is known before the plan runs: what a reference will stand
 * for is judged when it does.
 */
import { describeThrown, type Json, type JsonObject } from '#core';
import { explainSchemaError, firstIssues, type SchemaError, schemaErrors } from '#schema';
import { shapeOf } from './references.ts';

/** Why the input does not fit; `undefined` when it does, or may. */
export function inputProblem(schema: JsonObject, input: Json): string | undefined {
  try {
    const { value, open } = shapeOf(input);
    const errors = schemaErrors(schema, value);
    if (errors.length === 0) return undefined;
    const certain = certainErrors(errors, open);
    return certain.length === 0 ? undefined : firstIssues(certain.map(explainSchemaError));
  } catch (cause) {
    // A schema that refers to itself, and an input as deep as the stack.
    return `the input cannot be checked: ${describeThrown(cause)}`;
  }
}

/** These judge a value by all that is inside it. */
const WHOLE: ReadonlySet<string> = new Set([
  'anyOf',
  'oneOf',
  'not',
  'if',
  'const',
  'enum',
  'contains',
  'unevaluatedProperties',
  'unevaluatedItems',
]);
/** A place in a schema inside one of those, or behind a `$ref`, which may stand in one. */
const WITHIN = /\/(anyOf|oneOf|not|if|then|else|contains)(\/|$)|^#\/(definitions|\$defs)\/|^[^#]/;

function certainErrors(errors: readonly SchemaError[], references: readonly string[]): readonly SchemaError[] {
  if (references.length === 0) return errors;
  const isOpen = ({ instancePath }: SchemaError): boolean => references.some((path) => isAt(path, instancePath));
  const undecided = errors.filter((error) => WHOLE.has(error.keyword) && isOpen(error));
  return errors.filter(
    (error) =>
      !references.some((path) => isAt(error.instancePath, path)) &&
      !undecided.includes(error) &&
      !(WITHIN.test(error.schemaPath) && undecided.some((whole) => isAt(error.instancePath, whole.instancePath))),
  );
}

/** Whether the first pointer is the second, or leads on from there. */
function isAt(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}
