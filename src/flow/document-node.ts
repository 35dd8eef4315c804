/** The nodes of a flow document, each made by the builder that a program calls too. */
import type { Effect } from '#core';
import { quotedName, type Spot } from './document-fault.ts';
import type { Field, Part } from './document-part.ts';
import {
  type DocumentReading,
  type Fields,
  type Form,
  fieldsOf,
  flagOf,
  functionOf,
  givenField,
  namedOf,
  needed,
  nodeNameOf,
  nodeNamesOf,
  noteFault,
  numberOf,
  readOneOf,
  readSchema,
  readTextPart,
  wholeOf,
  wrongType,
} from './document-read.ts';
import { readRouter } from './document-router.ts';
import type { FailureWay } from './gather.ts';
import { join } from './join.ts';
import { map } from './map.ts';
import { node } from './node.ts';

export interface NodePlan extends Form {
  readonly name: string;
  /** Its key. */
  readonly spot: Spot;
  readonly failures: readonly FailureWay[];
}

/** Stands where a function is missing, which is a fault. */
const NEVER = (): undefined => undefined;
const EFFECTS: readonly Effect[] = ['pure', 'read', 'keyed', 'once'];
const IN_DOUBT: readonly ('hold' | 'tell')[] = ['hold', 'tell'];
const CALL_KEYS = [
  ...['description', 'outputSchema', 'effect', 'timeoutMs', 'retries', 'backoff', 'needsApproval', 'costUsd'],
  ...['reconcile', 'inDoubt', 'allowCycle', 'onError', 'onRejected'],
];
const KINDS = ['execute', 'router', 'join', 'map', 'flow'] as const;
const ALL_KEYS = [...KINDS, 'inputSchema', 'itemSchema', 'concurrency', ...CALL_KEYS];

/** Nothing when its form cannot be told. */
export function readNode(name: string, { key, part }: Field, reading: DocumentReading): NodePlan | undefined {
  const form = readForm(name, part, reading);
  const failures = readFailures(part, reading);
  if (form === undefined) reading.graphBroken = true;
  return form === undefined ? undefined : { name, spot: key, failures, ...form };
}

/** Keys of failure edges. They lead to nodes that may need this node, so that they are read as edges, not as parts of the node. */
function readFailures({ fields }: Part, reading: DocumentReading): readonly FailureWay[] {
  return FAILURE_KEYS.flatMap(([key, on]) => {
    const target = fields?.get(key);
    if (target === undefined || fields?.has('router') === true) return [];
    const to = nodeNameOf(target.part, reading);
    if (to === undefined) reading.graphBroken = true;
    return to === undefined ? [] : [{ on, to }];
  });
}

const FAILURE_KEYS = [
  ['onError', 'error'],
  ['onRejected', 'rejected'],
] as const;

function readForm(name: string, part: Part, reading: DocumentReading): Form | undefined {
  if (part.fields === undefined) return wrongType(part, 'an object', reading);
  const has = (key: string): boolean => part.fields?.has(key) === true;
  const kinds = KINDS.filter((kind) => has(kind) && !(kind === 'execute' && has('join')));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    if (kind === undefined) fieldsOf(part, ALL_KEYS, reading);
    const found = kinds.length > 1 ? ` This node has ${kinds.map(quotedName).join(' and ')}.` : '';
    const message = `A node has exactly one of "execute", "router", "join" with "execute", "map" and "flow".${found}`;
    return noteFault(reading, 'node_kind', part, message);
  }
  switch (kind) {
    case 'execute':
      return readCall(name, part, reading);
    case 'join':
      return readJoin(name, part, reading);
    case 'map':
      return readMap(name, part, reading);
    case 'flow':
      return readSubflow(name, part, reading);
    case 'router':
      return readRouter(name, part, reading);
    default:
      return kind satisfies never;
  }
}

function readCall(name: string, part: Part, reading: DocumentReading): Form | undefined {
  const fields = fieldsOf(part, ['execute', 'inputSchema', ...CALL_KEYS], reading);
  const execute = fields?.get('execute');
  if (fields === undefined || execute === undefined) return undefined;
  const options = {
    ...callOptions(fields, reading),
    ...givenField('inputSchema', fields, (value) => readSchema(value, reading)),
    execute: functionOf(execute, reading) as () => unknown,
  };
  return { needs: [], make: () => node(name, options) };
}

