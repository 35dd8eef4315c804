/** What the other rooms and the tests may use of `flow`. */
export { checkedGraph } from './check/check.ts';
export type { FlowFault } from './check/fault.ts';
export { joinK, mapConcurrent } from './concurrent.ts';
export { FlowError, type FlowFailure, flowError } from './error.ts';
export { edge, flow } from './flow.ts';
export type { Edge, FlowBudget, FlowGraph, GraphEdge, GraphNode, NodeKind, Topology } from './graph.ts';
export { MAX_ITEMS, map, mapPlanner } from './map.ts';
export { join, type NodePolicy, node } from './node.ts';
export { flowPlanner } from './planner.ts';
export { race } from './race.ts';
export { predicateRouter, routePolicyOf, select, unionRouter } from './router.ts';
export type { FlowRuntime } from './run.ts';
export type { Flow, Gives, InOf, Node, OutOf } from './types.ts';
