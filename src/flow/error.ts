/**
 * Failures of a flow: from the outcome of a node to the node to which its failure edge leads, or else to the error of the
 * run, and from there to the caller.
 */

import {
  ceilingOf,
  defined,
  type ErrorCode,
  type ErrorData,
  type FailureKind,
  failureKindOf,
  type Identity,
  isJsonObject,
  type Json,
  type JsonObject,
  literal,
  PilotageError,
} from '#core';
import type { FlowGraph, GraphNode } from './graph.ts';
import type { Failure } from './progress.ts';

export interface FlowErrorParts {
  /** The identity of the run. */
  readonly identity: Identity;
  readonly flow: string;
  /** The node that failed. Absent when the run failed as a whole. */
  readonly node?: string;
  /** How often the node was tried; 0 when it was not. */
  readonly attempts: number;
  readonly data?: JsonObject;
  readonly cause?: PilotageError;
}

/** The error of a flow that gave no output. The node's own error is in `cause`, and changes no field here. */
export class FlowError extends PilotageError {
  override readonly name: string = 'FlowError';
  readonly identity: Identity;
  readonly flow: string;
  readonly node: string | undefined;
  readonly attempts: number;

  constructor(code: ErrorCode, message: string, { identity, flow, node, attempts, data, cause }: FlowErrorParts) {
    super(code, message, { data, cause });
    this.identity = identity;
    this.flow = flow;
    this.node = node;
    this.attempts = attempts;
  }
}

/** The input of the node to which a failure edge leads. */
export interface FlowFailure {
  /** The name of the node that failed. */
  readonly node: string;
  /** The code of its last error; for a rejection `tool_rejected`, or `approval_timeout` when nobody answered. */
  readonly code: string;
  readonly message: string;
  readonly data?: JsonObject;
  /** How often the node was tried; 0 when it was not. */
  readonly attempts: number;
}

/** The node to which a failure leads; `undefined` when the flow itself fails. */
export function wayOfFailure({ edges }: FlowGraph, { node, record }: Failure): string | undefined {
  const kind = failureKindOf(record.outcome);
  return edges.find(({ from, on }) => on !== undefined && from === node && on === kind)?.to;
}

/** The kinds of failures of a node for which it has a failure edge. */
export function toleratedOf({ edges }: FlowGraph, node: string): readonly FailureKind[] {
  return edges.flatMap(({ from, on }) => (from === node && on !== undefined ? [on] : []));
}

/** The arguments of the node to which the failure leads. */
export function inputOfFailure({ node, record, error }: Failure): Json {
  const { code, message, data } = causeOf(error);
  const told: FlowFailure = {
    node,
    code,
    message,
    attempts: record.attempts,
    ...defined({ data }),
  };
  return literal({ ...told });
}

/** The codes with which the run of a flow fails. */
const FLOW_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'node_timeout',
  'node_exception',
  'validation_failed',
  'flow_budget_exceeded',
  'route_not_found',
]);

const CODES: Readonly<Record<string, ErrorCode>> = {
  tool_timeout: 'node_timeout',
  tool_invalid_args: 'validation_failed',
  tool_invalid_output: 'validation_failed',
  unserializable: 'validation_failed',
  budget_exceeded: 'flow_budget_exceeded',
};

/** What a call that was tried more than once says of its last error. */
const RETRIED = 'tool_retries_exhausted';

/** The error that ends the run of a flow of which a node has failed. */
export function nodeFailed(
  flow: string,
  { name, kind }: Pick<GraphNode, 'name' | 'kind'>,
  failed: Failure,
): PilotageError {
  const cause = causeOf(failed.error);
  const { attempts } = failed.record;
  const { id } = failed;
  const { code, axis } = verdictOf(cause, kind);
  const times = attempts > 1 ? ` ${attempts} times` : '';
  const data: JsonObject = {
    flow,
    node: name,
    instance: id,
    attempts,
    cause: { ...cause },
    ...defined({ axis }),
  };
  const which = id === name ? name : `${name} (${id})`;
  const message =
    axis !== undefined && attempts === 0
      ? `The node ${which} of ${flow} was not started: ${roomFor(axis)}.`
      : `The node ${which} of ${flow} failed${times}: ${cause.message}`;
  return new PilotageError(code, message, { data });
}

