/** A flow as data and functions: what its builders make, its checks read, and its planner carries out. */
import type { Effect, FailureKind } from '#core';
import type { AgentLimits, AnyTool } from '#tools';

export type { FailureKind } from '#core';

export type NodeKind = 'node' | 'router' | 'join' | 'map' | 'flow';

/** A node of a graph. Its tool has the node's name, and is what a call of it runs. */
export interface GraphNode {
  /** Unique in its flow: a letter, then letters, digits, `_`, `-` and `.`. */
  readonly name: string;
  readonly kind: NodeKind;
  readonly tool: AnyTool;
  readonly effect: Effect;
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
  /** For a router and a map, whose tools must know their flow: makes the tool in a flow. `flow` calls it for each node. */
  toolIn?(place: NodePlace): AnyTool;
}

export interface NodePlace {
  /** The name of the flow. */
  readonly flow: string;
  /** The nodes to which edges lead. */
  readonly waysOut: readonly string[];
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
