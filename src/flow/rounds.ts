/**
 * The rounds of a flow: from the graph and the steps so far to what runs next. A round begins at the entry, or at the nodes to
 * which routers have led back, and has whatever these reach without another way back. Nodes outside it keep their last
 * values, for joins. Nothing here keeps state: the same steps give the same round.
 */

import { type Branch, type Json, PilotageError, type Route, topologicalOrder } from '#core';
import { inputOfFailure, toleratedOf, wayOfFailure } from './error.ts';
import type { FlowGraph, GraphNode } from './graph.ts';
import {
  type Done,
  type Failure,
  failureOf,
  failuresOf,
  hasOpen,
  type Last,
  lastOf,
  lastRound,
  OPEN,
  PASSED,
  type Progress,
  type Round,
  type Status,
  type Steps,
} from './progress.ts';

/** What rounds need to know of a graph, found out once. */
export interface FlowShape {
  readonly graph: FlowGraph;
  /** Each behind those that lead to it. Ways back are not looked at. */
  readonly order: readonly GraphNode[];
  /** For each node those that lead to it, the last in the order first; of a join its parents. Without ways back. */
  readonly sources: ReadonlyMap<string, readonly GraphNode[]>;
  /** For each router the nodes to which it leads back. Failure edges are not looked at either. */
  readonly heads: ReadonlyMap<string, ReadonlySet<string>>;
}

export function flowShapeOf(graph: FlowGraph): FlowShape {
  const order = inOrder(graph);
  const place = new Map(order.map(({ name }, index) => [name, index]));
  const sources = new Map<string, GraphNode[]>();
  const heads = new Map<string, Set<string>>();
  for (const { from, to, back, on } of graph.edges) {
    if (on !== undefined) continue;
    const source = graph.nodes.get(from);
    if (back) heads.set(from, (heads.get(from) ?? new Set<string>()).add(to));
    else if (source !== undefined) listIn(sources, to).push(source);
  }
  const placeOf = ({ name }: GraphNode): number => place.get(name) ?? 0;
  for (const list of sources.values()) list.sort((left, right) => placeOf(right) - placeOf(left));
  return { graph, order, sources, heads };
}

/** By the edges that do not lead back; nodes that are free together stay as they are in the graph. */
function inOrder({ nodes, edges }: FlowGraph): readonly GraphNode[] {
  const all = [...nodes.values()];
  const indexOf = new Map(all.map(({ name }, index) => [name, index]));
  const targets = all.map((): number[] => []);
  for (const { from, to, back, on } of edges) {
    const [source, target] = [indexOf.get(from), indexOf.get(to)];
    if (!back && on === undefined && source !== undefined && target !== undefined) targets[source]?.push(target);
  }
  return topologicalOrder(targets).flatMap((index) => all[index] ?? []);
}

function listIn<T>(lists: Map<string, T[]>, key: string): T[] {
  const found = lists.get(key);
  if (found !== undefined) return found;
  const made: T[] = [];
  lists.set(key, made);
  return made;
}

export type NextPart =
  /** The next round, or the rest of the last one. */
  | { readonly do: 'run'; readonly branches: readonly Branch[]; readonly round: Round }
  | { readonly do: 'fail'; readonly failure: Failure }
  /** `exit` is the exit that has run; none: somebody has taken nodes out, or the graph is another than it was. */
  | { readonly do: 'end'; readonly exit?: Done; readonly round: Round };

/** @param input the arguments of the entry. */
export function nextPart(shape: FlowShape, steps: Steps, input: Json): NextPart {
  const { graph } = shape;
  const before = lastRound(graph, steps);
  const last = lastOf(graph, steps);
  if (before === undefined)
    return run(shape, { round: roundFrom(shape, 1, new Map([[graph.entry, input]]), last), last });
  const latest = steps.step(steps.count - 1);
  const failure = latest && failureOf(latest, (failed) => wayOfFailure(graph, failed) !== undefined);
  if (failure !== undefined) return { do: 'fail', failure };
  const progress: Progress = { round: before, last };
  if (hasOpen(before)) passUnreachable(shape, progress);
  if (hasOpen(before)) return run(shape, progress);
  const heads = headsAfter(shape, progress);
  if (heads.size === 0) return endOf(graph, progress);
  return run(shape, { round: roundFrom(shape, before.number + 1, heads, last), last });
}

