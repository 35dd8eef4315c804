/** Joins: nodes that wait for all their parents, and get what these have given by their names. */
import { assertOptions, type OptionShape } from '#core';
import type { HandleSet, NoHandles } from '#tools';
import type { GraphNode } from './graph.ts';
import { CALL, type CallOptions, callTool, failureEdges } from './node.ts';
import type { AsJson, Node, OutOf } from './types.ts';

/** What a join gets: by the name of each parent the value that it gave. */
export type JoinInput<Parents extends readonly GraphNode[]> = {
  [Parent in Parents[number] as Parent['name']]: OutOf<Parent>;
};

export interface JoinOptions<Parents extends readonly GraphNode[], Raw, H extends HandleSet = NoHandles>
  extends CallOptions<JoinInput<Parents>, Raw, H> {
  /** At least one. The edges to the join are these, and no others can lead to it. */
  readonly of: Parents;
}

const JOIN: OptionShape<JoinOptions<readonly GraphNode[], never>> = { ...CALL, of: 'list' };

/** A node that runs when all its parents have ended with a value, and not if one of them was passed over. */
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
