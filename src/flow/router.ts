/** Routers: nodes that pick the one node that runs next, and hand it what they were handed. */

import {
  assertOptions,
  describeThrown,
  isJsonObject,
  type JsonObject,
  type OptionShape,
  oneLine,
  PilotageError,
} from '#core';
import type { Tool } from '#tools';
import { listedNames } from './check/fault.ts';
import type { GraphNode } from './graph.ts';
import { ANYTHING } from './node.ts';
import type { InOf, Node, Takes } from './types.ts';

/** The names of the nodes that routers must pick, by the names of the routers. They override the routers' branches. */
export type RoutePolicy = Readonly<Record<string, string>>;

/** The route policy in the meta of a run, under `route_policy`; `undefined` when it is absent or not a policy. */
export function routePolicyOf(meta: JsonObject | undefined): RoutePolicy | undefined {
  const policy = meta?.['route_policy'];
  if (!isJsonObject(policy)) return undefined;
  return Object.values(policy).every((target) => typeof target === 'string') ? (policy as RoutePolicy) : undefined;
}

export interface Router<In> {
  /** Makes the router a node of a flow. Its targets are its outgoing edges: no other edges need be given. */
  asNode<const Name extends string>(name: Name, options?: RouterOptions): RouterNode<Name, In>;
}

export interface RouterOptions {
  /** Default false. */
  readonly allowCycle?: boolean;
}

const ROUTER: OptionShape<RouterOptions> = { allowCycle: 'any?' };
const PREDICATE: OptionShape<{ branches: readonly unknown[]; default?: unknown }> = {
  branches: 'list',
  default: 'any?',
};
const BRANCH: OptionShape<{ when: unknown; to: unknown }> = { when: 'any', to: 'any' };
const UNION: OptionShape<{ select: unknown; branches: object; default?: unknown }> = {
  select: 'any',
  branches: 'object',
  default: 'any?',
};

export interface RouterNode<Name extends string, In> extends Node<Name, In, In> {
  /** The name of the target for this payload. @throws as `select` does. */
  select(payload: unknown, meta?: JsonObject): string;
}

export interface PredicateBranch<In> {
  /** A predicate of the payload. */
  when(payload: In): boolean;
  readonly to: Takes<In>;
}

/** A router that asks its branches in order and takes the first that returns true; when none does, the default. */
export function predicateRouter<In>(options: {
  readonly branches: readonly PredicateBranch<In>[];
  readonly default?: Takes<In>;
}): Router<In> {
  assertOptions('predicateRouter', options, PREDICATE);
  const { branches, default: fallback } = options;
  for (const [index, branch] of branches.entries())
    assertOptions(`The branch ${index} of predicateRouter`, branch, BRANCH);
  const targets = [...branches.map(({ to }) => to), ...(fallback === undefined ? [] : [fallback])];
  const isComplete = branches.every(({ when }) => typeof when === 'function');
  return routerOf('predicate', targets, isComplete, (payload, name) => {
    const taken = branches.find(({ when }, index) => holds(() => when(payload as In), name, index));
    return taken?.to ?? fallback ?? 'no branch matched, and it has no default';
  });
}

/** What a union router takes: of each branch what its target takes, with the tag that leads there if the key is known. */
export type UnionOf<Key extends string, Branches extends Readonly<Record<string, GraphNode>>, Default> =
  | {
      [Tag in keyof Branches]: InOf<Branches[Tag]> & (string extends Key ? unknown : { readonly [K in Key]: Tag });
    }[keyof Branches]
  | ([Default] extends [never] ? never : InOf<Default>);

/**
 * A router that looks up a tag of the payload: the field that `select` names, or the value that `select` returns. A tag without a
 * branch, or no tag, leads to the default. With a default, a payload that the default takes is accepted with any tag.
 */
export function unionRouter<
  const Branches extends Readonly<Record<string, GraphNode>>,
  const Key extends string = string,
  Default extends GraphNode = never,
>(options: {
  readonly select: Key | ((payload: UnionOf<string, Branches, Default>) => string);
  readonly branches: Branches;
  readonly default?: Default;
}): Router<UnionOf<Key, Branches, Default>> {
  assertOptions('unionRouter', options, UNION);
  const { branches, default: fallback } = options;
  const targets = [...Object.values(branches), ...(fallback === undefined ? [] : [fallback])];
  const select: unknown = options.select;
  const isComplete = typeof select === 'string' || typeof select === 'function';
  const tags = listedNames(Object.keys(branches));
  return routerOf('union', targets, isComplete, (payload, name) => {
    if (!isComplete) return 'it has no select';
    const tag = tagOf(payload, select as Selector, name);
    if (Object.hasOwn(branches, tag)) return branches[tag] as GraphNode;
    return fallback ?? `the payload has ${tag === '' ? 'no tag' : `none of its tags (${tags})`}, and it has no default`;
  });
}

