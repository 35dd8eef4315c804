/** The planner of a flow: a pure function of its graph and of what its run has come to. */
import { createHash } from 'node:crypto';
import {
  type CallParallel,
  type Finish,
  type Json,
  literal,
  MAX_AT_ONCE,
  type Move,
  PilotageError,
  type Planner,
  type RunView,
} from '#core';
import { nodeFailed } from './error.ts';
import type { FlowGraph, GraphNode } from './graph.ts';
import { type Done, type Round, roundNotes, type Steps } from './progress.ts';
import { type FlowShape, flowShapeOf, nextPart } from './rounds.ts';

const NO_STEPS: Steps = { count: 0, step: () => undefined };

/**
 * Each round of the flow is one plan, whose branches are its nodes. The run has the flow's input as `context.args`; it
 * finishes with the value of the exit, and fails with the error of the first node that fails.
 * @throws PilotageError `flow_invalid` when too many ways lead to a node.
 */
export function flowPlanner(graph: FlowGraph): Planner {
  const shape = flowShapeOf(graph);
  nextPart(shape, NO_STEPS, null);
  return Object.freeze({
    name: `flow:${graph.name}`,
    version: digestOf(graph),
    wakeMode: 'poll' as const,
    costless: true as const,
    next: (run: RunView, signal: AbortSignal): Move => {
      signal.throwIfAborted();
      return decide(shape, run);
    },
  });
}

function decide(shape: FlowShape, run: RunView): Move {
  const { graph } = shape;
  const { trajectory } = run;
  const part = nextPart(shape, trajectory, literal(inputOf(graph.name, run)));
  switch (part.do) {
    case 'run': {
      const plan = trajectory.count === 0 ? graph.name : `${graph.name}#${trajectory.count + 1}`;
      const how = { onInvalid: 'per_branch', failFast: true, concurrency: MAX_AT_ONCE } as const;
      const decision: CallParallel = { kind: 'call_parallel', branches: part.branches, plan, ...how };
      return { decision, provenance: roundNotes(part.round) };
    }
    case 'fail':
      throw nodeFailed(graph.name, nodeNamed(graph, part.failure.node), part.failure);
    case 'end':
      if (part.exit === undefined) throw noExit(graph.name, part.round);
      return { decision: finishWith(part.exit) };
    default:
      return part satisfies never;
  }
}

/**
 * What a planner that is called as a function is given.
 * @throws PilotageError `validation_failed` when it is missing.
 */
export function inputOf(name: string, { context: { args } }: RunView): Json {
  if (args !== undefined) return args;
  const message = `The run of ${name} has no input. Start it with context.args, or through the flow's start or run.`;
  throw new PilotageError('validation_failed', message, { data: { flow: name, where: 'input' } });
}

/** What has come to a value, whole also when that was stored. */
export function finishWith({ value, artifact }: Pick<Done, 'value' | 'artifact'>): Finish {
  if (artifact === undefined) return { kind: 'finish', reason: 'goal', payload: value };
  return { kind: 'finish', reason: 'goal', payload: artifact, stored: true };
}

/** A node that failed under other code may be gone from the graph. */
function nodeNamed({ nodes }: FlowGraph, name: string): Pick<GraphNode, 'name' | 'kind'> {
  return nodes.get(name) ?? { name, kind: 'node' };
}

function noExit(flow: string, { nodes }: Round): PilotageError {
  for (const [node, status] of nodes) {
    if (status.kind !== 'passed' || status.removed === undefined) continue;
    const message = `The flow ${flow} has come to no exit: the node ${node}, which an exit needs, was taken out of its plan.`;
    const data = { flow, node, attempts: 0, cause: { ...status.removed } };
    return new PilotageError('node_exception', message, { data });
  }
  const message = `The flow ${flow} has come to no exit: nothing is left to run. Was its graph changed under way?`;
  return new PilotageError('node_exception', message, { data: { flow, attempts: 0 } });
}

/**
 * The version of a flow: a digest of everything that decides which nodes run, and with what. A run must not go on unasked when it
 * has changed.
 */
function digestOf({ nodes, edges, entry, exits }: FlowGraph): string {
  const described = [...nodes.values()].map(({ name, kind, parents }) => [
    name,
    kind,
    parents?.map((node) => node.name),
  ]);
  const whole = JSON.stringify([
    described,
    edges.map(({ from, to, back, on }) => (on === undefined ? [from, to, back] : [from, to, back, on])),
    entry,
    exits,
  ]);
  return createHash('sha256').update(whole).digest('hex').slice(0, 32);
}
