/** The nodes of a flow document, each made by the builder that a program calls too. */
import type { Effect } from '#core';
import { quoted, type Spot } from './document-fault.ts';
import type { Field, Part } from './document-part.ts';
import {
  type Fields,
  type Form,
  fieldsOf,
  flagOf,
  functionOf,
  given,
  namedOf,
  needed,
  nodeNameOf,
  nodeNamesOf,
  note,
  numberOf,
  type Reading,
  schemaOf,
  textOf,
  wholeOf,
  wordOf,
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
export function readNode(name: string, { key, part }: Field, reading: Reading): NodePlan | undefined {
  const form = readForm(name, part, reading);
  const failures = readFailures(part, reading);
  if (form === undefined) reading.graphBroken = true;
  return form === undefined ? undefined : { name, spot: key, failures, ...form };
}

/** They lead to nodes that may need this one: they are edges, and no part of it. */
function readFailures({ fields }: Part, reading: Reading): readonly FailureWay[] {
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

function readForm(name: string, part: Part, reading: Reading): Form | undefined {
  if (part.fields === undefined) return wrongType(part, 'an object', reading);
  const has = (key: string): boolean => part.fields?.has(key) === true;
  const kinds = KINDS.filter((kind) => has(kind) && !(kind === 'execute' && has('join')));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    if (kind === undefined) fieldsOf(part, ALL_KEYS, reading);
    const found = kinds.length > 1 ? ` It has ${kinds.map(quoted).join(' and ')}.` : '';
    const message = `A node has exactly one of "execute", "router", "join" with "execute", "map" and "flow".${found}`;
    return note(reading, 'node_kind', part, message);
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

function readCall(name: string, part: Part, reading: Reading): Form | undefined {
  const fields = fieldsOf(part, ['execute', 'inputSchema', ...CALL_KEYS], reading);
  const execute = fields?.get('execute');
  if (fields === undefined || execute === undefined) return undefined;
  const options = {
    ...callOptions(fields, reading),
    ...given('inputSchema', fields, (value) => schemaOf(value, reading)),
    execute: functionOf(execute, reading) as () => unknown,
  };
  return { needs: [], make: () => node(name, options) };
}

function readJoin(name: string, part: Part, reading: Reading): Form | undefined {
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

function readMap(name: string, part: Part, reading: Reading): Form | undefined {
  const fields = fieldsOf(part, ['map', 'itemSchema', 'concurrency', ...CALL_KEYS], reading);
  const execute = fields?.get('map');
  if (fields === undefined || execute === undefined) return undefined;
  const options = {
    ...callOptions(fields, reading),
    ...given('itemSchema', fields, (value) => schemaOf(value, reading)),
    ...given('concurrency', fields, (value) => wholeOf(value, 1, reading)),
    execute: functionOf(execute, reading) as () => unknown,
  };
  return { needs: [], make: () => map(name, options) };
}

function readSubflow(name: string, part: Part, reading: Reading): Form | undefined {
  const fields = fieldsOf(part, ['flow', 'allowCycle', 'onError', 'onRejected'], reading);
  const named = fields?.get('flow');
  if (fields === undefined || named === undefined) return undefined;
  const subflow = namedOf(named, reading.flows, 'flow', reading);
  const options = given('allowCycle', fields, (value) => flagOf(value, reading));
  // One that is missing is a fault already; what stands for it keeps the graph whole.
  return { needs: [], make: () => subflow?.asNode(name, options) ?? node(name, { ...options, execute: NEVER }) };
}

function callOptions(fields: Fields, reading: Reading) {
  const timing = {
    ...given('timeoutMs', fields, (part) => wholeOf(part, 1, reading)),
    ...given('retries', fields, (part) => wholeOf(part, 0, reading)),
    ...given('backoff', fields, (part) => readBackoff(part, reading)),
  };
  return {
    ...given('description', fields, (part) => textOf(part, reading)),
    ...given('outputSchema', fields, (part) => schemaOf(part, reading)),
    // In place of a wrong one: with `once` retries would be wrong too.
    ...given('effect', fields, (part) => wordOf(part, EFFECTS, reading) ?? 'pure'),
    ...given('needsApproval', fields, (part) => readNeedsApproval(part, reading)),
    ...given('costUsd', fields, (part) => numberOf(part, 0, reading)),
    ...given('reconcile', fields, (part) => functionOf(part, reading) as () => never),
    ...given('inDoubt', fields, (part) => wordOf(part, IN_DOUBT, reading)),
    ...given('allowCycle', fields, (part) => flagOf(part, reading)),
    ...(Object.keys(timing).length === 0 ? {} : { policy: timing }),
  };
}

function readBackoff(part: Part, reading: Reading) {
  const fields = fieldsOf(part, ['baseMs', 'multiplier', 'maxMs'], reading);
  if (fields === undefined) return undefined;
  return {
    ...given('baseMs', fields, (value) => numberOf(value, 0, reading)),
    ...given('multiplier', fields, (value) => numberOf(value, 1, reading)),
    ...given('maxMs', fields, (value) => numberOf(value, 0, reading)),
  };
}

function readNeedsApproval(part: Part, reading: Reading) {
  if (typeof part.json === 'boolean') return part.json;
  if (part.fields === undefined) return wrongType(part, 'true, false or an object', reading);
  const fields = fieldsOf(part, ['when', 'reason', 'approver', 'onReject', 'expiresInMs'], reading);
  if (fields === undefined) return undefined;
  return {
    ...given('when', fields, (value) => functionOf(value, reading) as () => boolean),
    ...given('reason', fields, (value) => textOf(value, reading)),
    ...given('approver', fields, (value) => wordOf(value, ['anyone', 'another'], reading)),
    ...given('onReject', fields, (value) => wordOf(value, ['tell', 'end'], reading)),
    ...given('expiresInMs', fields, (value) => wholeOf(value, 1, reading)),
  };
}
