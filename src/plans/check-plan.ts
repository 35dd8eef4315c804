/**
 * Whether a plan can be carried out. Everything that is wrong is told at once, and nothing but a plan in which nothing is
 * wrong is given on.
 */
import {
  allReferencesIn,
  asReference,
  defined,
  describeThrown,
  type Json,
  type JsonObject,
  PilotageError,
  type PlanFault,
  pointerTo,
  referenceFault,
  type ToolView,
  unescaped,
} from '#core';
import { explainSchemaError, firstIssues, type SchemaError, schemaErrors } from '#schema';
import { fault, type GivenPlan, type GivenStep, readGivenPlan, shownStep } from './given-plan.ts';
import { type Links, linkSteps } from './links.ts';
import { orderAndCycles, pairsOutOfOrder, stepsBehind } from './order.ts';
import { type ReadyPlan, type ReadyStep, STEP_TYPES } from './plan.ts';

/** Default of `maxSteps`. */
export const MAX_PLAN_STEPS = 1_000;

export interface PlanRules {
  readonly tools: ToolView;
  /** The tool that carries out `internal` steps, called with `{ id, input, meta }`. Default: plans have no internal steps. */
  readonly internal?: string;
  /** Default 1,000. */
  readonly maxSteps?: number;
  /** Ids of steps of earlier plans of the run that have a value: references to them are fine. */
  readonly earlier?: ReadonlySet<string>;
  /** The id of a plan that names none. Default `plan`. */
  readonly planId?: string;
}

export type CheckedPlan = { readonly plan: ReadyPlan } | { readonly faults: readonly PlanFault[] };

const NONE: ReadonlySet<string> = new Set();

/** Never throws, for any value. The same plan gives the same faults in the same order. */
export function checkPlan(given: unknown, rules: PlanRules): CheckedPlan {
  const { maxSteps = MAX_PLAN_STEPS, earlier = NONE, planId = 'plan' } = rules;
  const read = readGivenPlan(given);
  const count = read.steps.length;
  const long = `The plan has ${count} steps; at most ${maxSteps} are allowed.`;
  const faults = count > maxSteps ? [fault('plan_too_long', long)] : [];
  const ordered = orderGiven(read, earlier);
  faults.push(...read.faults, ...read.steps.flatMap((step) => stepFaults(step, rules)), ...ordered.faults);
  return faults.length > 0 ? { faults } : { plan: { planId: read.planId ?? planId, steps: ordered.steps } };
}

/** The steps of a plan in an order in which they can be carried out. Tools are not checked. @throws PilotageError `plan_invalid`. */
export function stepsInOrder(given: unknown): readonly ReadyStep[] {
  const read = readGivenPlan(given);
  const { steps, faults } = orderGiven(read, NONE);
  if (read.faults.length + faults.length > 0) throw planInvalid([...read.faults, ...faults]);
  return steps;
}

interface Ordered {
  /** Empty when there are faults. */
  readonly steps: readonly ReadyStep[];
  readonly faults: readonly PlanFault[];
}

function orderGiven(given: GivenPlan, earlier: ReadonlySet<string>): Ordered {
  const { steps } = given;
  const links = linkSteps(given, earlier);
  const { before } = links;
  const { order, cycles } = orderAndCycles(before);
  const faults = [
    ...links.faults,
    ...cycles.map((cycle) => cycleFault(cycle, steps)),
    ...unreachable(steps, links, cycles),
    ...(cycles.length === 0 ? outOfOrder(links, order, steps) : []),
  ];
  if (faults.length > 0 || given.faults.length > 0) return { steps: [], faults };
  return { steps: order.flatMap((index) => readyStep(index, steps, links)), faults };
}

function readyStep(index: number, steps: readonly GivenStep[], links: Links): ReadyStep[] {
  const { name: _, behind: __, ...step } = steps[index] as GivenStep;
  const { id, type } = step;
  // Both are there: that they are not is a fault.
  if (id === undefined || type === undefined) return [];
  const idsOf = (needs: readonly number[]): string[] => needs.flatMap((need) => steps[need]?.id ?? []);
  const after = idsOf(strictBefore(links, index));
  const behind = idsOf(links.behind[index] ?? []);
  return [{ ...step, id, type, after, ...(behind.length === 0 ? {} : { behind }) }];
}

