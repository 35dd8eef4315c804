/** A flow as data: what its builders make, its checks read, its planner carries out, and a picture of it. */

import { defined, type Effect, type FailureKind, topologicalOrder } from '#core';
import type { AgentLimits, AnyTool } from '#tools';

export type NodeKind = 'node' | 'router' | 'join' | 'map' | 'race' | 'flow';

/** A node of a graph. Its tool has the node's name, and is what a call of it runs. */
export interface GraphNode {
  /** Unique in its flow: a letter, then letters, digits, `_`, `-` and `.`. */
  readonly name: string;
  readonly kind: NodeKind;
  readonly tool: AnyTool;
  readonly effect: Effect;
  /** The tool whose call undoes one of the node. */
  readonly undo?: AnyTool;
  /** True: the node may be on a cycle. */
  readonly allowCycle: boolean;
  /** For a join: the nodes whose values it gets, keyed by their names. */
  readonly parents?: readonly GraphNode[];
  /** For a router: the nodes that it may pick, in the order of its branches, with its default last. Each is an outgoing edge. */
  readonly targets?: readonly GraphNode[];
  /** For a flow as a node: the name of that flow. */
  readonly flow?: string;
  /** Where the node leads when it fails, with the error as input: `rejected` when somebody rejected it. */
  readonly onError?: GraphNode;
  readonly onRejected?: GraphNode;
  /** For a map: how many items are worked on at once. */
  readonly concurrency?: number;
  /** For a race: the nodes that run at once. They are not nodes of the flow. */
  readonly branches?: readonly GraphNode[];
  /** For a race: how many values it needs. Absent: one, which it does not give as a list. */
  readonly need?: number;
  /** For a router, a map and a race, whose tools must know their flow: makes the tool in a flow. `flow` calls it for each node. */
  toolIn?(place: NodePlace): AnyTool;
}

const FROM_STRONGEST: readonly Effect[] = ['once', 'keyed', 'read'];

/** The strongest of the effects. */
export function strongestOf(effects: readonly Effect[]): Effect {
  return FROM_STRONGEST.find((effect) => effects.includes(effect)) ?? 'pure';
}

export interface NodePlace {
  /** The name of the flow. */
  readonly flow: string;
  /** The nodes to which edges lead. */
  readonly waysOut: readonly string[];
}

/** An edge that is given to a flow. */
export interface Edge {
  readonly from: GraphNode;
  readonly to: GraphNode;
  /** Set on an edge that is taken when `from` has failed, like `onError` and `onRejected` of a node. */
  readonly on?: FailureKind;
}

/** A failure edge of a node. */
export interface FailureWay {
  readonly on: FailureKind;
  readonly to: string;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** True: the edge leads back. Taking it begins another round of the flow, with a fresh instance of each node that it reaches. */
  readonly back: boolean;
  /** Set on a failure edge: it is taken when the node has failed in this way, and begins another round. */
  readonly on?: FailureKind;
}

/** A graph that was checked. */
export interface FlowGraph {
  readonly name: string;
  /** In the order of first sight from the entry on: the same for the same definition. */
  readonly nodes: ReadonlyMap<string, GraphNode>;
  /** With those that joins and routers imply, each once. */
  readonly edges: readonly GraphEdge[];
  readonly entry: string;
  /** The exits, of which exactly one runs, in the last round. */
  readonly exits: readonly string[];
  readonly budget: FlowBudget;
}

/** What a run of the flow may use at most; of what its caller has left, the smaller counts on each axis. */
export interface FlowBudget extends Pick<AgentLimits, 'deadlineMs' | 'costUsd' | 'tokens'> {
  /** Nodes that are started, routers and the items of a map too. A flow with a cycle must have it. */
  readonly hops?: number;
}

// Walks over a graph, whose nodes are names.

