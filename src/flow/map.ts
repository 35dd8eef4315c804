/** Map nodes: one function over the items of a list, and the planner of their runs: one call an item, then the values as one list. */

import {
  assertIdentity,
  assertOptions,
  type Branch,
  branchId,
  type CallParallel,
  FINISH_TOOL,
  type Finish,
  isOptionsRecord,
  type Json,
  type JsonObject,
  literal,
  type OptionShape,
  PilotageError,
  type Planner,
  type Reference,
  type RunView,
  type Trajectory,
} from '#core';
import { type AgentTool, agent, type HandleSet, type InputSchema, type NoHandles, type Tool } from '#tools';
import { nodeFailed } from './error.ts';
import type { GraphNode, NodePlace } from './graph.ts';
import {
  ANYTHING,
  CALL,
  type CallOptions,
  callTool,
  failureEdges,
  type GivenBy,
  type NodeTool,
  ofTool,
  type TakenBy,
  undoTool,
} from './node.ts';
import { finishWith, inputOf } from './planner.ts';
import { failureOf } from './progress.ts';
import type { AsJson, Node, Schema } from './types.ts';

/** Everything but `concurrency` and `allowCycle` is about one item: its value, time limit, retries, price and approval. */
export interface MapOptions<Args, In, Raw, H extends HandleSet = NoHandles> extends CallOptions<Args, Raw, H> {
  /** The schema of one item. Without it nothing is checked, and the declared type of `execute` is trusted. */
  readonly itemSchema?: Schema<In, Args>;
  /** How many items are worked on at once, from 1 to 50. Default 8. */
  readonly concurrency?: number;
}

/** The most items of a map. */
export const MAX_ITEMS = 10_000;

/** A single object, so that it is compiled once. */
const LIST: JsonObject = Object.freeze({ type: 'array', maxItems: MAX_ITEMS });
const MAP: OptionShape<MapOptions<never, never, never>> = { ...CALL, itemSchema: 'schema?', concurrency: 'any?' };
const DEFAULT_CONCURRENCY = 8;

/**
 * A node that takes a list of at most 10,000 items, and gives the list of their values. It runs as a task of the flow's run. A tool in place of the options, such
 * as that of an agent or of a flow, is called with each item; its `concurrency` is that of the map.
 */
export function map<const Name extends string, const Raw, Args = Json, In = Args, H extends HandleSet = NoHandles>(
  name: Name,
  options: MapOptions<Args, In, Raw, H> & { readonly name?: never },
): Node<Name, readonly In[], AsJson<Raw>[]>;
export function map<const Name extends string, S extends InputSchema, V>(
  name: Name,
  tool: NodeTool<S, V>,
): Node<Name, readonly TakenBy<S>[], GivenBy<V>[]>;
export function map(name: string, given: object): GraphNode {
  if (isOptionsRecord(given) && 'name' in given) return toolMap(name, given as NodeTool<InputSchema, unknown>);
  assertOptions(`The map ${String(name)}`, given, MAP);
  const options = given as MapOptions<never, never, unknown>;
  const { effect = 'once', allowCycle = false, concurrency, itemSchema = ANYTHING, description } = options;
  const itemTool = callTool(itemOf(name), itemSchema, options);
  const undo = undoTool(itemTool.name, options);
  const tools = undo === undefined ? [itemTool] : [itemTool, undo];
  const edges = failureEdges(options);
  return mapNode(name, { itemTool, tools, description, concurrency }, { effect, allowCycle, ...edges });
}

function toolMap(name: string, given: NodeTool<InputSchema, unknown>): GraphNode {
  const { tool: itemTool, ...node } = ofTool('map', name, itemOf(name), given);
  const { description, concurrency } = itemTool;
  return mapNode(name, { itemTool, tools: [itemTool], description, concurrency }, node);
}

const itemOf = (name: string): string => `${String(name)}.item`;

interface Items {
  readonly itemTool: Tool | AgentTool;
  /** With the one that undoes an item. */
  readonly tools: readonly (Tool | AgentTool)[];
  readonly description: string | undefined;
  readonly concurrency: number | undefined;
}

