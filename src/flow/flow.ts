/** Flows: graphs that people write, carried out as ordinary runs. */

import {
  assertOnFailedPlan,
  assertOptions,
  type Json,
  type OnFailedPlan,
  type OptionShape,
  type Planner,
  readOptions,
} from '#core';
import { type AgentLimits, type AgentTool, checkedAgent, checkOf, type InputSchema } from '#tools';
import { checkedGraph } from './check/check.ts';
import {
  type Edge,
  type FlowBudget,
  type FlowGraph,
  type GraphNode,
  mermaidOf,
  strongestOf,
  topologyOf,
} from './graph.ts';
import { failureEdges } from './node.ts';
import { flowPlanner } from './planner.ts';
import { readInput, runFlow, startFlow } from './run.ts';
import type {
  AsJson,
  Exits,
  ExitsOut,
  Flow,
  FlowToolOptions,
  Gives,
  Node,
  Schema,
  SubflowOptions,
  Takes,
} from './types.ts';

export interface FlowDefinition<In, Args, Exit, Fits, Read> {
  /** The name: a letter, then letters, digits, `_`, `-` and `.`, 64 characters at most. */
  readonly name: string;
  readonly description?: string;
  /** The schema of the input. The entry gets the input after the schema's defaults and transforms. */
  readonly inputSchema: Schema<In, Args>;
  /** The schema of the output. Default: what the exits give. */
  readonly outputSchema?: Schema<Fits, Read>;
  /** The budget of a run. A flow with a cycle must have `hops`. */
  readonly budget?: FlowBudget;
  /** `pause`: when a node has failed, the run is paused, and asks to retry it. Default `fail`. */
  readonly onFailedPlan?: OnFailedPlan;
  readonly entry: Takes<NoInfer<AsJson<Args>>>;
  /** The exit: one node, or several of which exactly one runs. */
  readonly exit: Exit & Exits<NoInfer<Fits>>;
  /** Edges beside those that routers and joins imply. */
  readonly edges?: readonly Edge[];
}

/** An edge: the second node takes what the first one gives. */
export function edge<T>(from: Gives<T>, to: Takes<NoInfer<T>>): Edge {
  return { from, to };
}

const DEFINITION: OptionShape<FlowDefinition<never, never, unknown, never, never>> = {
  name: 'any',
  description: 'text?',
  inputSchema: 'schema',
  outputSchema: 'schema?',
  budget: 'object?',
  onFailedPlan: 'any?',
  entry: 'any',
  exit: 'any',
  edges: 'list?',
};
const TOOL: OptionShape<FlowToolOptions> = {
  ...({ name: 'any?', description: 'any?', needsApproval: 'any?', prompt: 'any?', tags: 'any?' } as const),
  ...({ loading: 'any?', mimeTypes: 'any?', scopes: 'any?', concurrency: 'any?', examples: 'any?' } as const),
  ...({ providerOptions: 'any?', background: 'flag?', undo: 'any?' } as const),
};
const SUBFLOW: OptionShape<SubflowOptions> = { allowCycle: 'flag?', onError: 'any?', onRejected: 'any?' };

/**
 * Builds a flow from its parts, and checks it.
 * @throws PilotageError `flow_invalid` with everything that is wrong: `data.faults` is `[{ code, message, nodes }]`.
 * `tool_schema_invalid` for a value that is not a schema.
 */
export function flow<Exit extends Exits<unknown>, In = Json, Args = never, Fits = unknown, Read = unknown>(
  definition: FlowDefinition<In, Args, Exit, Fits, Read>,
): Flow<In, unknown extends Fits ? ExitsOut<Exit> : Fits, unknown extends Read ? ExitsOut<Exit> : AsJson<Read>> {
  assertOptions('flow', definition, DEFINITION);
  assertOnFailedPlan(`The flow ${definition.name}`, definition.onFailedPlan);
  const {
    name,
    description = `The flow ${name}.`,
    inputSchema,
    outputSchema,
    budget = {},
    onFailedPlan,
    entry,
    exit,
    edges = [],
  } = definition;
  const exits: readonly GraphNode[] = Array.isArray(exit) ? exit : [exit as GraphNode];
  const graph = checkedGraph({ name, budget, entry, exits, edges });
  return built(graph, flowPlanner(graph, onFailedPlan), description, inputSchema, outputSchema) as never;
}

function built(
  graph: FlowGraph,
  planner: Planner,
  description: string,
  inputSchema: InputSchema,
  outputSchema: InputSchema | undefined,
): Flow {
  const { name, nodes } = graph;
  const effect = strongestOf([...nodes.values()].map((node) => node.effect));
  const schemas = outputSchema === undefined ? { inputSchema } : { inputSchema, outputSchema };
  const made: Flow = {
    name,
    description,
    ...schemas,
    graph,
    planner,
    tools: Object.freeze([...nodes.values()].flatMap(({ tool, undo }) => (undo === undefined ? [tool] : [tool, undo]))),
    limits: Object.freeze(runBudget(graph)),
    checkInput: checkOf(inputSchema, `The input of the flow ${name}`),
    ...(outputSchema === undefined ? {} : { checkOutput: checkOf(outputSchema, `The output of the flow ${name}`) }),
    asNode: <const Name extends string>(as: Name = name as Name, options: SubflowOptions = {}) => {
      assertOptions(`The node of the flow ${name}`, options, SUBFLOW);
      const { allowCycle = false } = options;
      const node: GraphNode = {
        name: as,
        kind: 'flow',
        tool: made.asTool({ name: as }),
        effect,
        allowCycle,
        flow: name,
        ...failureEdges(options),
      };
      return Object.freeze(node) as Node<Name, never, unknown>;
    },
    asTool: (options: FlowToolOptions = {}): AgentTool => {
      const given = readOptions(`The tool of the flow ${name}`, options, TOOL);
      return Object.freeze({ name, description, ...given, ...schemas, effect, agent: made });
    },
    readArgs: (args, identity) => readInput(made, args, identity),
    start: (runtime, given, options) => startFlow(made, runtime, given, options),
    run: (runtime, given, options) => runFlow(made, runtime, given, options),
    topology: () => topologyOf(graph),
    mermaid: () => mermaidOf(graph),
  };
  return checkedAgent(made);
}

/** Rounds of a flow that a run has steps for anyway. */
const FREE_ROUNDS = 50;

/**
 * Steps are not what bounds a flow. They are left at the default of all runs, and where the hops allow for more rounds than
 * that, set so high that neither these nor the flow's tasks, whose steps count too, come to an end before the hops do.
 */
function runBudget({ budget, edges }: FlowGraph): AgentLimits {
  const { hops, ...rest } = budget;
  if (hops === undefined) return rest;
  const mayGoRound = edges.some(({ back }) => back) && hops > FREE_ROUNDS;
  return mayGoRound ? { ...rest, calls: hops, steps: 64 + 4 * hops } : { ...rest, calls: hops };
}
