/** The types of flows: nodes whose shapes do not fit cannot be connected. Nothing here exists at run time. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Json, JsonObject } from '#core';
import type { Agent, AgentLimits, AgentTool, AnyTool, InputSchema, ValueCheck } from '#tools';
import type { FlowFailure } from './error.ts';
import type { FlowGraph, GraphNode, Topology } from './graph.ts';
import type { FlowOptions, FlowRun, FlowRuntime } from './run.ts';

declare const TAKES: unique symbol;
declare const GIVES: unique symbol;

/** A node that takes values of `In`. A plain `GraphNode`, whose types are unknown, takes anything. */
export interface Takes<In> extends GraphNode {
  readonly [TAKES]?: (value: In) => void;
}

/** A node that gives values of `Out`. */
export interface Gives<Out> extends GraphNode {
  readonly [GIVES]?: Out;
}

export interface Node<Name extends string, In, Out> extends Takes<In>, Gives<Out> {
  readonly name: Name;
}

/** The type that a node takes, before its schema's defaults and transforms. */
export type InOf<N> = N extends { readonly [TAKES]?: (value: infer In) => void } ? In : unknown;

/** The type that a node gives, as the next node gets it: JSON. */
export type OutOf<N> = N extends { readonly [GIVES]?: infer Out } ? Out : unknown;

/** A Standard Schema that takes `In` and puts out `Out`, or a plain JSON Schema, which says nothing to the types. */
export type Schema<In, Out> = StandardSchemaV1<In, Out> | JsonObject;

/** A value as it is after it was written as JSON: what a node returns, as others get it. */
export type AsJson<T> = [Json] extends [T]
  ? T
  : T extends void
    ? null
    : T extends string | number | boolean | null
      ? T
      : T extends Uint8Array
        ? string
        : T extends { toJSON(): infer Written }
          ? AsJson<Written>
          : T extends object
            ? { -readonly [Key in keyof T]: FieldAsJson<T[Key]> }
            : never;

/** A field that is undefined is left out, as an optional one is. */
type FieldAsJson<T> = Json extends T ? T : T extends undefined ? undefined : AsJson<T>;

/** One exit or several. */
export type Exits<Out> = Gives<Out> | readonly Gives<Out>[];
export type ExitsOut<E> = E extends readonly (infer N)[] ? OutOf<N> : OutOf<E>;

/** Options of a flow as a node; they mean the same as for a node that runs a function. */
export interface SubflowOptions {
  readonly allowCycle?: boolean;
  readonly onError?: Takes<FlowFailure>;
  readonly onRejected?: Takes<FlowFailure>;
}

/** A flow as a tool. The tool has the flow's schemas, and the strongest effect of the flow's nodes. */
export type FlowToolOptions = Partial<Omit<AgentTool, 'inputSchema' | 'outputSchema' | 'effect' | 'agent'>>;

/**
 * A flow. A flow is an agent: a runtime knows it when it is among the runtime's `agents`, or when a tool is the flow.
 * `In` is what it takes, `Out` what its exit gives, `Read` what `run` gives: after the transforms of `outputSchema`.
 */
export interface Flow<In = never, Out = unknown, Read = Out> extends Agent {
  readonly tools: readonly AnyTool[];
  readonly description: string;
  readonly inputSchema: InputSchema;
  readonly outputSchema?: InputSchema;
  readonly graph: FlowGraph;
  readonly limits: AgentLimits;
  readonly checkInput: ValueCheck;
  readonly checkOutput?: ValueCheck;
  /** A node that runs the flow, as a task. Its default name is the flow's. */
  asNode<const Name extends string = string>(name?: Name, options?: SubflowOptions): Node<Name, In, Out>;
  asTool(options?: FlowToolOptions): AgentTool;
  /**
   * Starts a run of the flow, which goes on by itself.
   * @returns the runtime's handle of the run.
   * @throws FlowError `validation_failed` for an input that does not fit; nothing is stored then.
   */
  start<Run>(runtime: FlowRuntime<Run>, input: In, options: FlowOptions): Promise<Run>;
  /**
   * Runs the flow to its end.
   * @throws FlowError that says why the flow gave no output; `run_paused` when somebody has to answer first.
   */
  run(runtime: FlowRuntime<FlowRun>, input: In, options: FlowOptions): Promise<Read>;
  topology(): Topology;
  /** The text of a Mermaid flowchart. */
  mermaid(): string;
}
