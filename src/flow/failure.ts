/** The failure of a node, which the node gets to which a failure edge leads. */

import { defined, failureKindOf, type Json, type JsonObject, literal } from '#core';
import { causeOf } from './error.ts';
import type { FailureKind, FlowGraph } from './graph.ts';
import type { Failure } from './progress.ts';

/** The input of that node. */
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

/** The arguments of the node to which it leads. */
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
