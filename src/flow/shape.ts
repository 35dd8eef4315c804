/** What rounds need to know of a graph, found out once. */
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

/** Kahn's algorithm over the edges that do not lead back; nodes that are free together stay as they are in the graph. */
function inOrder({ nodes, edges }: FlowGraph): readonly GraphNode[] {
  const open = new Map<string, number>();
  const targets = new Map<string, string[]>();
  for (const { from, to, back, on } of edges) {
    if (back || on !== undefined) continue;
    open.set(to, (open.get(to) ?? 0) + 1);
    listIn(targets, from).push(to);
  }
  const order = [...nodes.values()].filter(({ name }) => !open.has(name));
  for (let next = 0; next < order.length; next += 1) {
    for (const to of targets.get((order[next] as GraphNode).name) ?? []) {
      const left = (open.get(to) ?? 0) - 1;
      open.set(to, left);
      const target = nodes.get(to);
      if (left === 0 && target !== undefined) order.push(target);
    }
  }
  return order;
}

function listIn<T>(lists: Map<string, T[]>, key: string): T[] {
  const found = lists.get(key);
  if (found !== undefined) return found;
  const made: T[] = [];
  lists.set(key, made);
  return made;
}
