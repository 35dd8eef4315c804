/** The nodes of a flow document, each made by the builder that a program calls too. */

import { atPointer, type Effect, type Json, jsonEquals } from '#core';
import type { FailureWay } from '../graph.ts';
import { map } from '../map.ts';
import { join, node } from '../node.ts';
import { race } from '../race.ts';
import { predicateRouter, unionRouter } from '../router.ts';
import { type DocumentPart, type Field, quotedName, type Spot } from './parts.ts';
import {
  type DocumentReading,
  type Fields,
  type Form,
  fieldsOf,
  flagOf,
  functionOf,
  givenField,
  isPointer,
  namedOf,
  needed,
  nodeNameOf,
  nodeNamesOf,
  noteFault,
  numberOf,
  pointerOf,
  readOneOf,
  readSchema,
  readTextPart,
  wholeOf,
  wrongType,
} from './values.ts';
import { readWait } from './waits.ts';

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
  ...['description', 'outputSchema', 'effect', 'timeoutMs', 'firstByteMs', 'idleMs', 'retries', 'backoff'],
  ...['needsApproval', 'costUsd', 'poll', 'reconcile', 'inDoubt', 'undo', 'allowCycle', 'onError', 'onRejected'],
];
const KINDS = ['execute', 'ask', 'sleep', 'event', 'router', 'join', 'map', 'race', 'flow'] as const;
const ALL_KEYS = [...KINDS, 'inputSchema', 'itemSchema', 'concurrency', 'need', ...CALL_KEYS];

/** Nothing when its form cannot be told. */
export function readNode(name: string, { key, part }: Field, reading: DocumentReading): NodePlan | undefined {
  const form = readForm(name, part, reading);
  const failures = readFailures(part, reading);
  if (form === undefined) reading.graphBroken = true;
  return form === undefined ? undefined : { name, spot: key, failures, ...form };
}

/** Keys of failure edges. They lead to nodes that may need this node, so that they are read as edges, not as parts of the node. */
function readFailures({ fields }: DocumentPart, reading: DocumentReading): readonly FailureWay[] {
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

function readForm(name: string, part: DocumentPart, reading: DocumentReading): Form | undefined {
  if (part.fields === undefined) return wrongType(part, 'an object', reading);
  const has = (key: string): boolean => part.fields?.has(key) === true;
  const kinds = KINDS.filter((kind) => has(kind) && !(kind === 'execute' && has('join')));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    if (kind === undefined) fieldsOf(part, ALL_KEYS, reading);
    const found = kinds.length > 1 ? ` This node has ${kinds.map(quotedName).join(' and ')}.` : '';
    const message = `A node has exactly one of "execute", "ask", "sleep", "event", "router", "join" with "execute", "map", "race" and "flow".${found}`;
    return noteFault(reading, 'node_kind', part, message);
  }
  switch (kind) {
    case 'execute':
      return readCall(name, part, reading);
    case 'join':
      return readJoin(name, part, reading);
    case 'map':
      return readMap(name, part, reading);
    case 'race':
      return readRace(name, part, reading);
    case 'ask':
    case 'sleep':
    case 'event':
      return readWait(kind, name, part, reading);
    case 'flow':
      return readSubflow(name, part, reading);
    case 'router':
      return readRouter(name, part, reading);
    default:
      return kind satisfies never;
  }
}

