/** Turns a value that was given as a plan into steps that can be checked one by one. Nothing is thrown: every mistake is a fault. */
import {
  capture,
  defined,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  type PlanFault,
  pointerTo,
  referencesIn,
} from '#core';
import { explainSchemaError, type SchemaError, schemaErrors } from '#schema';
import { type PlanStep, type PlanStepType, STEP_TYPES } from './plan.ts';

const IDS: JsonObject = { type: 'array', items: { type: 'string' } };

/** Both forms of a plan. What has a fault code of its own (ids, types, tools) is left to the checks behind it. */
const GIVEN_STEP: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    type: { type: 'string' },
    toolId: { type: 'string' },
    meta: { type: 'object' },
    after: IDS,
    behind: IDS,
    when: { type: 'object', required: ['step', 'equals'], properties: { step: { type: 'string' } } },
    again: { type: 'boolean' },
  },
};

/**
 * Other keys are a model's own notes. But an order that nobody reads would be broken in silence. This is no `patternProperties` of
 * the schema: patterns of schemas are matched under a time limit, which takes longer than all else that is looked at here.
 */
const ORDER_KEY = /^(depends|dependenc|needs|requires|prerequisite|condition)/;

const GIVEN_PLAN_SCHEMA: JsonObject = {
  type: 'object',
  oneOf: [{ required: ['steps'] }, { required: ['nodes'] }],
  properties: {
    planId: { type: 'string', minLength: 1 },
    steps: { type: 'array', items: GIVEN_STEP },
    nodes: { type: 'object', additionalProperties: GIVEN_STEP },
    edges: { type: 'object', additionalProperties: IDS },
  },
};

/** A step as far as it could be read: what has not the right shape is missing here, and is a fault. */
export interface GivenStep extends Partial<PlanStep> {
  /** Where it stands, for messages: its id, or its place. */
  readonly name: string;
}

export interface GivenPlan {
  readonly planId?: string;
  readonly steps: readonly GivenStep[];
  /** Absent: nothing is said of edges. */
  readonly edges?: readonly (readonly [from: string, to: string])[];
  /** True: the plan is a list, whose order may count. */
  readonly isList: boolean;
  readonly faults: readonly PlanFault[];
}

export function readGivenPlan(given: unknown): GivenPlan {
  let json: Json;
  try {
    json = capture(given, 'plan').json;
  } catch (cause) {
    return { steps: [], isList: true, faults: [fault('plan_shape', describeThrown(cause))] };
  }
  const errors = schemaErrors(GIVEN_PLAN_SCHEMA, json);
  if (!isJsonObject(json)) return { steps: [], isList: true, faults: shapeFaults(errors, []) };
  const isList = Array.isArray(json['steps']);
  const entries = isList ? listed(json['steps'] as readonly Json[]) : keyed(json['nodes']);
  const steps = entries.map(({ key, value }, index) => readStep(value, key ?? `steps[${index}]`, key));
  const faults = [...shapeFaults(errors, steps), ...orderFaults(entries, steps), ...keyFaults(entries)];
  const empty = steps.length === 0 && faults.length === 0;
  const { planId } = json;
  return {
    steps,
    isList,
    faults: empty ? [fault('plan_empty', 'The plan has no steps.')] : faults,
    ...(typeof planId === 'string' && planId !== '' ? { planId } : {}),
    ...('edges' in json ? { edges: readEdges(json['edges']) } : {}),
  };
}

interface Entry {
  /** For a node: the key under which it stands. */
  readonly key?: string;
  readonly value: Json;
}

function listed(steps: readonly Json[]): Entry[] {
  return steps.map((value) => ({ value }));
}

function keyed(nodes: Json | undefined): Entry[] {
  return isJsonObject(nodes) ? Object.entries(nodes).map(([key, value]) => ({ key, value })) : [];
}

function keyFaults(entries: readonly Entry[]): PlanFault[] {
  return entries.flatMap(({ key, value }) => {
    const id = isJsonObject(value) ? value['id'] : undefined;
    if (key === undefined || typeof id !== 'string' || id === key) return [];
    return [
      fault('plan_shape', `The node under the key ${JSON.stringify(key)} has the id ${JSON.stringify(id)}.`, key),
    ];
  });
}

