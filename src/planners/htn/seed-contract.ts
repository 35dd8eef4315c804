/** Planners written to the contract of the agentsdk proposal: one task to begin with, and a function that decomposes. */
import {
  assertOptions,
  describeThrown,
  isJsonObject,
  type Json,
  type OptionShape,
  PilotageError,
  type Planner,
} from '#core';
import { type PlannerState, plannerState } from '#plans';
import type { HtnEntry, HtnTask } from './domain.ts';
import { DEFAULT_DEPTH, DEFAULT_NODES } from './htn.ts';
import type { Resolve } from './item.ts';
import { plannerOf } from './planner.ts';
import type { HtnStep } from './work.ts';

export interface HTNNode {
  readonly id: string;
  readonly kind: 'primitive' | 'compound';
  /** For a primitive node: the step that is carried out. Without an `id` of its own, the step has the id of the node. */
  readonly primitive?: HtnStep;
  /** For a compound node: methods that are tried in turn, until one leads to a plan. */
  readonly methods?: readonly string[];
}

export interface HTNPlanner {
  initialTask(state: PlannerState): Promise<HTNNode> | HTNNode;
  /**
   * The nodes in place of a compound one, in their order. Of a node with methods it is asked by one at a time: `methods`
   * has that name alone. An empty list, or an error that is thrown: that way leads nowhere.
   */
  decompose(node: HTNNode, state: PlannerState): Promise<readonly HTNNode[]> | readonly HTNNode[];
}

export interface FromHtnPlannerOptions {
  /** Default `htn`. */
  readonly name?: string;
  readonly version?: string;
  /** The tool that carries out steps of the type `internal`, called with `{ id, input, meta }`. */
  readonly internal?: string;
}

const OPTIONS: OptionShape<FromHtnPlannerOptions> = { name: 'name?', version: 'text?', internal: 'text?' };

/**
 * Decomposes depth first until all is primitive, at most 32 levels and 1,000 nodes, and carries that out in its order.
 * When a step fails, only the compound node that it is part of is decomposed anew.
 *
 * A run fails with `htn_depth`, `htn_nodes`, with `htn_cycle` for a node that comes to itself, and with
 * `htn_invalid_decomposition` for a primitive node without a step.
 */
export function fromHtnPlanner(given: HTNPlanner, options: FromHtnPlannerOptions = {}): Planner {
  assertOptions('fromHtnPlanner', options, OPTIONS);
  if (typeof given?.initialTask !== 'function' || typeof given.decompose !== 'function') {
    throw new PilotageError('invalid_config', 'fromHtnPlanner takes an object with initialTask(state) and decompose.');
  }
  const { name = 'htn', version, internal } = options;
  return plannerOf({
    name,
    version,
    limits: { depth: DEFAULT_DEPTH, nodes: DEFAULT_NODES },
    lazy: false,
    internal,
    unpriced: [],
    knows: (run, signal) => {
      const state = plannerState(run);
      return {
        resolve: resolverFor(given, state, signal),
        tables: () => ({}),
        todo: async () => [taskOf(await given.initialTask(state))],
        stepOf: ([id, node]) => {
          const { primitive } = node as unknown as HTNNode;
          return primitive && { ...primitive, id: primitive.id ?? id };
        },
      };
    },
  });
}

/** @throws PilotageError `htn_invalid_decomposition` for a value that is not a node, and for a primitive node without a step. */
function taskOf(given: unknown): HtnTask {
  const node = isJsonObject(given) ? given : {};
  const { id, kind, primitive } = node as Readonly<Record<string, Json | undefined>>;
  if (typeof id !== 'string' || id === '' || (kind !== 'primitive' && kind !== 'compound')) {
    throw invalid('A decomposition holds a value that is not a node: a node has an id, and is primitive or compound.');
  }
  if (kind === 'primitive' && !isJsonObject(primitive)) {
    throw invalid(`The primitive node ${id} has no step: give it \`primitive\`, or make it compound.`, id);
  }
  return [id, node];
}

function invalid(message: string, id?: string): PilotageError {
  return new PilotageError('htn_invalid_decomposition', message, id === undefined ? {} : { data: { task: id } });
}

const PRIMITIVE: HtnEntry = { kind: 'action', operator: () => true, methods: [] };

function resolverFor(planner: HTNPlanner, state: PlannerState, signal: AbortSignal): Resolve {
  const decompose = async (node: HTNNode): Promise<readonly HtnTask[] | Error | undefined> => {
    signal.throwIfAborted();
    let nodes: readonly HTNNode[];
    try {
      nodes = await planner.decompose(node, state);
    } catch (thrown) {
      signal.throwIfAborted();
      return thrown instanceof Error ? thrown : new Error(describeThrown(thrown));
    }
    if (!Array.isArray(nodes)) throw invalid(`The decomposition of ${node.id} is not a list of nodes.`, node.id);
    return nodes.length === 0 ? undefined : nodes.map(taskOf);
  };
  return ([, given]) => {
    const node = given as unknown as HTNNode;
    if (node.kind === 'primitive') return PRIMITIVE;
    const { methods = [] } = node;
    if (methods.length === 0) return { kind: 'task', methods: [{ name: 'decompose', run: () => decompose(node) }] };
    const named = methods.map((name) => ({ name, run: () => decompose({ ...node, methods: [name] }) }));
    return { kind: 'task', methods: named };
  };
}
