/** What rounds need to know of a graph, found out once. */
import { topologicalOrder } from '#core';
import type { FlowGraph, GraphNode } from './graph.ts';

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