/** What a call that was tried again says of its last error. */
function causeOf(error: ErrorData): ErrorData {
  const last = error.code === RETRIED ? asErrorData(error.data?.['cause']) : undefined;
  return last ?? error;
}

function roomFor(axis: string): string {
  return axis === 'deadline' ? 'the time of the flow is over' : `there is no room for it in the budget of ${axis}`;
}

interface Verdict {
  readonly code: ErrorCode;
  readonly axis?: string;
}

function verdictOf({ code, data }: ErrorData, kind: GraphNode['kind']): Verdict {
  const isRun = kind === 'flow' || kind === 'map' || kind === 'race';
  const ceiling = isRun ? ceilingOf(code) : undefined;
  if (ceiling !== undefined) return { code: 'flow_budget_exceeded', axis: ceiling };
  if ((isRun || kind === 'router') && FLOW_CODES.has(code)) {
    const axis = axisOf(data?.['axis']);
    return { code: code as ErrorCode, ...defined({ axis }) };
  }
  const mapped = Object.hasOwn(CODES, code) ? CODES[code] : undefined;
  if (mapped !== 'flow_budget_exceeded') return { code: mapped ?? 'node_exception' };
  return { code: mapped, axis: axisOf(data?.['axis']) ?? 'cost' };
}

/** A flow speaks of its calls as hops. */
function axisOf(axis: Json | undefined): string | undefined {
  if (typeof axis !== 'string') return undefined;
  return axis === 'calls' ? 'hops' : axis;
}

/** How the run of a flow has ended, as far as this room needs to know. */
export type FlowEnd =
  | { readonly status: 'failed'; readonly error: ErrorData }
  | { readonly status: 'finished'; readonly reason: string; readonly metadata?: JsonObject };

/** The error of a run that ended without an output. An error that is not a flow's is returned unchanged. */
export function flowError(end: FlowEnd, identity: Identity, flow: string): PilotageError {
  return end.status === 'failed' ? fromFailure(end.error, identity, flow) : fromFinish(end, identity, flow);
}

function fromFailure(error: ErrorData, identity: Identity, flow: string): PilotageError {
  if (!FLOW_CODES.has(error.code)) return PilotageError.fromData(error);
  const { node, attempts, cause } = error.data ?? {};
  const read = asErrorData(cause);
  return new FlowError(error.code as ErrorCode, error.message, {
    identity,
    flow,
    attempts: typeof attempts === 'number' ? attempts : 0,
    ...(typeof node === 'string' ? { node } : {}),
    ...defined({ data: error.data }),
    ...(read === undefined ? {} : { cause: PilotageError.fromData(read) }),
  });
}

function fromFinish(
  { reason, metadata }: Extract<FlowEnd, { status: 'finished' }>,
  identity: Identity,
  flow: string,
): PilotageError {
  const axis = ceilingOf(reason);
  const parts = { identity, flow, attempts: 0 };
  if (axis !== undefined) {
    const what = axis === 'deadline' ? 'its time is over' : `its budget of ${axis} is used up`;
    const message = `The flow ${flow} was ended: ${what}.`;
    return new FlowError('flow_budget_exceeded', message, { ...parts, data: { flow, axis } });
  }
  const data = { flow, reason, ...defined({ metadata }) };
  if (reason === 'cancelled') {
    return new FlowError('run_cancelled', `The run of the flow ${flow} was cancelled.`, { ...parts, data });
  }
  const message = `The run of the flow ${flow} was ended with ${reason}, and has no output.`;
  return new FlowError('node_exception', message, { ...parts, data });
}

function asErrorData(value: Json | undefined): ErrorData | undefined {
  if (!isJsonObject(value)) return undefined;
  const { code, message, data } = value;
  if (typeof code !== 'string' || typeof message !== 'string') return undefined;
  return isJsonObject(data) ? { code, message, data } : { code, message };
}
