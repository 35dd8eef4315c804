/**
 * The rounds of a flow: from the graph and the steps so far to what runs next. A round begins at the entry, or at the nodes to
 * which routers have led back, and has whatever these reach without another way back. Nodes outside it keep their last
 * values, for joins. Nothing here keeps state: the same steps give the same round.
 */
import type { Branch, Json, Route } from '#core';
import { inputOfFailure, toleratedOf, wayOfFailure } from './failure.ts';
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
import type { FlowShape } from './shape.ts';
import { instanceOf, Ways } from './ways.ts';

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