/** @param key of a node: it is the node's id, also when the node names another one. */
function readStep(value: Json, place: string, key: string | undefined): GivenStep {
  const raw: JsonObject = isJsonObject(value) ? value : {};
  const id = key === undefined || key === '' ? textOf(raw['id']) : key;
  const type = typeOf(raw['type']);
  const toolId = textOf(raw['toolId']);
  const { input, meta, again } = raw;
  const after = idsOf(raw['after']);
  const behind = idsOf(raw['behind']);
  const when = whenOf(raw['when']);
  // One by one: a spread for each field is felt with ten thousand steps.
  const step: { -readonly [K in keyof GivenStep]: GivenStep[K] } = { name: id ?? place };
  if (id !== undefined) step.id = id;
  if (type !== undefined) step.type = type;
  if (toolId !== undefined) step.toolId = toolId;
  if (input !== undefined) step.input = input;
  if (isJsonObject(meta)) step.meta = meta;
  if (after !== undefined) step.after = after;
  if (behind !== undefined) step.behind = behind;
  if (when !== undefined) step.when = when;
  if (again === true) step.again = true;
  return step;
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function typeOf(value: Json | undefined): PlanStepType | undefined {
  return STEP_TYPES.find((type) => type === value);
}

function idsOf(value: Json | undefined): readonly string[] | undefined {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'string') : undefined;
}

function whenOf(value: Json | undefined): PlanStep['when'] {
  if (!isJsonObject(value) || typeof value['step'] !== 'string' || value['equals'] === undefined) return undefined;
  return { step: value['step'], equals: value['equals'] };
}

function readEdges(edges: Json | undefined): (readonly [string, string])[] {
  if (!isJsonObject(edges)) return [];
  return Object.entries(edges).flatMap(([from, after]) => (idsOf(after) ?? []).map((to) => [from, to] as const));
}

function shapeFaults(errors: readonly SchemaError[], steps: readonly GivenStep[]): PlanFault[] {
  return errors.flatMap((error) => {
    // The fault of `oneOf` itself is enough: a plan has exactly one of the two forms.
    if (error.schemaPath.startsWith('#/oneOf/')) return [];
    if (error.keyword === 'oneOf') return [fault('plan_shape', 'A plan has either `steps` or `nodes`.')];
    const message = `The plan is malformed at ${explainSchemaError(error)}.`;
    return [fault('plan_shape', message, stepAt(error.instancePath, steps)?.id)];
  });
}

function orderFaults(entries: readonly Entry[], steps: readonly GivenStep[]): PlanFault[] {
  return entries.flatMap(({ key, value }, index) => {
    if (!isJsonObject(value)) return [];
    const place = key === undefined ? pointerTo('/steps', index) : pointerTo('/nodes', key);
    return Object.keys(value)
      .filter((name) => ORDER_KEY.test(name))
      .map((name) => {
        const message = `The plan has an unknown key at ${pointerTo(place, name)}: what comes before a step stands in its \`after\` or \`when\`.`;
        return fault('plan_shape', message, key ?? steps[index]?.id);
      });
  });
}

function stepAt(pointer: string, steps: readonly GivenStep[]): GivenStep | undefined {
  const [, form, key = ''] = pointer.split('/');
  if (form === 'steps') return steps[Number(key)];
  if (form !== 'nodes') return undefined;
  const id = key.replaceAll('~1', '/').replaceAll('~0', '~');
  return { name: id, id };
}

export function fault(code: string, message: string, step?: string, path?: readonly string[]): PlanFault {
  return { code, message, ...defined({ step, path }) };
}

const NONE: ReadonlySet<string> = new Set();

export function shownStep({ name, id }: GivenStep): string {
  return id === undefined ? name : JSON.stringify(id);
}

/** The ids that the step refers to. */
export function referencesOf({ input, meta, type }: GivenStep): ReadonlySet<string> {
  if (type !== 'internal' || meta === undefined) return isPlain(input) ? NONE : referencesIn(input);
  return referencesIn([input ?? null, meta]);
}

/** The ids of steps without which the step is not run: in `after`, `when` and references. */
export function namedBy(step: GivenStep): readonly string[] {
  const { after = [], when } = step;
  return [...after, ...(when === undefined ? [] : [when.step]), ...referencesOf(step)];
}

function isPlain(input: Json | undefined): input is undefined | string | number | boolean | null {
  return typeof input !== 'object' || input === null;
}
