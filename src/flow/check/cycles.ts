/** The cycles of a flow: whether they are allowed, and which of their edges lead back. */

import { reachOf, sourcesOf } from '../graph.ts';
import { type FlowFault, faultOf } from './fault.ts';
import { type Sketch, withFailures } from './sketch.ts';

/** For each node, the nodes to which its edges lead back. Without these edges the graph has no cycle. */
export type BackEdges = ReadonlyMap<string, ReadonlySet<string>>;

export interface Cycles {
  readonly back: BackEdges;
  /** A node may run again, also after a failure. */
  readonly goesRound: boolean;
  readonly faults: readonly FlowFault[];
}

export function cyclesOf(sketch: Sketch): Cycles {
  const { back, endless } = backEdges(sketch);
  const faults = endless.map((path) => {
    const message = `No router is on the cycle ${shown(path)}, so that nothing can lead out of it. Let a router decide whether to go round again.`;
    return faultOf('cycle_without_router', message, path);
  });
  const whole = { ...sketch, ways: withFailures(sketch) };
  return { back, goesRound: hasCycle(whole), faults: [...forbiddenCycles(whole), ...faults] };
}

function shown(path: readonly string[]): string {
  return [...path, path[0]].join(' -> ');
}

function hasCycle({ nodes, ways }: Sketch): boolean {
  const groups = groupsOf([...nodes.keys()], ways);
  return groups.some(([first = '', ...others]) => others.length > 0 || (ways.get(first) ?? []).includes(first));
}

/** One fault for each group of nodes that lead to each other and of which some do not allow a cycle. */
function forbiddenCycles({ nodes, ways }: Sketch): readonly FlowFault[] {
  return groupsOf([...nodes.keys()], ways).flatMap((group) => {
    const members = new Set(group);
    const inside = (name: string): readonly string[] => (ways.get(name) ?? []).filter((next) => members.has(next));
    if (group.every((name) => inside(name).length === 0)) return [];
    const forbid = [...nodes.values()].filter(({ name, allowCycle }) => members.has(name) && !allowCycle);
    const [first] = forbid;
    if (first === undefined) return [];
    const path = shortestCycle(first.name, inside);
    const names = forbid.map(({ name }) => name);
    const message = `There is a cycle: ${shown(path)}. Give allowCycle: true to ${names.join(', ')}, or take an edge away.`;
    return [faultOf('cycle', message, path)];
  });
}

/** From the node back to it. */
function shortestCycle(start: string, inside: (name: string) => readonly string[]): readonly string[] {
  const from = new Map<string, string>();
  const open = [start];
  for (const name of open) {
    for (const next of inside(name)) {
      if (from.has(next)) continue;
      from.set(next, name);
      open.push(next);
    }
    if (from.has(start)) break;
  }
  const path: string[] = [];
  let at = from.get(start);
  while (at !== undefined && at !== start) {
    path.unshift(at);
    at = from.get(at);
  }
  return [start, ...path];
}

/** Nodes that lead to each other, and single nodes (Kosaraju's algorithm). @param ways among `names`. */
function groupsOf(names: readonly string[], ways: Sketch['ways']): readonly (readonly string[])[] {
  const waysFrom = (name: string): readonly string[] => ways.get(name) ?? [];
  const sources = sourcesOf(names, waysFrom);
  const order: string[] = [];
  walk(names, waysFrom, { leave: (name) => order.push(name) });
  const taken = new Set<string>();
  return order.reverse().flatMap((name) => {
    if (taken.has(name)) return [];
    const group = reachOf([name], (at) => (sources.get(at) ?? []).filter((source) => !taken.has(source)));
    for (const member of group) taken.add(member);
    return [[...group]];
  });
}

interface Visitor {
  leave?(name: string): void;
  /** An edge to a node that is not left yet; `path` leads from the root to where the edge begins. */
  closes?(path: readonly string[], to: string): void;
}