function run(shape: FlowShape, progress: Progress): NextPart {
  return { do: 'run', branches: branchesOfRound(shape, progress), round: progress.round };
}

/** In a round that was cut short, some nodes may never have their turn. */
function passUnreachable(shape: FlowShape, progress: Progress): void {
  visit(shape, progress, ({ name }, status, routes) => {
    if (status.kind === 'open' && routes.length === 0) progress.round.nodes.set(name, PASSED);
  });
}

/** The nodes to which routers of the round have led back, with what these were handed, and those to which failures lead. */
function headsAfter(shape: FlowShape, progress: Progress): ReadonlyMap<string, Json> {
  const heads = new Map<string, Json>();
  for (const failure of failuresOf(progress.round)) {
    const to = wayOfFailure(shape.graph, failure);
    // When several fail and lead to one node, the node gets the first failure.
    if (to !== undefined && !heads.has(to)) heads.set(to, inputOfFailure(failure));
  }
  if (shape.heads.size === 0) return heads;
  visit(shape, progress, ({ name }, status, [route]) => {
    if (status.kind !== 'done' || route === undefined) return;
    const { value } = status;
    if (typeof value === 'string' && shape.heads.get(name)?.has(value) === true) heads.set(value, route.args);
  });
  return heads;
}

function roundFrom(
  shape: FlowShape,
  number: number,
  heads: ReadonlyMap<string, Json>,
  last: ReadonlyMap<string, Last>,
): Round {
  const nodes: Round['nodes'] = new Map();
  for (const node of shape.order) {
    if (heads.has(node.name) || isReached(shape, node, nodes, last)) nodes.set(node.name, OPEN);
  }
  return { number, heads, nodes };
}

/** A join without one of its parents cannot run, however the round goes on. */
function isReached(
  { sources }: FlowShape,
  { name, parents }: GraphNode,
  nodes: Round['nodes'],
  last: ReadonlyMap<string, Last>,
): boolean {
  const isOfRound = (sources.get(name) ?? []).some((source) => nodes.has(source.name));
  return (
    isOfRound && (parents ?? []).every((parent) => nodes.has(parent.name) || last.get(parent.name)?.done !== undefined)
  );
}

function branchesOfRound(shape: FlowShape, progress: Progress): readonly Branch[] {
  const branches: Branch[] = [];
  visit(shape, progress, (node, status, routes) => {
    if (status.kind !== 'open') return;
    const tolerates = toleratedOf(shape.graph, node.name);
    const branch = branchOf(node, instanceOf(node.name, progress), routes);
    branches.push(tolerates.length === 0 ? branch : { ...branch, tolerates });
  });
  return branches;
}

/** The nodes of the round that were not passed over, each behind its sources: so no way is followed twice. */
function visit(
  shape: FlowShape,
  progress: Progress,
  look: (node: GraphNode, status: Status, routes: readonly Route[]) => void,
): void {
  const ways = new Ways(shape, progress);
  for (const node of shape.order) {
    const status = progress.round.nodes.get(node.name);
    if (status !== undefined && status.kind !== 'passed') look(node, status, ways.to(node));
  }
}

function branchOf({ name: tool }: GraphNode, id: string, routes: readonly Route[]): Branch {
  const [only] = routes;
  return routes.length === 1 && only !== undefined ? { id, tool, ...only } : { id, tool, args: null, routes };
}

function endOf({ exits }: FlowGraph, { round, last }: Progress): NextPart {
  let exit: Done | undefined;
  for (const name of exits) {
    const done = last.get(name)?.done;
    if (done !== undefined && (exit === undefined || done.step > exit.step)) exit = done;
  }
  return exit === undefined ? { do: 'end', round } : { do: 'end', exit, round };
}

