/** Nodes that run a function, and what all nodes with a function have in common. */

import { assertOptions, type Effect, type Json, type JsonObject, type OptionShape, Thrown } from '#core';
import {
  type ApprovalGate,
  type Backoff,
  type HandleSet,
  type InputSchema,
  type NoHandles,
  type Reconciled,
  type Tool,
  type ToolContext,
  ToolFailure,
} from '#tools';
import type { FlowFailure } from './failure.ts';
import type { GraphNode } from './graph.ts';
import type { AsJson, Node, Schema, Takes } from './types.ts';

export interface NodePolicy {
  /** For one attempt. Default 30,000. */
  readonly timeoutMs?: number;
  /**
   * Attempts after the first that failed. Default 0; a node with the effect `once` has none. With retries given, an error is
   * tried again unless it says of itself that this is of no use: by `retryable: false`, or an HTTP status below 500 other than 429.
   */
  readonly retries?: number;
  /** How long it is waited before each of them. */
  readonly backoff?: Backoff;
}

/** What a node says of its function. */
export interface CallOptions<Args, Raw, H extends HandleSet = NoHandles> {
  readonly description?: string;
  /** Of the value. One that does not fit fails the node. It is handed on as it was, without transforms of the schema. */
  readonly outputSchema?: Schema<Raw, unknown>;
  /** Default `once`: the safest promise. */
  readonly effect?: Effect;
  /** The value must be JSON; nothing is null. */
  execute(args: Args, context: ToolContext<H>): Raw | Promise<Raw>;
  /** Live handles that it needs; the nodes of a flow's run share them, and a map has its own. */
  readonly handles?: H;
  readonly policy?: NodePolicy;
  /** Somebody is asked before it runs. */
  readonly needsApproval?: boolean | ApprovalGate<Args>['when'] | ApprovalGate<Args>;
  /** What one call costs, in millionths of a US dollar; reserved before it starts. */
  readonly costUsd?: number;
  /** Asked when nobody knows whether a `once` node has happened. */
  reconcile?(args: Args, context: ToolContext): Reconciled | Promise<Reconciled>;
  /** When that cannot say: `hold` pauses the run until somebody settles it, `tell` fails the node. Default `hold`. */
  readonly inDoubt?: 'hold' | 'tell';
  /** The node may be on a cycle. Default false. */
  readonly allowCycle?: boolean;
  /** Where the flow goes on when the node has failed, with the error as input: then it is no failure of the flow. */
  readonly onError?: Takes<FlowFailure>;
  /** The same when somebody has rejected it, or nobody has approved it in time. */
  readonly onRejected?: Takes<FlowFailure>;
}

/** The failure edges of a node. */
export function failureEdges({
  onError,
  onRejected,
}: Pick<GraphNode, 'onError' | 'onRejected'>): Pick<GraphNode, 'onError' | 'onRejected'> {
  return { ...(onError === undefined ? {} : { onError }), ...(onRejected === undefined ? {} : { onRejected }) };
}

/** The schema of what is not checked: one object, so that it is compiled once. */
export const ANYTHING: JsonObject = Object.freeze({});

export interface NodeOptions<Args, In, Raw, H extends HandleSet = NoHandles> extends CallOptions<Args, Raw, H> {
  /** Of what it takes. Without it nothing is checked, and the type of what `execute` takes is believed. */
  readonly inputSchema?: Schema<In, Args>;
}

/** Of everything with a function. What is no function is for the check of the flow to see. */
export const CALL: OptionShape<CallOptions<never, never>> = {
  description: 'text?',
  outputSchema: 'schema?',
  effect: 'any?',
  execute: 'any',
  handles: 'any?',
  policy: 'object?',
  needsApproval: 'any?',
  costUsd: 'any?',
  reconcile: 'any?',
  inDoubt: 'any?',
  allowCycle: 'any?',
  onError: 'any?',
  onRejected: 'any?',
};
const NODE: OptionShape<NodeOptions<never, never, never>> = { ...CALL, inputSchema: 'schema?' };
const POLICY: OptionShape<NodePolicy> = { timeoutMs: 'any?', retries: 'any?', backoff: 'any?' };

/** A node of a flow: it runs once a round, when a node that leads to it has ended and, of a router, has picked it. */
export function node<const Name extends string, const Raw, Args = Json, In = Args, H extends HandleSet = NoHandles>(
  name: Name,
  options: NodeOptions<Args, In, Raw, H>,
): Node<Name, In, AsJson<Raw>> {
  assertOptions(`The node ${String(name)}`, options, NODE);
  const { effect = 'once', allowCycle = false, inputSchema = ANYTHING } = options;
  return Object.freeze({
    name,
    kind: 'node',
    tool: callTool(name, inputSchema, options),
    effect,
    allowCycle,
    ...failureEdges(options),
  });
}

/** The tool of a function in a flow. */
export function callTool<Args, Raw, H extends HandleSet>(
  name: string,
  inputSchema: InputSchema,
  options: CallOptions<Args, Raw, H>,
): Tool {
  const { description = `The node ${String(name)} of a flow.`, outputSchema, effect = 'once', policy = {} } = options;
  const { needsApproval, costUsd, reconcile, inDoubt, handles } = options;
  assertOptions(`The policy of the node ${String(name)}`, policy, POLICY);
  const { timeoutMs, retries = 0, backoff } = policy;
  const tool = {
    name,
    description,
    inputSchema,
    effect,
    retries,
    // What is no function stays as it is, for the check of the flow to see.
    execute: retries > 0 && typeof options.execute === 'function' ? tryingAgain(options) : options.execute,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(needsApproval === undefined ? {} : { needsApproval }),
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(reconcile === undefined ? {} : { reconcile }),
    ...(handles === undefined ? {} : { handles }),
    ...(inDoubt === undefined ? {} : { inDoubt }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(backoff === undefined ? {} : { backoff }),
  };
  // The arguments are what the schema puts out: what `execute` takes, by the types of the builder.
  return tool as Tool;
}

function tryingAgain<Args, Raw, H extends HandleSet>(
  options: Pick<CallOptions<Args, Raw, H>, 'execute'>,
): CallOptions<Args, Raw, H>['execute'] {
  return (args, context) => {
    try {
      const made = options.execute(args, context);
      return isThenable(made)
        ? Promise.resolve(made).catch((thrown: unknown) => Promise.reject(mayPass(thrown)))
        : made;
    } catch (thrown) {
      throw mayPass(thrown);
    }
  };
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** What does not say whether trying again may help is taken to pass. */
function mayPass(thrown: unknown): unknown {
  const said = Thrown.of(thrown);
  const { code, message, data, retryable, status } = said;
  if (code === 'auth_required' || retryable !== undefined || status !== undefined) return thrown;
  return new ToolFailure(message, {
    retryable: true,
    cause: thrown,
    ...(code === undefined ? {} : { code }),
    ...(data === undefined ? {} : { data }),
  });
}
