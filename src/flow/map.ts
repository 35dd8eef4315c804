/** Map nodes: one function over the items of a list. */
import { assertOptions, type Json, type JsonObject, type OptionShape } from '#core';
import { type AgentTool, agent, type HandleSet, type NoHandles } from '#tools';
import type { NodePlace } from './graph.ts';
import { MAX_ITEMS, mapPlanner } from './map-planner.ts';
import { ANYTHING, CALL, type CallOptions, callTool, failureEdges } from './node.ts';
import type { AsJson, Node, Schema } from './types.ts';

/** Everything but `concurrency` and `allowCycle` is about one item: its value, time limit, retries, price and approval. */
export interface MapOptions<Args, In, Raw, H extends HandleSet = NoHandles> extends CallOptions<Args, Raw, H> {
  /** The schema of one item. Without it nothing is checked, and the declared type of `execute` is trusted. */
  readonly itemSchema?: Schema<In, Args>;
  /** How many items are worked on at once, from 1 to 50. Default 8. */
  readonly concurrency?: number;
}

/** A single object, so that it is compiled once. */
const LIST: JsonObject = Object.freeze({ type: 'array', maxItems: MAX_ITEMS });
const MAP: OptionShape<MapOptions<never, never, never>> = { ...CALL, itemSchema: 'schema?', concurrency: 'any?' };
const DEFAULT_CONCURRENCY = 8;

/** A node that takes a list of at most 10,000 items, and gives the list of their values. It runs as a task of the flow's run. */
export function map<const Name extends string, const Raw, Args = Json, In = Args, H extends HandleSet = NoHandles>(
  name: Name,
  options: MapOptions<Args, In, Raw, H>,
): Node<Name, readonly In[], AsJson<Raw>[]> {
  assertOptions(`The map ${String(name)}`, options, MAP);
  const { effect = 'once', allowCycle = false, concurrency = DEFAULT_CONCURRENCY, itemSchema = ANYTHING } = options;
  const { description = `The map ${String(name)} of a flow.` } = options;
  const itemTool = callTool(`${String(name)}.item`, itemSchema, options);
  const toolIn = ({ flow }: Pick<NodePlace, 'flow'>): AgentTool => {
    const ofMap = `map:${flow}/${String(name)}`;
    const planner = mapPlanner(ofMap, itemTool.name, concurrency);
    return {
      name,
      description,
      inputSchema: LIST,
      effect,
      agent: agent({ name: ofMap, planner, tools: [itemTool] }),
    };
  };
  const made = { name, effect, allowCycle, concurrency, toolIn, ...failureEdges(options) };
  return Object.freeze({ ...made, kind: 'map' as const, tool: toolIn({ flow: '' }) });
}