/** The most ways that may lead to one node. More come only from routers behind routers, each with several ways in. */
const MAX_WAYS = 1_000;

/** The name of the next instance of a node: its own, then with `#2` behind it, and so on. */
function instanceOf(node: string, { last }: Pick<Progress, 'last'>): string {
  const before = last.get(node);
  if (before === undefined) return node;
  if (before.isFree) return before.id;
  const [, number = '1'] = before.id.split('#');
  return `${node}#${Number(number) + 1}`;
}

/** How the nodes of a round are reached: what is handed to each, and on which condition. */
class Ways {
  readonly #shape: FlowShape;
  readonly #progress: Progress;
  readonly #references = new Map<string, Json>();
  readonly #payloads = new Map<string, readonly Route[]>();

  constructor(shape: FlowShape, progress: Progress) {
    this.#shape = shape;
    this.#progress = progress;
  }

  /**
   * The ways to a node of the round; of those that are open at once the first is the right one. None: it will not run.
   *
   * A router hands on what it was handed, so a target refers to the value of the node before the router. Of two nodes before
   * a router that have both run, the later in the order is the one from which it was reached: the other has led to that one.
   */
  to(node: GraphNode): readonly Route[] {
    const { heads } = this.#progress.round;
    const given = heads.get(node.name);
    if (given !== undefined) return [{ args: given }];
    const { parents } = node;
    if (parents !== undefined) return this.#toJoin(parents);
    const ways = (this.#shape.sources.get(node.name) ?? []).flatMap((source) => this.#from(source, node.name));
    if (ways.length <= MAX_WAYS) return ways;
    throw new PilotageError(
      'flow_invalid',
      `More than ${MAX_WAYS} ways lead to the node ${node.name}. Put a node between the routers, or split the flow.`,
      { data: { flow: this.#shape.graph.name, node: node.name } },
    );
  }

  /** A parent outside the round has the value of its last instance. */
  #toJoin(parents: readonly GraphNode[]): readonly Route[] {
    const { round, last } = this.#progress;
    const values: [string, Json][] = [];
    for (const { name } of parents) {
      const status = round.nodes.get(name) ?? last.get(name)?.done;
      if (status === undefined || status.kind === 'passed') return [];
      values.push([name, this.#reference(name, status)]);
    }
    return [{ args: Object.fromEntries(values) }];
  }

  /** What a node that is not of the round has led to was led to in its own. */
  #from(source: GraphNode, target: string): readonly Route[] {
    const { name } = source;
    const status = this.#progress.round.nodes.get(name);
    if (status === undefined || status.kind === 'passed') return [];
    if (source.kind !== 'router') return [{ args: this.#reference(name, status) }];
    if (status.kind === 'done') return status.value === target ? this.#payloadsOf(source) : [];
    const when = { branch: instanceOf(name, this.#progress), equals: target };
    return this.#payloadsOf(source).map((way) => ({ ...way, when }));
  }

  /** What the router may have been handed; of those that are open at once the first counts, if it has run. */
  #payloadsOf(router: GraphNode): readonly Route[] {
    const known = this.#payloads.get(router.name);
    if (known !== undefined) return known;
    const ways = this.to(router);
    const first = ways[0];
    const isOne = first !== undefined && ways.every(({ args }) => args === first.args);
    const payloads = isOne ? [{ args: first.args }] : ways.map(throughRouter);
    this.#payloads.set(router.name, payloads);
    return payloads;
  }

  /** Returns the same object each time. */
  #reference(name: string, status: Done | { readonly kind: 'open' }): Json {
    const known = this.#references.get(name);
    if (known !== undefined) return known;
    const made =
      status.kind === 'done' ? { $from: status.id, step: status.step } : { $from: instanceOf(name, this.#progress) };
    this.#references.set(name, made);
    return made;
  }
}

/** The routers on the way have run; of the last one the condition is the next node's. */
function throughRouter({ args, after = [], when }: Route): Route {
  return when === undefined ? { args, after } : { args, after: [...after, when.branch] };
}