/** Depth first, with a stack of its own. */
function walk(roots: readonly string[], waysFrom: (name: string) => readonly string[], visitor: Visitor): void {
  const seen = new Set<string>();
  const onPath = new Set<string>();
  for (const root of roots) {
    if (seen.has(root)) continue;
    const path = [root];
    const iterators = [waysFrom(root).values()];
    seen.add(root);
    onPath.add(root);
    for (let ways = iterators.at(-1); ways !== undefined; ways = iterators.at(-1)) {
      const { value: next, done } = ways.next();
      if (done === true) {
        const left = path.pop() as string;
        iterators.pop();
        onPath.delete(left);
        visitor.leave?.(left);
      } else if (!seen.has(next)) {
        seen.add(next);
        onPath.add(next);
        path.push(next);
        iterators.push(waysFrom(next).values());
      } else if (onPath.has(next)) visitor.closes?.(path, next);
    }
  }
}

/**
 * One cycle after the other is cut where it is decided to go round again: behind the last router from which one can still
 * lead out without coming by the beginning; else behind the last router. So the cycle of `draft -> check`, `check -> revise`,
 * `revise -> draft` is cut behind the router `check`. Outer cycles come first: what is left of the
 * nodes that lead to each other is looked at again. A cycle without a router is cut where it closes, and told.
 */
function backEdges({ nodes, ways }: Sketch): { readonly back: BackEdges; readonly endless: string[][] } {
  const back = new Map<string, Set<string>>();
  const endless: string[][] = [];
  const isBack = (from: string, to: string): boolean => back.get(from)?.has(to) === true;
  const isRouter = (name: string): boolean => nodes.get(name)?.kind === 'router';
  const cut = (cycle: readonly string[], leavers: ReadonlySet<string>): void => {
    // An edge that was cut on this walk has opened it.
    if (cycle.some((name, at) => at > 0 && isBack(cycle[at - 1] as string, name))) return;
    const decided = cycle.findLastIndex((name) => isRouter(name) && leavers.has(name));
    const router = decided < 0 ? cycle.findLastIndex(isRouter) : decided;
    if (router < 0) endless.push([...cycle]);
    const at = router < 0 ? cycle.length - 1 : router;
    const from = cycle[at] as string;
    back.set(from, (back.get(from) ?? new Set()).add(cycle[at + 1] ?? (cycle[0] as string)));
  };
  const places = new Map([...nodes.keys()].map((name, place) => [name, place]));
  const placeOf = (name: string): number => places.get(name) ?? 0;
  const open: (readonly string[])[] = [[...nodes.keys()]];
  for (let names = open.pop(); names !== undefined; names = open.pop()) {
    const within = new Set(names);
    const onward = new Map(
      names.map((name) => [name, (ways.get(name) ?? []).filter((to) => within.has(to) && !isBack(name, to))]),
    );
    for (const group of groupsOf(names, onward)) {
      const head = group.reduce((first, name) => (placeOf(name) < placeOf(first) ? name : first));
      const members = new Set(group);
      const inside = (name: string): readonly string[] => (onward.get(name) ?? []).filter((to) => members.has(to));
      if (group.length === 1 && inside(head).length === 0) continue;
      const leavers = leaversOf(group, head, inside, (name) => ways.get(name)?.some((to) => !members.has(to)) === true);
      walk([head], inside, { closes: (path, to) => (to === head ? cut(path, leavers) : undefined) });
      open.push(group);
    }
  }
  return { back, endless };
}

/** The nodes of a group from which a way leads out of it without passing its head. */
function leaversOf(
  group: readonly string[],
  head: string,
  inside: (name: string) => readonly string[],
  leadsOut: (name: string) => boolean,
): ReadonlySet<string> {
  const sources = sourcesOf(group, inside);
  return reachOf(group.filter(leadsOut), (name) => (name === head ? [] : (sources.get(name) ?? [])));
}
