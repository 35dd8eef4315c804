/** From the parts of a flow to its nodes and edges, before anything is said of whether they make sense. */
import type { FailureKind } from '#core';
import { type Edge, type FailureWay, type GraphNode, reachOf } from '../graph.ts';
import { type FlowFault, faultOf, listedNames, notANode } from './fault.ts';

export interface FlowParts {
  readonly entry: GraphNode;
  readonly exits: readonly GraphNode[];
  readonly edges: readonly Edge[];
}

/** The nodes of a flow and how they hang together, by their names. */
export interface Sketch {
  /** In the order of first sight from the entry on, then those to which no edge leads. */
  readonly nodes: ReadonlyMap<string, GraphNode>;
  /** For each node those to which its edges lead: targets and given edges in their order, then joins. Each once. */
  readonly ways: ReadonlyMap<string, readonly string[]>;
  /** For each node that has some, where it leads when it fails. Each once. */
  readonly failures: ReadonlyMap<string, readonly FailureWay[]>;
  readonly entry: string;
  readonly exits: readonly string[];
  /** The nodes that edges reach from the entry, including failure edges. */
  readonly reached: ReadonlySet<string>;
}

export interface Gathered {
  /** Absent when the flow has no entry. */
  readonly sketch?: Sketch;
  readonly faults: readonly FlowFault[];
}

/** Follows edges, parents and targets from all that was given. */
export function gatherGraph({ entry, exits, edges }: FlowParts): Gathered {
  const faults: FlowFault[] = [];
  const found = new Map<string, GraphNode>();
  const doubles = new Set<string>();
  const open: GraphNode[] = [];
  const see = (given: unknown, where: string, near: readonly string[] = []): void => {
    if (!isNode(given)) {
      faults.push(faultOf('not_a_node', notANode(given, where), near));
      return;
    }
    const other = found.get(given.name);
    if (other === undefined) {
      found.set(given.name, given);
      open.push(given);
    } else if (other !== given) doubles.add(given.name);
  };
  see(entry, 'The entry');
  for (const exit of exits) see(exit, 'An exit');
  for (const [index, edge] of edges.entries()) {
    const { from, to }: Partial<Edge> = edge ?? {};
    const names = [from, to].filter(isNode).map(({ name }) => name);
    see(from, `The beginning of the edge ${index}${names.length === 1 ? ` to ${names[0]}` : ''}`, names);
    see(to, `The end of the edge ${index}${names.length === 1 ? ` from ${names[0]}` : ''}`, names);
  }
  for (const { name, parents = [], targets = [], onError, onRejected } of open) {
    if (onError !== undefined) see(onError, `The onError of the node ${name}`, [name]);
    if (onRejected !== undefined) see(onRejected, `The onRejected of the node ${name}`, [name]);
    for (const parent of parents) see(parent, `A parent of the join ${name}`, [name]);
    for (const target of targets) see(target, `A target of the router ${name}`, [name]);
  }
  for (const name of doubles) {
    faults.push(faultOf('duplicate_name', `Two nodes are named ${name}. Give each a name of its own.`, [name]));
  }
  if (!isNode(entry)) return { faults };
  return { sketch: sketchOf({ entry, exits, edges }, [...found.values()]), faults };
}

export function isNode(given: unknown): given is GraphNode {
  return typeof given === 'object' && given !== null && 'kind' in given && 'tool' in given && 'allowCycle' in given;
}

function sketchOf({ entry, exits, edges }: FlowParts, found: readonly GraphNode[]): Sketch {
  const ways = waysOf(found, edges);
  const failures = failuresOf(found, edges);
  const onward = withFailures({ ways, failures });
  const reached = reachOf([entry.name], (name) => onward.get(name) ?? []);
  const rest = found.map(({ name }) => name).filter((name) => !reached.has(name));
  const byName = new Map(found.map((node) => [node.name, node]));
  const nodes = new Map([...reached, ...rest].map((name) => [name, byName.get(name) as GraphNode]));
  const names = exits.filter(isNode).map(({ name }) => name);
  return { nodes, ways, failures, entry: entry.name, exits: [...new Set(names)], reached };
}

function waysOf(found: readonly GraphNode[], edges: readonly Edge[]): ReadonlyMap<string, readonly string[]> {
  const ways = new Map(found.map(({ name }) => [name, new Set<string>()]));
  const add = (from: unknown, to: unknown): void => {
    if (isNode(from) && isNode(to)) ways.get(from.name)?.add(to.name);
  };
  for (const node of found) for (const target of node.targets ?? []) add(node, target);
  for (const edge of edges) if (edge?.on === undefined) add(edge?.from, edge?.to);
  for (const node of found) for (const parent of node.parents ?? []) add(parent, node);
  return new Map([...ways].map(([name, targets]) => [name, [...targets]]));
}

function failuresOf(found: readonly GraphNode[], edges: readonly Edge[]): Sketch['failures'] {
  const failures = new Map<string, FailureWay[]>();
  const add = (from: unknown, on: FailureKind, to: unknown): void => {
    if (!isNode(from) || !isNode(to)) return;
    const known = failures.get(from.name) ?? [];
    if (!known.some((way) => way.on === on && way.to === to.name)) known.push({ on, to: to.name });
    failures.set(from.name, known);
  };
  for (const node of found) {
    add(node, 'error', node.onError);
    add(node, 'rejected', node.onRejected);
  }
  for (const edge of edges) if (edge?.on !== undefined) add(edge.from, edge.on, edge.to);
  return failures;
}

/** For each node all to which it may lead, when it fails too. */
export function withFailures({ ways, failures }: Pick<Sketch, 'ways' | 'failures'>): Sketch['ways'] {
  if (failures.size === 0) return ways;
  const onward = ([name, targets]: [string, readonly string[]]): [string, readonly string[]] => [
    name,
    [...new Set([...targets, ...(failures.get(name) ?? []).map(({ to }) => to)])],
  ];
  return new Map([...ways].map(onward));
}

/** Nodes that no way leads to. */
export function unreachedFaults({ nodes, reached, exits, entry }: Sketch): readonly FlowFault[] {
  const lost = [...nodes.keys()].filter((name) => !reached.has(name));
  const [lostExits, others] = [
    lost.filter((name) => exits.includes(name)),
    lost.filter((name) => !exits.includes(name)),
  ];
  const faults = lostExits.map((name) => {
    const message = `The exit ${name} cannot be reached from the entry ${entry}. Connect it, or take it away.`;
    return faultOf('exit_unreachable', message, [name]);
  });
  if (others.length === 0) return faults;
  const verb = others.length === 1 ? 'The node' : 'The nodes';
  const message = `${verb} ${listedNames(others)} cannot be reached from the entry ${entry}. Connect them, or take them away.`;
  return [...faults, faultOf('unreachable', message, others)];
}
