/** What a node that failed hands to the node to which a failure edge leads. */

import { failureKindOf, type Json, type JsonObject, literal } from '#core';
import { causeOf } from './error.ts';
import type { FailureKind, FlowGraph } from './graph.ts';
import type { Failure } from './progress.ts';

/** What it gets as its input. */
export interface FlowFailure {
  /** The name of the node that failed. */
  readonly node: string;
  /** Of its last error: of a rejection `tool_rejected`, or `approval_timeout` when nobody answered. */
  readonly code: string;
  readonly message: string;
  readonly data?: JsonObject;
  /** How often it was tried; 0 when it never was. */
  readonly attempts: number;
}

/** Where a failure leads; `undefined`: nowhere, and it is the flow's. */
export function wayOfFailure({ edges }: FlowGraph, { node, record }: Failure): string | undefined {
  const kind = failureKindOf(record.outcome);
  return edges.find(({ from, on }) => on !== undefined && from === node && on === kind)?.to;
}

/** The kinds of failures of a node that lead somewhere. */
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
    ...(data === undefined ? {} : { data }),
  };
  return literal({ ...told });
}