function readJoin(name: string, part: Part, reading: DocumentReading): Form | undefined {
  const fields = fieldsOf(part, ['join', 'execute', ...CALL_KEYS], reading);
  const parents = fields?.get('join');
  if (fields === undefined || parents === undefined) return undefined;
  const needs = nodeNamesOf(parents, reading);
  const execute = needed(fields, 'execute', part, 'A node with "join"', reading);
  const options = {
    ...callOptions(fields, reading),
    execute: (execute === undefined ? NEVER : functionOf(execute, reading)) as () => unknown,
  };
  return needs && { needs, make: (nodeOf) => join(name, { ...options, of: needs.map(nodeOf) }) };
}

function readMap(name: string, part: Part, reading: DocumentReading): Form | undefined {
  const fields = fieldsOf(part, ['map', 'itemSchema', 'concurrency', ...CALL_KEYS], reading);
  const execute = fields?.get('map');
  if (fields === undefined || execute === undefined) return undefined;
  const options = {
    ...callOptions(fields, reading),
    ...givenField('itemSchema', fields, (value) => readSchema(value, reading)),
    ...givenField('concurrency', fields, (value) => wholeOf(value, 1, reading)),
    execute: functionOf(execute, reading) as () => unknown,
  };
  return { needs: [], make: () => map(name, options) };
}

function readSubflow(name: string, part: Part, reading: DocumentReading): Form | undefined {
  const fields = fieldsOf(part, ['flow', 'allowCycle', 'onError', 'onRejected'], reading);
  const named = fields?.get('flow');
  if (fields === undefined || named === undefined) return undefined;
  const subflow = namedOf(named, reading.flows, 'flow', reading);
  const options = givenField('allowCycle', fields, (value) => flagOf(value, reading));
  // A missing node is a fault already; a stand-in keeps the graph whole.
  return { needs: [], make: () => subflow?.asNode(name, options) ?? node(name, { ...options, execute: NEVER }) };
}

function callOptions(fields: Fields, reading: DocumentReading) {
  const timing = {
    ...givenField('timeoutMs', fields, (part) => wholeOf(part, 1, reading)),
    ...givenField('retries', fields, (part) => wholeOf(part, 0, reading)),
    ...givenField('backoff', fields, (part) => readBackoff(part, reading)),
  };
  return {
    ...givenField('description', fields, (part) => readTextPart(part, reading)),
    ...givenField('outputSchema', fields, (part) => readSchema(part, reading)),
    // In place of a wrong one: with `once` retries would be wrong too.
    ...givenField('effect', fields, (part) => readOneOf(part, EFFECTS, reading) ?? 'pure'),
    ...givenField('needsApproval', fields, (part) => readNeedsApproval(part, reading)),
    ...givenField('costUsd', fields, (part) => numberOf(part, 0, reading)),
    ...givenField('reconcile', fields, (part) => functionOf(part, reading) as () => never),
    ...givenField('inDoubt', fields, (part) => readOneOf(part, IN_DOUBT, reading)),
    ...givenField('allowCycle', fields, (part) => flagOf(part, reading)),
    ...(Object.keys(timing).length === 0 ? {} : { policy: timing }),
  };
}

function readBackoff(part: Part, reading: DocumentReading) {
  const fields = fieldsOf(part, ['baseMs', 'multiplier', 'maxMs'], reading);
  if (fields === undefined) return undefined;
  return {
    ...givenField('baseMs', fields, (value) => numberOf(value, 0, reading)),
    ...givenField('multiplier', fields, (value) => numberOf(value, 1, reading)),
    ...givenField('maxMs', fields, (value) => numberOf(value, 0, reading)),
  };
}

function readNeedsApproval(part: Part, reading: DocumentReading) {
  if (typeof part.json === 'boolean') return part.json;
  if (part.fields === undefined) return wrongType(part, 'true, false or an object', reading);
  const fields = fieldsOf(part, ['when', 'reason', 'approver', 'onReject', 'expiresInMs'], reading);
  if (fields === undefined) return undefined;
  return {
    ...givenField('when', fields, (value) => functionOf(value, reading) as () => boolean),
    ...givenField('reason', fields, (value) => readTextPart(value, reading)),
    ...givenField('approver', fields, (value) => readOneOf(value, ['anyone', 'another'], reading)),
    ...givenField('onReject', fields, (value) => readOneOf(value, ['tell', 'end'], reading)),
    ...givenField('expiresInMs', fields, (value) => wholeOf(value, 1, reading)),
  };
}
