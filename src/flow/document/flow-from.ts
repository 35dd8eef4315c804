/**
 * The declarative form of a flow: a JSON or YAML document that names the functions of a program. It says what `flow` says, is
 * made with the same builders, and passes the same checks. Nothing in it is evaluated, and no function is called.
 */

import { assertOptions, type Json, type JsonObject, type OptionShape, PilotageError } from '#core';
import type { InputSchema } from '#tools';
import type { FlowFault } from '../check/fault.ts';
import { edge, flow } from '../flow.ts';
import { type FlowBudget, type GraphNode, inOrder, sourcesOf } from '../graph.ts';
import type { Flow } from '../types.ts';
import { type NodePlan, readNode } from './nodes.ts';
import { type DocumentPart, documentInvalid, quotedName, readDocumentText, readObject, type Spot } from './parts.ts';
import {
  type DocumentReading,
  fieldsOf,
  givenField,
  needed,
  nodeNameOf,
  nodeNamesOf,
  noteFault,
  numberOf,
  readSchema,
  readTextPart,
  wholeOf,
  wrongType,
} from './values.ts';

export type { DocumentFault } from './parts.ts';

/** The functions, flows and schemas that a document refers to, by the names that it uses. */
export interface FlowFromOptions {
  /** Functions that nodes run, routers ask, and approvals and look-ups call. */
  readonly functions: Readonly<Record<string, (...args: never[]) => unknown>>;
  readonly flows?: Readonly<Record<string, Flow>>;
  readonly schemas?: Readonly<Record<string, InputSchema>>;
  /** Where the text comes from, such as its path; it stands before each fault. Default `document`. */
  readonly file?: string;
}

const OPTIONS: OptionShape<FlowFromOptions> = {
  functions: 'object',
  flows: 'object?',
  schemas: 'object?',
  file: 'text?',
};
const KEYS = ['name', 'description', 'inputSchema', 'outputSchema', 'budget', 'entry', 'exit', 'nodes', 'edges'];

/**
 * Reads a flow from a text, JSON or YAML 1.2, or from the object that such a text stands for. What it takes and gives is checked
 * by the schemas of the document as it runs; the types are what the caller says of them.
 * @throws PilotageError `flow_invalid` with every fault, each with its line and column when there is a text:
 * `data.faults` is `[{ code, message, path, line?, column? }]`, the path a JSON Pointer.
 */
export function flowFrom<In = unknown, Out = Json>(
  document: string | JsonObject,
  options: FlowFromOptions,
): Flow<In, Out> {
  assertOptions('flowFrom', options, OPTIONS);
  const { functions, flows = {}, schemas = {}, file: source = 'document' } = options;
  const isText = typeof document === 'string';
  const { top, faults } = isText
    ? readDocumentText(document, source)
    : { top: readObject(document, source), faults: [] };
  const reading: DocumentReading = {
    functions,
    flows,
    schemas,
    faults: [...faults],
    nodes: new Set(),
    graphBroken: false,
  };
  const made = readFlow(top, reading);
  if (made === undefined || reading.faults.length > 0) throw documentInvalid(source, reading.faults);
  return made as Flow<In, Out>;
}

function readFlow(top: DocumentPart, reading: DocumentReading): Flow | undefined {
  const fields = fieldsOf(top, KEYS, reading);
  if (fields === undefined) return undefined;
  const need = (key: string): DocumentPart | undefined => needed(fields, key, top, 'The flow', reading);
  const [name, inputSchema] = [need('name'), need('inputSchema')];
  const options = {
    // Without a name, or with a wrong one, there is a fault, and the rest is judged all the same.
    name: (name === undefined ? undefined : readTextPart(name, reading)) ?? 'flow',
    inputSchema: (inputSchema === undefined ? undefined : readSchema(inputSchema, reading)) ?? {},
    ...givenField('description', fields, (part) => readTextPart(part, reading)),
    ...givenField('outputSchema', fields, (part) => readSchema(part, reading)),
    ...givenField('budget', fields, (part) => readBudget(part, reading)),
  };
  const plans = readNodes(need('nodes'), reading);
  const ways = readWays({ entry: need('entry'), exit: need('exit'), edges: fields.get('edges') }, reading);
  if (ways === undefined || reading.graphBroken) return undefined;
  noteUnused(plans, ways, reading);
  const nodes = makeNodes(plans, reading);
  if (nodes === undefined) return undefined;
  const nodeOf = (each: string): GraphNode => nodes.get(each) as GraphNode;
  const { entry, exits, edges } = ways;
  const parts = new Map<string, Spot | undefined>([
    ['bad_name', name],
    ['no_exit', fields.get('exit')],
    ['cycle_without_hops', fields.get('budget')],
  ]);
  const spots = new Map(plans.map(({ name: each, spot }) => [each, spot]));
  const spotOf = ({ code, nodes: [first = ''] }: FlowFault): Spot => spots.get(first) ?? parts.get(code) ?? top;
  return noting(spotOf, reading, () =>
    flow({
      ...options,
      entry: nodeOf(entry),
      exit: exits.map(nodeOf),
      edges: [
        ...edges.map(([from, to]) => edge(nodeOf(from), nodeOf(to))),
        ...plans.flatMap(({ name: from, failures }) =>
          failures.map(({ on, to }) => ({ from: nodeOf(from), to: nodeOf(to), on })),
        ),
      ],
    }),
  );
}

function readNodes(part: DocumentPart | undefined, reading: DocumentReading): readonly NodePlan[] {
  if (part?.fields === undefined) {
    reading.graphBroken = true;
    if (part !== undefined) wrongType(part, 'an object: from the name of each node to what it is', reading);
    return [];
  }
  reading.nodes = new Set(part.fields.keys());
  return [...part.fields].flatMap(([name, field]) => readNode(name, field, reading) ?? []);
}

