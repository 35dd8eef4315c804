export type { FlowFault, FlowFaultCode } from './check/fault.ts';
export { joinK, mapConcurrent } from './concurrent.ts';
export { FlowError, type FlowFailure } from './error.ts';
export type { FlowDefinition } from './flow.ts';
export { edge, flow } from './flow.ts';
export type { Edge, FlowBudget, GraphEdge, GraphNode, NodeKind, Topology, TopologyNode } from './graph.ts';
export { type MapOptions, map } from './map.ts';
export {
  type CallOptions,
  type JoinInput,
  type JoinOptions,
  join,
  type NodeOptions,
  type NodePolicy,
  type NodeTool,
  node,
} from './node.ts';
export { type RaceInput, type RaceOptions, type RaceWinner, race } from './race.ts';
export type { PredicateBranch, RoutePolicy, Router, RouterNode, RouterOptions } from './router.ts';
export { predicateRouter, routePolicyOf, select, unionRouter } from './router.ts';
export type { FlowOptions, FlowRun, FlowRuntime, FlowStart } from './run.ts';
export type { AsJson, Flow, FlowToolOptions, Gives, InOf, Node, OutOf, Schema, Takes } from './types.ts';
export type { FromInput, NodeEvent, NodeQuestion, NodeSleep, SleepOptions, WaitOptions } from './wait.ts';