type Selector = string | ((payload: unknown) => unknown);

/** @throws PilotageError `node_exception` naming the router. */
function tagOf(payload: unknown, select: Selector, router: string): string {
  let tag: unknown;
  if (typeof select === 'string') {
    tag = isJsonObject(payload) && Object.hasOwn(payload, select) ? payload[select] : undefined;
  } else {
    try {
      tag = select(payload);
    } catch (cause) {
      const message = `The select of the router ${router} threw: ${describeThrown(cause)}`;
      throw new PilotageError('node_exception', message, { data: { router }, cause });
    }
  }
  return typeof tag === 'string' ? tag : '';
}

/** @throws PilotageError `node_exception` naming the router and the branch. */
function holds(ask: () => unknown, router: string, branch: number): boolean {
  const of = `of branch ${branch} of the router ${router}`;
  let said: unknown;
  try {
    said = ask();
  } catch (cause) {
    const message = `The predicate ${of} threw: ${describeThrown(cause)}`;
    throw new PilotageError('node_exception', message, { data: { router, branch }, cause });
  }
  if (typeof said === 'boolean') return said;
  const message = `The predicate ${of} gave neither true nor false. It cannot be asynchronous: put a node before it.`;
  throw new PilotageError('node_exception', message, { data: { router, branch } });
}

/**
 * The name of the node that a router picks: the one in the run's route policy, if it names the router, or else by the router's branches.
 * @throws PilotageError `route_not_found` when no target is found, when the policy names a node that is not a target, and when the value is not a router;
 * `node_exception` when a predicate or `select` throws.
 */
export function select(
  router: Pick<RouterNode<string, never>, 'select'> | undefined,
  payload: unknown,
  meta?: JsonObject,
): string {
  if (router !== undefined) return router.select(payload, meta);
  throw new PilotageError('route_not_found', 'There is no router to find a route.');
}

type Kind = 'predicate' | 'union';

/** The target for a payload, or why no target is found. */
type Picking = (payload: unknown, router: string) => GraphNode | string;

function routerOf<In>(kind: Kind, targets: readonly GraphNode[], isComplete: boolean, pick: Picking): Router<In> {
  return {
    asNode: (name, options = {}) => {
      assertOptions(`The router ${String(name)}`, options, ROUTER);
      const { allowCycle = false } = options;
      const route = (payload: unknown, meta: JsonObject | undefined, ways: readonly string[]): string =>
        byPolicy(name, meta, ways) ?? byBranches(kind, name, pick(payload, name));
      const toolIn = ({ waysOut }: { readonly waysOut: readonly string[] }): Tool => ({
        name,
        description: `The ${kind} router ${name} of a flow.`,
        inputSchema: ANYTHING,
        effect: 'pure',
        retries: 0,
        // Without what it has to ask it is a node without a function.
        execute: isComplete ? (payload, { meta }) => route(payload, meta, waysOut) : (undefined as never),
      });
      const unique = [...new Set(targets)];
      const waysOut = unique.map((target) => target?.name);
      return Object.freeze({
        name,
        kind: 'router',
        tool: toolIn({ waysOut }),
        effect: 'pure',
        allowCycle,
        targets: unique,
        toolIn,
        select: (payload: unknown, meta?: JsonObject) => route(payload, meta, waysOut),
      });
    },
  };
}

function byPolicy(router: string, meta: JsonObject | undefined, ways: readonly string[]): string | undefined {
  const policy = routePolicyOf(meta);
  if (policy === undefined || !Object.hasOwn(policy, router)) return undefined;
  const target = policy[router] as string;
  if (ways.includes(target)) return target;
  const message = `The route policy sends the router ${router} to ${quoted(target)}, to which no edge leads from it. Its ways out are ${ways.join(', ')}.`;
  throw new PilotageError('route_not_found', message, { data: { router, target: oneLine(target, MAX_SHOWN) } });
}

function byBranches(kind: Kind, router: string, picked: GraphNode | string): string {
  if (typeof picked !== 'string') return picked.name;
  const message = `The ${kind} router ${router} found no route: ${picked}.`;
  throw new PilotageError('route_not_found', message, { data: { router, kind } });
}

const MAX_SHOWN = 64;

function quoted(name: string): string {
  return JSON.stringify(oneLine(name, MAX_SHOWN));
}
