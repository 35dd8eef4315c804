/** Joins: nodes that wait for all their parents, and get what these have given by their names. */
import { assertOptions, type OptionShape } from '#core';
import type { HandleSet, NoHandles } from '#tools';
import type { GraphNode } from './graph.ts';
import { CALL, type CallOptions, callTool, failureEdges } from './node.ts';
import type { AsJson, Node, OutOf } from './types.ts';

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
  return Object.freeze({ name, kind: 'join', tool, effect, allowCycle, parents, ...failureEdges(options) });
}
