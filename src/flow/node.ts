/** Nodes that run a function: plain ones and joins, and what all nodes with a function have in common. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  assertOptions,
  defined,
  type Effect,
  isOptionsRecord,
  type Json,
  type JsonObject,
  type OptionShape,
  PilotageError,
  Thrown,
} from '#core';
import {
  type AgentTool,
  type ApprovalGate,
  type Backoff,
  type HandleSet,
  type InputSchema,
  type Later,
  type NoHandles,
  type Reconciled,
  resultOf,
  type Tool,
  type ToolContext,
  ToolFailure,
  type ToolOptions,
} from '#tools';
import type { FlowFailure } from './error.ts';
import type { GraphNode } from './graph.ts';
import type { AsJson, Node, OutOf, Schema, Takes } from './types.ts';
import { type AnyWait, isWait, type SleepOptions, type WaitedFor, type WaitOptions, waitCall } from './wait.ts';

export interface NodePolicy {
  /** The time limit of one attempt, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
  /** Milliseconds until an attempt shows the first sign of life: a piece of its result, or a row of a stream. Default: as long as `idleMs` and `timeoutMs` let it. */
  readonly firstByteMs?: number;
  /** Milliseconds from one sign of life to the next, and to the first one where `firstByteMs` does not say. Default: as long as `timeoutMs` lets it. */
  readonly idleMs?: number;
  /**
   * How many further attempts are made after a failed one. Default 0; a node with the effect `once` has none. With retries given, an error is
   * tried again unless the error says that this is useless: by `retryable: false`, or an HTTP status below 500 other than 429.
   */
  readonly retries?: number;
  /** The wait before each further attempt. */
  readonly backoff?: Backoff;
}

type MaybeLater<Raw> = Raw | Later | undefined;

/** The options of a node with a function. */
export interface CallOptions<Args, Raw, H extends HandleSet = NoHandles> {
  readonly description?: string;
  /**
   * The schema of the value. A value that does not fit fails the node. A value that fits is handed on unchanged, without
   * transforms.
   */
  readonly outputSchema?: Schema<Raw, unknown>;
  /** What the function does to the world. Default `once`, the safest. */
  readonly effect?: Effect;
  /** The function. Its value must be JSON; no value means null. `later({ key })` in its place says that it comes later. */
  execute(args: Args, context: ToolContext<H>): Raw | Later | Promise<Raw | Later>;
  /** Asked whether the value is there when `execute` gave `later({ key, pollEveryMs })`, as that of a tool: it gives the value, or `undefined`. */
  poll?(key: string, args: Args, context: ToolContext): MaybeLater<Raw> | Promise<MaybeLater<Raw>>;
  /** Live handles that the node needs. The nodes of a flow's run share them; a map has its own. */
  readonly handles?: H;
  readonly policy?: NodePolicy;
  /** The approval that is asked for before the node runs. */
  readonly needsApproval?: boolean | ApprovalGate<Args>['when'] | ApprovalGate<Args>;
  /** What one call costs, in millionths of a US dollar. The amount is reserved before the call starts. */
  readonly costUsd?: number;
  /** Called when nobody knows whether a `once` node has happened. */
  reconcile?(args: Args, context: ToolContext): Reconciled | Promise<Reconciled>;
  /**
   * What happens when `reconcile` cannot tell: `hold` pauses the run until somebody settles the call, `tell` fails the node.
   * Default `hold`.
   */
  readonly inDoubt?: 'hold' | 'tell';
  /**
   * Undoes a call that was made with these arguments and gave this value, when the run of the flow ends without having reached its goal
   * (`onFail: 'undo'`). It is a call like any other, of the node's effect, time limit and retries.
   */
  undo?(args: Args, value: Raw, context: ToolContext): unknown;
  /** True: the node may be on a cycle. Default false. */
  readonly allowCycle?: boolean;
  /** The node at which the flow goes on when this node has failed, with the error as input. The flow itself does not fail then. */
  readonly onError?: Takes<FlowFailure>;
  /** The node at which the flow goes on when somebody has rejected this node, or nobody has approved it in time. */
  readonly onRejected?: Takes<FlowFailure>;
}

/** The failure edges of a node. */
export function failureEdges({
  onError,
  onRejected,
}: Pick<GraphNode, 'onError' | 'onRejected'>): Pick<GraphNode, 'onError' | 'onRejected'> {
  return defined({ onError, onRejected });
}

/** The schema of what is not checked: one object, so that it is compiled once. */
export const ANYTHING: JsonObject = Object.freeze({});

export interface NodeOptions<Args, In, Raw, H extends HandleSet = NoHandles> extends CallOptions<Args, Raw, H> {
  /** The schema of the input. Without it nothing is checked, and the declared type of `execute` is trusted. */
  readonly inputSchema?: Schema<In, Args>;
}