function mapNode(
  name: string,
  { itemTool, tools, description = `The map ${String(name)} of a flow.`, concurrency = DEFAULT_CONCURRENCY }: Items,
  node: Pick<GraphNode, 'effect' | 'allowCycle' | 'onError' | 'onRejected'>,
): GraphNode {
  const { effect } = node;
  const toolIn = ({ flow }: Pick<NodePlace, 'flow'>): AgentTool => {
    const ofMap = `map:${flow}/${String(name)}`;
    const planner = mapPlanner(ofMap, itemTool.name, concurrency);
    return { name, description, inputSchema: LIST, effect, agent: agent({ name: ofMap, planner, tools }) };
  };
  return Object.freeze({ name, kind: 'map', ...node, concurrency, toolIn, tool: toolIn({ flow: '' }) });
}

/**
 * The run has the items as `context.args`, and finishes with the values of their calls, in their order. The first item that
 * fails fails the run.
 * @param itemTool the tool that is called with each item.
 * @param concurrency items under way at once.
 */
export function mapPlanner(name: string, itemTool: string, concurrency: number): Planner {
  return Object.freeze({
    name,
    wakeMode: 'poll' as const,
    whileAsked: 'keep' as const,
    costless: true as const,
    next: (run: RunView, signal: AbortSignal) => {
      signal.throwIfAborted();
      assertIdentity(run.identity);
      return { decision: decide({ name, itemTool, concurrency }, run) };
    },
  });
}

interface MapOf {
  readonly name: string;
  readonly itemTool: string;
  readonly concurrency: number;
}

function decide(map: MapOf, run: RunView): CallParallel | Finish {
  const items = itemsOf(map.name, run);
  if (items.length === 0) return { kind: 'finish', reason: 'goal', payload: [] };
  const { values, parts, finish } = progressOf(map, run.trajectory);
  if (finish !== undefined) return finish;
  const rest = items.flatMap((args, index): Branch[] =>
    values.has(String(index)) ? [] : [{ id: String(index), tool: map.itemTool, args: literal(args) }],
  );
  const plan = parts === 0 ? map.name : `${map.name}#${parts + 1}`;
  const { concurrency } = map;
  if (rest.length > 0) {
    return { kind: 'call_parallel', branches: rest, plan, onInvalid: 'per_branch', failFast: true, concurrency };
  }
  const args = items.map((_, index) => ({ ...values.get(String(index)) }) as Json);
  return { kind: 'call_parallel', branches: [{ id: FINISH_TOOL, tool: FINISH_TOOL, args }], plan };
}

function itemsOf(name: string, run: RunView): readonly Json[] {
  const items = inputOf(name, run);
  if (Array.isArray(items) && items.length <= MAX_ITEMS) return items as readonly Json[];
  const what = Array.isArray(items) ? `${items.length} items` : 'something else';
  const message = `${name} takes a list of at most ${MAX_ITEMS} items, and was given ${what}.`;
  throw new PilotageError('validation_failed', message, { data: { flow: name, where: 'input' } });
}

interface MapProgress {
  /** For each item that has ended, the place of its value. */
  readonly values: ReadonlyMap<string, Reference>;
  readonly parts: number;
  readonly finish?: Finish;
}

/** @throws PilotageError of the first item that failed. */
function progressOf({ name, itemTool }: MapOf, trajectory: Trajectory): MapProgress {
  const values = new Map<string, Reference>();
  let parts = 0;
  for (let index = 0; index < trajectory.count; index += 1) {
    const step = trajectory.step(index);
    if (step?.decision.kind !== 'call_parallel') continue;
    const failure = failureOf(step);
    if (failure !== undefined) throw nodeFailed(name, { name: itemTool, kind: 'node' }, failure);
    parts += 1;
    for (const [call, branch] of step.decision.branches.entries()) {
      const outcome = step.calls[call]?.outcome;
      const id = branchId(branch, call);
      if (outcome?.kind === 'value') {
        if (branch.tool === FINISH_TOOL) return { values, parts, finish: finishWith(outcome) };
        values.set(id, { $from: id, step: index });
      } else if (outcome?.kind === 'skipped' && outcome.error.code === 'node_removed') {
        throw itemRemoved(name, itemTool, id);
      }
    }
  }
  return { values, parts };
}

function itemRemoved(flow: string, node: string, item: string): PilotageError {
  const message = `The item ${item} of ${flow} was taken out of its plan, and the list cannot be given without it.`;
  return new PilotageError('node_exception', message, { data: { flow, node, attempts: 0 } });
}
