/** Flows from a few words, for tests of what their graphs are. */
import { z } from 'zod';
import { type Edge, type Flow, type FlowFault, flow, type GraphNode, join, node, predicateRouter } from '#flow';
import { PilotageError } from '#pilotage';

export type Drawn =
  | { readonly kind: 'node'; readonly to?: readonly string[] }
  | { readonly kind: 'router'; readonly to: readonly string[] }
  | { readonly kind: 'join'; readonly of: readonly string[]; readonly to?: readonly string[] };

export interface Drawing {
  /** The first is the entry. The parents of a join come before it. */
  readonly nodes: Readonly<Record<string, Drawn>>;
  readonly exits: readonly string[];
  readonly allowCycle?: boolean;
  readonly hops?: number;
}

const any = z.any();

export function drawn({ nodes, exits, allowCycle = false, hops }: Drawing): Flow<unknown> {
  const made = new Map<string, GraphNode>();
  const of = (name: string): GraphNode => {
    const known = made.get(name);
    if (known === undefined) throw new Error(`${name} is not drawn yet`);
    return known;
  };
  const names = Object.entries(nodes);
  for (const [name, { kind }] of names) {
    if (kind === 'node')
      made.set(name, node(name, { inputSchema: any, effect: 'pure', execute: (x) => x, allowCycle }));
  }
  for (const [name, given] of names) {
    if (given.kind !== 'join') continue;
    made.set(name, join(name, { of: given.of.map(of), effect: 'pure', execute: (x) => x, allowCycle }));
  }
  const edges: Edge[] = [];
  for (const [name, { kind }] of names) {
    // What a router leads to, routers too, is given by edges, so that they may come in any order.
    const first = predicateRouter({ branches: [{ when: () => true, to: [...made.values()][0] as GraphNode }] });
    if (kind === 'router') made.set(name, { ...first.asNode(name, { allowCycle }), targets: [] });
  }
  for (const [name, { to = [] }] of names) for (const target of to) edges.push({ from: of(name), to: of(target) });
  const entry = of(names[0]?.[0] ?? '');
  const budget = hops === undefined ? {} : { hops };
  return flow({ name: 'drawn', inputSchema: any, entry, exit: exits.map(of), edges, budget });
}

/** What is wrong with a flow; nothing when it can be built. */
export function faultsOf(build: () => unknown): readonly FlowFault[] {
  try {
    build();
    return [];
  } catch (thrown) {
    if (!PilotageError.is(thrown, 'flow_invalid')) throw thrown;
    return thrown.data?.['faults'] as unknown as readonly FlowFault[];
  }
}