/** Options of everything with a function. The check of the flow reports a value that is not a function. */
export const CALL: OptionShape<CallOptions<never, never>> = {
  description: 'text?',
  outputSchema: 'schema?',
  effect: 'any?',
  execute: 'any',
  poll: 'function?',
  handles: 'any?',
  policy: 'object?',
  needsApproval: 'any?',
  costUsd: 'any?',
  reconcile: 'any?',
  inDoubt: 'any?',
  undo: 'function?',
  allowCycle: 'any?',
  onError: 'any?',
  onRejected: 'any?',
};
const NODE: OptionShape<NodeOptions<never, never, never>> = { ...CALL, inputSchema: 'schema?' };
const POLICY: OptionShape<NodePolicy> = {
  timeoutMs: 'any?',
  firstByteMs: 'any?',
  idleMs: 'any?',
  retries: 'any?',
  backoff: 'any?',
};

/** A tool as a node: what `tool` and `agentTool` give, with what a node has beside it. */
export type NodeTool<S extends InputSchema, V> = (ToolOptions<S, HandleSet, V> | AgentTool<S>) &
  Pick<CallOptions<never, never>, 'allowCycle' | 'onError' | 'onRejected'>;

/** What a tool takes, before its schema's defaults and transforms. A JSON Schema says nothing to the types. */
export type TakenBy<S extends InputSchema> = S extends StandardSchemaV1<infer In> ? In : unknown;
/** What a tool gives, as JSON. */
export type GivenBy<V> = unknown extends V ? Json : AsJson<Exclude<V, Later>>;

/**
 * A node of a flow. It runs once a round, when a node that leads to it has ended, or a router has picked it. With `ask`, `sleep` or `event` in place of `execute` it
 * waits, and does nothing else. A tool in place of the options, such as `agentTool(writer)`, is a node that calls it, with everything that the tool says of itself.
 */
export function node<const Name extends string, const Raw, Args = Json, In = Args, H extends HandleSet = NoHandles>(
  name: Name,
  options: NodeOptions<Args, In, Raw, H> & { readonly name?: never },
): Node<Name, In, AsJson<Raw>>;
export function node<const Name extends string, In = unknown>(name: Name, wait: SleepOptions<In>): Node<Name, In, null>;
export function node<const Name extends string, S extends InputSchema, In = unknown>(
  name: Name,
  wait: WaitOptions<In, S>,
): Node<Name, In, WaitedFor<S>>;
export function node<const Name extends string, S extends InputSchema, V>(
  name: Name,
  tool: NodeTool<S, V>,
): Node<Name, TakenBy<S>, GivenBy<V>>;
export function node(name: string, given: object): GraphNode {
  if (isOptionsRecord(name)) {
    const message = "node takes its name first, and its options behind it: node('classify', { inputSchema, execute }).";
    throw new PilotageError('invalid_config', message);
  }
  if (isOptionsRecord(given) && 'name' in given) return toolNode(name, given as NodeTool<InputSchema, unknown>);
  if (isOptionsRecord(given) && isWait(given)) return waitNode(name, given);
  assertOptions(`The node ${String(name)}`, given, NODE);
  const options = given as NodeOptions<never, never, unknown>;
  const { effect = 'once', allowCycle = false, inputSchema = ANYTHING } = options;
  return Object.freeze({
    name,
    kind: 'node',
    tool: callTool(name, inputSchema, options),
    effect,
    allowCycle,
    ...defined({ undo: undoTool(name, options) }),
    ...failureEdges(options),
  });
}

function waitNode(name: string, options: AnyWait): GraphNode {
  const execute = waitCall(name, options);
  const { description, allowCycle = false } = options;
  const effect = 'pure';
  const tool = callTool(name, ANYTHING, { effect, execute, ...defined({ description }) });
  return Object.freeze({ name, kind: 'node', tool, effect, allowCycle, ...failureEdges(options) });
}

function toolNode(name: string, given: NodeTool<InputSchema, unknown>): GraphNode {
  return Object.freeze({ name, kind: 'node', ...ofTool('node', name, name, given) });
}

/**
 * What a node has of a tool. Whether the rest of it can be is asked as of every tool.
 * @param called the name that the tool gets.
 */
export function ofTool(
  kind: 'node' | 'map',
  name: string,
  called: string,
  options: NodeTool<InputSchema, unknown>,
): Pick<GraphNode, 'effect' | 'allowCycle' | 'onError' | 'onRejected'> & { readonly tool: Tool | AgentTool } {
  const { allowCycle = false, onError, onRejected, ...own } = options;
  if ('planner' in own) throw agentInPlace(kind, name, own);
  if ('kind' in own) throw nodeInPlace(kind, name, own);
  const given = ELSEWHERE.filter((option) => Reflect.get(own, option) !== undefined);
  if (given.length > 0) {
    const message = `The ${kind} ${name} is made from a tool with ${given.join(', ')}, which a node cannot have. Leave that out: ${kind}(${JSON.stringify(name)}, { effect, execute, undo }) names what the tool does, and undo(input, value, context) undoes it.`;
    throw new PilotageError('invalid_config', message);
  }
  const { effect = 'once' } = own;
  return { tool: { ...own, name: called }, effect, allowCycle, ...failureEdges(defined({ onError, onRejected })) };
}