function readCall(name: string, part: DocumentPart, reading: DocumentReading): Form | undefined {
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

function readJoin(name: string, part: DocumentPart, reading: DocumentReading): Form | undefined {
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

function readMap(name: string, part: DocumentPart, reading: DocumentReading): Form | undefined {
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

function readRace(name: string, part: DocumentPart, reading: DocumentReading): Form | undefined {
  const fields = fieldsOf(part, ['race', 'need', 'description', 'allowCycle', 'onError'], reading);
  const branches = fields?.get('race');
  if (fields === undefined || branches === undefined) return undefined;
  const needs = nodeNamesOf(branches, reading);
  const options = {
    ...givenField('need', fields, (value) => wholeOf(value, 1, reading)),
    ...givenField('description', fields, (value) => readTextPart(value, reading)),
    ...givenField('allowCycle', fields, (value) => flagOf(value, reading)),
  };
  return (
    needs && { needs, make: (nodeOf) => race(name, { ...options, of: needs.map(nodeOf) } as { of: []; need: number }) }
  );
}

function readSubflow(name: string, part: DocumentPart, reading: DocumentReading): Form | undefined {
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
    ...givenField('firstByteMs', fields, (part) => wholeOf(part, 1, reading)),
    ...givenField('idleMs', fields, (part) => wholeOf(part, 1, reading)),
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
    ...givenField('poll', fields, (part) => functionOf(part, reading) as () => unknown),
    ...givenField('reconcile', fields, (part) => functionOf(part, reading) as () => never),
    ...givenField('inDoubt', fields, (part) => readOneOf(part, IN_DOUBT, reading)),
    ...givenField('undo', fields, (part) => functionOf(part, reading)),
    ...givenField('allowCycle', fields, (part) => flagOf(part, reading)),
    ...(Object.keys(timing).length === 0 ? {} : { policy: timing }),
  };
}

function readBackoff(part: DocumentPart, reading: DocumentReading) {
  const fields = fieldsOf(part, ['baseMs', 'multiplier', 'maxMs'], reading);
  if (fields === undefined) return undefined;
  return {
    ...givenField('baseMs', fields, (value) => numberOf(value, 0, reading)),
    ...givenField('multiplier', fields, (value) => numberOf(value, 1, reading)),
    ...givenField('maxMs', fields, (value) => numberOf(value, 0, reading)),
  };
}

function readNeedsApproval(part: DocumentPart, reading: DocumentReading) {
  if (typeof part.json === 'boolean') return part.json;
  if (part.fields === undefined) return wrongType(part, 'true, false or an object', reading);
  const fields = fieldsOf(part, GATE, reading);
  if (fields === undefined) return undefined;
  return {
    ...givenField('when', fields, (value) => functionOf(value, reading) as () => boolean),
    ...givenField('reason', fields, (value) => readTextPart(value, reading)),
    ...givenField('approver', fields, (value) => readOneOf(value, ['anyone', 'another'], reading)),
    ...givenField('onReject', fields, (value) => readOneOf(value, ['tell', 'end'], reading)),
    ...givenField('expiresInMs', fields, (value) => wholeOf(value, 1, reading)),
    ...givenField('approvals', fields, (value) => wholeOf(value, 1, reading)),
    ...givenField('remindAfterMs', fields, (value) => wholeOf(value, 1, reading)),
    ...givenField('escalate', fields, (value) => readEscalation(value, reading)),
  };
}

const GATE = [
  ...['when', 'reason', 'approver', 'onReject', 'expiresInMs'],
  ...['approvals', 'remindAfterMs', 'escalate'],
];

function readEscalation(part: DocumentPart, reading: DocumentReading) {
  const fields = fieldsOf(part, ['afterMs', 'to', 'approver'], reading);
  if (fields === undefined) return undefined;
  const afterMs = needed(fields, 'afterMs', part, 'An escalation', reading);
  const to = needed(fields, 'to', part, 'An escalation', reading);
  if (afterMs === undefined || to === undefined) return undefined;
  const [when, whom] = [wholeOf(afterMs, 1_000, reading), readTextPart(to, reading)];
  if (when === undefined || whom === undefined) return undefined;
  const who = givenField('approver', fields, (value) => readOneOf(value, ['anyone', 'another'], reading));
  return { afterMs: when, to: whom, ...who };
}

/** A node with `router`. */
function readRouter(name: string, part: DocumentPart, reading: DocumentReading): Form | undefined {
  const outer = fieldsOf(part, ['router', 'allowCycle'], reading);
  const router = outer?.get('router');
  if (outer === undefined || router === undefined) return undefined;
  const cycle = givenField('allowCycle', outer, (value) => flagOf(value, reading));
  const fields = fieldsOf(router, ['select', 'branches', 'default'], reading);
  if (fields === undefined) return undefined;
  const otherwise = givenField('default', fields, (value) => nodeNameOf(value, reading));
  const branches = needed(fields, 'branches', router, 'A router', reading);
  if (branches === undefined) return undefined;
  const select = fields.get('select');
  return select === undefined
    ? readPredicates(name, branches, { otherwise, cycle }, reading)
    : readUnion(name, select, branches, { otherwise, cycle }, reading);
}

interface RouterRest {
  readonly otherwise: { readonly default?: string };
  readonly cycle: { readonly allowCycle?: boolean };
}

type Predicate = (payload: unknown) => boolean;

function readPredicates(
  name: string,
  part: DocumentPart,
  rest: RouterRest,
  reading: DocumentReading,
): Form | undefined {
  if (part.items === undefined) {
    const wanted = 'a list of { when, to }; an object of tags needs "select" beside it';
    return wrongType(part, wanted, reading);
  }
  const branches = part.items.flatMap((item) => {
    const fields = fieldsOf(item, ['when', 'to'], reading);
    if (fields === undefined) return [];
    const when = needed(fields, 'when', item, 'A branch', reading);
    const to = needed(fields, 'to', item, 'A branch', reading);
    const target = to === undefined ? undefined : nodeNameOf(to, reading);
    const predicate = (when === undefined ? undefined : readPredicate(when, reading)) ?? (() => false);
    return target === undefined ? [] : [{ when: predicate, to: target }];
  });
  if (branches.length < part.items.length) reading.graphBroken = true;
  const { otherwise, cycle } = rest;
  return {
    needs: [...branches.map(({ to }) => to), ...Object.values(otherwise)],
    make: (nodeOf) =>
      predicateRouter({
        branches: branches.map(({ when, to }) => ({ when, to: nodeOf(to) })),
        ...(otherwise.default === undefined ? {} : { default: nodeOf(otherwise.default) }),
      }).asNode(name, cycle),
  };
}

function readPredicate(part: DocumentPart, reading: DocumentReading): Predicate | undefined {
  if (part.fields === undefined) return functionOf(part, reading) as Predicate;
  const fields = fieldsOf(part, ['path', 'equals'], reading);
  if (fields === undefined) return undefined;
  const at = needed(fields, 'path', part, 'A comparison', reading);
  const equals = needed(fields, 'equals', part, 'A comparison', reading);
  const path = at === undefined ? undefined : pointerOf(at, reading);
  if (path === undefined || equals === undefined) return undefined;
  return (payload) => jsonEquals(atPointer(payload as Json, path), equals.json);
}

function readUnion(
  name: string,
  select: DocumentPart,
  part: DocumentPart,
  rest: RouterRest,
  reading: DocumentReading,
): Form | undefined {
  const selector = readSelect(select, reading);
  if (part.fields === undefined) return wrongType(part, 'an object: from each tag to its target', reading);
  const branches = [...part.fields].flatMap(([tag, { part: to }]) => {
    const target = nodeNameOf(to, reading);
    return target === undefined ? [] : [[tag, target] as const];
  });
  const { otherwise, cycle } = rest;
  return {
    needs: [...branches.map(([, to]) => to), ...Object.values(otherwise)],
    make: (nodeOf) =>
      unionRouter({
        select: selector,
        branches: Object.fromEntries(branches.map(([tag, to]) => [tag, nodeOf(to)])),
        ...(otherwise.default === undefined ? {} : { default: nodeOf(otherwise.default) }),
      }).asNode(name, cycle),
  };
}

function readSelect(part: DocumentPart, reading: DocumentReading): (payload: unknown) => string {
  if (typeof part.json !== 'string' || !isPointer(part.json)) return functionOf(part, reading) as () => string;
  const pointer = part.json;
  return (payload) => {
    const tag = atPointer(payload as Json, pointer);
    return typeof tag === 'string' ? tag : '';
  };
}