/** Those without which the step is not run. */
function strictBefore({ before, behind }: Links, index: number): readonly number[] {
  const loose = behind[index] ?? [];
  const all = before[index] ?? [];
  return loose.length === 0 ? all : all.filter((need) => !loose.includes(need));
}

function cycleFault(cycle: readonly number[], steps: readonly GivenStep[]): PlanFault {
  const path = cycle.map((index) => steps[index]?.name ?? '');
  const message = `The steps wait for each other in a cycle: ${path.map((id) => JSON.stringify(id)).join(' → ')}.`;
  return fault('plan_cycle', message, path[0], path);
}

/** Steps that would never have their turn: behind the end of the plan, or behind steps that wait for each other. */
function unreachable(steps: readonly GivenStep[], links: Links, cycles: readonly (readonly number[])[]): PlanFault[] {
  const { before } = links;
  const finishes = new Set(steps.flatMap(({ type }, index) => (type === 'finish' ? [index] : [])));
  const inCycle = new Set(cycles.flat());
  // A finish with a condition may be passed over: what is merely written behind it has its turn then.
  const strict = before.map((_, index) => strictBefore(links, index));
  const behind = new Set([...stepsBehind(strict, [...finishes]), ...stepsBehind(before, [...inCycle])]);
  return [...behind]
    .sort((a, b) => a - b)
    .flatMap((index) => {
      if (inCycle.has(index)) return [];
      const { id, name } = steps[index] as GivenStep;
      if (strict[index]?.some((need) => finishes.has(need)) === true) {
        return [fault('after_finish', `The step ${name} comes after a finish, which ends the plan.`, id)];
      }
      return [fault('step_unreachable', `The step ${name} is never reached: what comes before it cannot run.`, id)];
    });
}

function outOfOrder({ before, distant }: Links, order: readonly number[], steps: readonly GivenStep[]): PlanFault[] {
  return pairsOutOfOrder(before, order, distant).map(({ step, earlier }) => {
    const [name, other] = [steps[step]?.name ?? '', steps[earlier]?.name ?? ''];
    const message = `The step ${JSON.stringify(name)} refers to ${JSON.stringify(other)}, which by the edges does not come before it.`;
    return fault('reference_not_before', message, name);
  });
}

const MAX_SHOWN = 20;

/** The error of a plan that cannot be carried out; `data.faults` has the faults. */
export function planInvalid(faults: readonly PlanFault[]): PilotageError {
  const more = faults.length > MAX_SHOWN ? ` And ${faults.length - MAX_SHOWN} more.` : '';
  const shown = faults.slice(0, MAX_SHOWN);
  const message = `The plan cannot be carried out. ${shown.map(({ message: said }) => said).join(' ')}${more}`;
  return new PilotageError('plan_invalid', message, { data: { faults: faultsAsJson(shown) } });
}

export function faultsAsJson(faults: readonly PlanFault[]): JsonObject[] {
  return faults.map(({ code, message, step, path }) => ({ code, message, ...defined({ step, path }) }));
}

// What can be said of a step by itself.

function stepFaults(step: GivenStep, rules: PlanRules): PlanFault[] {
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

function faultsOfType(step: GivenStep, rules: PlanRules): PlanFault[] {
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

function internalFaults(step: GivenStep, { tools, internal }: PlanRules): PlanFault[] {
  const known = internal !== undefined && tools.get(internal) !== undefined;
  const message = `The step ${shownStep(step)} is internal, and nothing here carries out internal steps.`;
  return known ? [] : [fault('internal_unhandled', message, step.id)];
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

/** The input as its tool may get it, with references where their values will be. */
function shapeOf(input: Json): { readonly value: Json; readonly open: readonly string[] } {
  const open: string[] = [];
  if (allReferencesIn(input).length > 0) findReferences(input, open);
  return { value: unescaped(input), open };
}

/** Notes JSON Pointers to the references in the value. */
function findReferences(value: Json, found: string[]): void {
  const open: { readonly at: string; readonly value: Json }[] = [{ at: '', value }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { at, value: inner } = next;
    if (typeof inner !== 'object' || inner === null || allReferencesIn(inner).length === 0) continue;
    if (asReference(inner) !== undefined) {
      found.push(at);
      continue;
    }
    for (const [key, part] of Object.entries(inner)) {
      open.push({ at: pointerTo(at, key), value: part });
    }
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