/** What is reached from `starts`, with these, in the order of first sight. */
export function reachOf(starts: Iterable<string>, waysFrom: (name: string) => readonly string[]): Set<string> {
  const reached = new Set(starts);
  // A set that grows while it is walked is walked to its end.
  for (const name of reached) for (const next of waysFrom(name)) reached.add(next);
  return reached;
}

/** For each of the names, those of them that lead to it. */
export function sourcesOf(
  names: readonly string[],
  waysFrom: (name: string) => readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const sources = new Map<string, string[]>(names.map((name) => [name, []]));
  for (const from of names) for (const to of waysFrom(from)) sources.get(to)?.push(from);
  return sources;
}

/** The names, each behind those that lead to it. Those on a cycle are left out, and those behind one. */
export function inOrder(names: readonly string[], waysFrom: (name: string) => readonly string[]): readonly string[] {
  const indexOf = new Map(names.map((name, index) => [name, index]));
  const targets = names.map((name) => waysFrom(name).flatMap((to) => indexOf.get(to) ?? []));
  return topologicalOrder(targets).flatMap((index) => names[index] ?? []);
}

// A flow as JSON and as a picture.

export interface TopologyNode {
  readonly name: string;
  readonly kind: NodeKind;
  readonly effect: Effect;
  readonly allowCycle: boolean;
  /** For a flow as a node: the name of that flow. */
  readonly flow?: string;
  /** For a race: the names of its branches, and how many values it needs, if that was said. */
  readonly branches?: readonly string[];
  readonly need?: number;
}

/** A flow as JSON. The same definition gives the same, each time. */
export interface Topology {
  readonly name: string;
  readonly entry: string;
  readonly exits: readonly string[];
  /** In the order of first sight from the entry on. */
  readonly nodes: readonly TopologyNode[];
  readonly edges: readonly GraphEdge[];
}

export function topologyOf({ name, entry, exits, nodes, edges }: FlowGraph): Topology {
  const shown = [...nodes.values()].map(
    ({ name: node, kind, effect, allowCycle, flow, branches, need }): TopologyNode => ({
      ...{ name: node, kind, effect, allowCycle },
      ...defined({ flow, branches: branches?.map((branch) => branch.name), need }),
    }),
  );
  return { name, entry, exits: [...exits], nodes: shown, edges: edges.map((edge) => ({ ...edge })) };
}

/** What stands before and after the name of each kind. */
const SHAPES: Readonly<Record<NodeKind, readonly [string, string]>> = {
  node: ['[', ']'],
  router: ['{', '}'],
  join: ['{{', '}}'],
  map: ['[/', '/]'],
  race: ['([', '])'],
  flow: ['[[', ']]'],
};

/**
 * The text of a Mermaid flowchart: routers are diamonds, joins hexagons, maps slanted, races round with their branches, flows framed. Where the flow begins and
 * ends there are round marks; edges that lead back are dotted, and those of failures say so.
 */
export function mermaidOf({ nodes, edges, entry, exits }: FlowGraph): string {
  // Names such as `end` mean something in Mermaid, so that they stand in labels alone.
  const ids = new Map([...nodes.keys()].map((name, index) => [name, `n${index}`]));
  const lines = [
    ...[...nodes.values()].map((node) => {
      const [before, after] = SHAPES[node.kind];
      return `${ids.get(node.name)}${before}"${labelOf(node)}"${after}`;
    }),
    `input((" ")) --> ${ids.get(entry)}`,
    ...edges.map(
      ({ from, to, back, on }) =>
        `${ids.get(from)} ${on === undefined ? '' : `-- ${on} `}${back ? '-.->' : '-->'} ${ids.get(to)}`,
    ),
    ...exits.map((exit) => `${ids.get(exit)} --> output(((" ")))`),
  ];
  return `flowchart TD\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

function labelOf({ name, flow, branches, need = 1 }: GraphNode): string {
  if (branches !== undefined) return `${name}: ${need} of ${branches.map((branch) => branch.name).join(', ')}`;
  return flow === undefined || flow === name ? name : `${name}: ${flow}`;
}
