/** What can be said of a step by itself. */
import {
  describeThrown,
  type Json,
  type JsonObject,
  type PlanFault,
  referenceFault,
  referencesIn,
  type ToolView,
} from '#core';
import { explainSchemaError, firstIssues, type SchemaError, schemaErrors } from '#schema';
import { fault, type GivenStep } from './given-plan.ts';
import { STEP_TYPES } from './plan-schema.ts';
import { shapeOf } from './references.ts';

export interface StepRules {
  readonly tools: ToolView;
  /** The tool that carries out `internal` steps, called with `{ id, input, meta }`. Default: plans have no internal steps. */
  readonly internal?: string;
}

export function stepFaults(step: GivenStep, rules: StepRules): PlanFault[] {
  const { id, type, name } = step;
  const faults: PlanFault[] = [];
  if (id === undefined) faults.push(fault('step_id_missing', `${name} has no id.`));
  if (type === undefined) {
    faults.push(fault('step_type', `The step ${shownStep(step)} needs a type: one of ${STEP_TYPES.join(', ')}.`, id));
  }
  const malformed = malformedReference(step);
  if (malformed !== undefined) {
    faults.push(fault('reference_invalid', `In the input of the step ${shownStep(step)} ${malformed}.`, id));
    return faults;
  }
  return [...faults, ...faultsOfType(step, rules)];
}

/** What is in the way of looking at the rest: it would be taken for a value. */
function malformedReference({ input, meta, type }: GivenStep): string | undefined {
  return referenceFault(type === 'internal' ? [input ?? null, meta ?? null] : (input ?? null));
}

function faultsOfType(step: GivenStep, rules: StepRules): PlanFault[] {
  const { id, type, input } = step;
  switch (type) {
    case 'tool':
      return toolFaults(step, rules.tools);
    case 'internal':
      return internalFaults(step, rules);
    case 'message':
      if (input !== undefined && input !== '') return [];
      return [fault('input_invalid', `The message ${shownStep(step)} is empty: give its words as input.`, id)];
    case 'finish':
    case undefined:
      return [];
    default:
      return type satisfies never;
  }
}

function toolFaults(step: GivenStep, tools: ToolView): PlanFault[] {
  const { id, toolId } = step;
  if (toolId === undefined) return [fault('tool_missing', `The tool step ${shownStep(step)} names no toolId.`, id)];
  const tool = tools.get(toolId);
  if (tool === undefined) {
    return [
      fault('tool_unknown', `The step ${shownStep(step)} calls ${JSON.stringify(toolId)}: there is no such tool.`, id),
    ];
  }
  const problem = inputProblem(tool.inputSchema, step.input ?? {});
  if (problem === undefined) return [];
  return [
    fault('input_invalid', `The input of the step ${shownStep(step)} does not fit the tool ${toolId}: ${problem}.`, id),
  ];
}

function internalFaults(step: GivenStep, { tools, internal }: StepRules): PlanFault[] {
  const known = internal !== undefined && tools.get(internal) !== undefined;
  const message = `The step ${shownStep(step)} is internal, and nothing here carries out internal steps.`;
  return known ? [] : [fault('internal_unhandled', message, step.id)];
}

export function shownStep({ name, id }: GivenStep): string {
  return id === undefined ? name : JSON.stringify(id);
}

const NONE: ReadonlySet<string> = new Set();

/** The ids that the step refers to. */
export function referencesOf({ input, meta, type }: GivenStep): ReadonlySet<string> {
  if (type !== 'internal' || meta === undefined) return isPlain(input) ? NONE : referencesIn(input);
  return referencesIn([input ?? null, meta]);
}

function isPlain(input: Json | undefined): input is undefined | string | number | boolean | null {
  return typeof input !== 'object' || input === null;
}

// Whether the input of a step fits its tool, as far as that is known before the plan runs: what a reference will stand
// for is judged when it does.

/** Why the input does not fit; `undefined` when it does, or may. */
function inputProblem(schema: JsonObject, input: Json): string | undefined {
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