interface Ways {
  readonly entry: string;
  readonly exits: readonly string[];
  readonly edges: readonly (readonly [from: string, to: string])[];
}

type WayParts = { readonly [K in 'entry' | 'exit' | 'edges']: DocumentPart | undefined };

function readWays(parts: WayParts, reading: DocumentReading): Ways | undefined {
  const entry = parts.entry === undefined ? undefined : nodeNameOf(parts.entry, reading);
  const exits = parts.exit === undefined ? undefined : readExits(parts.exit, reading);
  const edges = parts.edges === undefined ? [] : readEdges(parts.edges, reading);
  return entry === undefined || exits === undefined || edges === undefined ? undefined : { entry, exits, edges };
}

function readExits(part: DocumentPart, reading: DocumentReading): readonly string[] | undefined {
  if (part.items !== undefined) return nodeNamesOf(part, reading);
  const exit = nodeNameOf(part, reading);
  return exit === undefined ? undefined : [exit];
}

function readEdges(part: DocumentPart, reading: DocumentReading): Ways['edges'] | undefined {
  if (part.items === undefined) return wrongType(part, 'a list of [from, to]', reading);
  const edges = part.items.flatMap((item) => {
    if (item.items?.length !== 2) wrongType(item, 'two nodes: [from, to]', reading);
    const [from, to] = (item.items?.length === 2 ? nodeNamesOf(item, reading) : undefined) ?? [];
    return from === undefined || to === undefined ? [] : [[from, to] as const];
  });
  return edges.length === part.items.length ? edges : undefined;
}

/** Stands for hops that are wrong: that a cycle has none is not said as well. */
const SOME_HOPS = 1;

function readBudget(part: DocumentPart, reading: DocumentReading): FlowBudget {
  const fields = fieldsOf(part, ['hops', 'deadlineMs', 'costUsd', 'tokens'], reading);
  if (fields === undefined) return { hops: SOME_HOPS };
  return {
    ...givenField('hops', fields, (value) => wholeOf(value, 1, reading) ?? SOME_HOPS),
    ...givenField('deadlineMs', fields, (value) => wholeOf(value, 1, reading)),
    ...givenField('costUsd', fields, (value) => numberOf(value, 0, reading)),
    ...givenField('tokens', fields, (value) => wholeOf(value, 0, reading)),
  };
}

/** A program's flow has the nodes that its edges lead to; one that stands in a document for nothing is a slip. */
function noteUnused(plans: readonly NodePlan[], { entry, exits, edges }: Ways, reading: DocumentReading): void {
  const used = new Set([
    entry,
    ...exits,
    ...edges.flat(),
    ...plans.flatMap(({ needs, failures }) => [...needs, ...failures.map(({ to }) => to)]),
  ]);
  for (const { name, spot } of plans) {
    const message = `Nothing leads to the node ${quotedName(name)}; add an edge, or take it out.`;
    if (!used.has(name)) noteFault(reading, 'node_unused', spot, message);
  }
}

/** Each after those that it needs. Nothing when some need each other, or a builder refused one: these are faults. */
function makeNodes(plans: readonly NodePlan[], reading: DocumentReading): ReadonlyMap<string, GraphNode> | undefined {
  const made = new Map<string, GraphNode>();
  const byName = new Map(plans.map((plan) => [plan.name, plan]));
  const names = [...byName.keys()];
  const users = sourcesOf(names, (name) => [...new Set(byName.get(name)?.needs)]);
  const order = new Set(inOrder(names, (name) => users.get(name) ?? []));
  for (const name of order) {
    const plan = byName.get(name);
    // What needs one that was refused cannot be made, and says nothing of itself.
    if (plan?.needs.every((need) => made.has(need)) !== true) continue;
    const make = (): GraphNode => plan.make((need) => made.get(need) as GraphNode);
    const node = noting(() => plan.spot, reading, make);
    if (node !== undefined) made.set(name, node);
  }
  if (order.size < plans.length)
    noteCycle(
      plans.filter(({ name }) => !order.has(name)),
      reading,
    );
  return made.size === plans.length ? made : undefined;
}

/** @param left all of them on a cycle, or in need of one that is. */
function noteCycle(left: readonly NodePlan[], reading: DocumentReading): void {
  const byName = new Map(left.map((plan) => [plan.name, plan]));
  const path: NodePlan[] = [];
  let at = left[0];
  while (at !== undefined && !path.includes(at)) {
    path.push(at);
    at = byName.get(at.needs.find((need) => byName.has(need)) ?? '');
  }
  if (at === undefined) return;
  const cycle = [...path.slice(path.indexOf(at)), at].map(({ name }) => quotedName(name)).join(' -> ');
  const message = `${cycle}: these need each other, with nothing between them but targets of routers, parents of joins and branches of races. Put a node that runs between them.`;
  noteFault(reading, 'cycle_without_node', at.spot, message);
}

/** Runs the builder of a flow or of a node; what it refuses becomes faults. */
function noting<T>(spotOf: (fault: FlowFault) => Spot, reading: DocumentReading, build: () => T): T | undefined {
  try {
    return build();
  } catch (cause) {
    if (!PilotageError.is(cause, 'flow_invalid')) throw cause;
    const faults = cause.data?.['faults'] as unknown as readonly FlowFault[];
    for (const fault of faults) noteFault(reading, fault.code, spotOf(fault), fault.message);
    return undefined;
  }
}