/** Neither an agent nor a flow says by itself what its calls take, and what they do. */
function agentInPlace(kind: string, name: string, { name: own }: { readonly name?: unknown }): PilotageError {
  const message = `The ${kind} ${name} is given an agent, and takes a tool. Make one of it: agentTool(${own}, { description, effect }), or ${own}.asTool() of a flow.`;
  return new PilotageError('invalid_config', message);
}

/** A node has a name and edges of its own, and a map calls what a tool says. */
function nodeInPlace(kind: string, name: string, { name: own }: { readonly name?: unknown }): PilotageError {
  const message = `The ${kind} ${name} is given ${own}, which is a node of a flow, and takes a tool. Put the node into a flow, and give ${kind}(${JSON.stringify(name)}, thatFlow.asTool()).`;
  return new PilotageError('invalid_config', message);
}

/** `undo` of a tool names another tool of its agent, which a flow does not have; the others tell a planner that listens. */
const ELSEWHERE: readonly (keyof ToolOptions)[] = ['undo', 'background', 'handsOver'];

/** The tool of a function in a flow. */
export function callTool<Args, Raw, H extends HandleSet>(
  name: string,
  inputSchema: InputSchema,
  options: CallOptions<Args, Raw, H>,
): Tool {
  const { description = `The node ${String(name)} of a flow.`, outputSchema, effect = 'once', policy = {} } = options;
  const { needsApproval, costUsd, reconcile, poll, inDoubt, handles } = options;
  assertOptions(`The policy of the node ${String(name)}`, policy, POLICY);
  const { retries = 0, ...timing } = policy;
  const tool = {
    name,
    description,
    inputSchema,
    effect,
    retries,
    // A value that is not a function stays unchanged: the check of the flow reports it.
    execute: retries > 0 && typeof options.execute === 'function' ? tryingAgain(options) : options.execute,
    ...defined({ outputSchema, needsApproval, costUsd, reconcile, poll, handles, inDoubt }),
    ...timing,
    ...(options.undo === undefined
      ? {}
      : { undo: (args: Args, value: Raw) => ({ tool: undoOf(name), args: { args, value } }) }),
  };
  // The arguments are what the schema puts out: what `execute` takes, by the types of the builder.
  return tool as Tool;
}

/** A flow has a tool of its own for what undoes a node, as an agent has. */
export function undoTool<Args, Raw, H extends HandleSet>(
  name: string,
  options: CallOptions<Args, Raw, H>,
): Tool | undefined {
  const { undo, effect = 'once', policy = {} } = options;
  if (undo === undefined) return undefined;
  const { retries = 0, ...timing } = policy;
  const execute = ({ args, value }: { readonly args: Args; readonly value: Raw }, context: ToolContext): unknown =>
    undo.call(options, args, value, context);
  const description = `Undoes the node ${String(name)} of a flow.`;
  const tool = { name: undoOf(name), description, inputSchema: ANYTHING, effect, retries };
  return { ...tool, execute, ...timing } as unknown as Tool;
}

function undoOf(name: string): string {
  return `${String(name)}.undo`;
}

function tryingAgain<Args, Raw, H extends HandleSet>(
  options: Pick<CallOptions<Args, Raw, H>, 'execute'>,
): CallOptions<Args, Raw, H>['execute'] {
  return (args, context) => {
    try {
      const made = resultOf(options.execute(args, context), context) as ReturnType<typeof options.execute>;
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

/** An error that does not say whether trying again may help is taken as one that may pass. */
function mayPass(thrown: unknown): unknown {
  const said = Thrown.of(thrown);
  const { code, message, data, retryable, status } = said;
  const asksToWait = said.retryAfterMs(0) !== undefined;
  if (code === 'auth_required' || retryable !== undefined || status !== undefined || asksToWait) return thrown;
  return new ToolFailure(message, {
    retryable: true,
    cause: thrown,
    ...defined({ code, data }),
  });
}

/** The input of a join: the value of each parent, by the parent's name. */
export type JoinInput<Parents extends readonly GraphNode[]> = {
  [Parent in Parents[number] as Parent['name']]: OutOf<Parent>;
};

export interface JoinOptions<Parents extends readonly GraphNode[], Raw, H extends HandleSet = NoHandles>
  extends CallOptions<JoinInput<Parents>, Raw, H> {
  /** The parents, at least one. They are the only edges to the join. */
  readonly of: Parents;
}

const JOIN: OptionShape<JoinOptions<readonly GraphNode[], never>> = { ...CALL, of: 'list' };

/** A join runs when all its parents have ended with a value, and not if one of them was skipped. */
export function join<
  const Name extends string,
  const Parents extends readonly GraphNode[],
  const Raw,
  H extends HandleSet = NoHandles,
>(name: Name, options: JoinOptions<Parents, Raw, H>): Node<Name, never, AsJson<Raw>> {
  assertOptions(`The join ${String(name)}`, options, JOIN);
  const { of: parents, effect = 'once', allowCycle = false } = options;
  const tool = callTool(name, { type: 'object' }, options);
  const undo = defined({ undo: undoTool(name, options) });
  return Object.freeze({ name, kind: 'join', tool, effect, allowCycle, parents, ...undo, ...failureEdges(options) });
}
