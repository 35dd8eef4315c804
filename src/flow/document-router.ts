/** The routers of a flow document. */
import { atPointer, type Json, jsonEquals } from '#core';
import type { Part } from './document-part.ts';
import {
  type DocumentReading,
  type Form,
  fieldsOf,
  flagOf,
  functionOf,
  givenField,
  isPointer,
  needed,
  nodeNameOf,
  pointerOf,
  wrongType,
} from './document-read.ts';
import { predicateRouter, unionRouter } from './router.ts';

/** A node with `router`. */
export function readRouter(name: string, part: Part, reading: DocumentReading): Form | undefined {
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

function readPredicates(name: string, part: Part, rest: RouterRest, reading: DocumentReading): Form | undefined {
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

function readPredicate(part: Part, reading: DocumentReading): Predicate | undefined {
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
  select: Part,
  part: Part,
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

function readSelect(part: Part, reading: DocumentReading): (payload: unknown) => string {
  if (typeof part.json !== 'string' || !isPointer(part.json)) return functionOf(part, reading) as () => string;
  const pointer = part.json;
  return (payload) => {
    const tag = atPointer(payload as Json, pointer);
    return typeof tag === 'string' ? tag : '';
  };
}
