/** The graph of 20 nodes as a flow, on a runtime with its journal in memory. */
import { edge, type Flow, flow, join, node, predicateRouter } from '#flow';
import { memoryJournal } from '#journal';
import { createRuntime, local } from '#pilotage';
import { addOne, addUp, FAN, HEAD, isEven, TAIL } from './flow-graph.ts';

const NUMBER = { type: 'number' } as const;

const plus = (name: string) => node(name, { effect: 'pure', execute: (value: number) => addOne(value) });

function twentyNodes(): Flow<number, number> {
  const head = HEAD.map(plus);
  const fan = FAN.map(plus);
  const [even, odd] = [plus('even'), plus('odd')];
  const tail = TAIL.map(plus);
  const joined = join('join', { of: fan, effect: 'pure', execute: (parts) => addUp(Object.values(parts)) });
  const parity = predicateRouter({ branches: [{ when: isEven, to: even }], default: odd }).asNode('parity');
  const chain = (nodes: typeof head) => nodes.slice(1).map((to, index) => edge(nodes[index] as typeof to, to));
  const [first, last, next] = [head[0], tail.at(-1), tail[0]] as [typeof even, typeof even, typeof even];
  const fork = head.at(-1) as typeof even;
  const edges = [
    ...chain(head),
    ...fan.map((branch) => edge(fork, branch)),
    edge(joined, parity),
    edge(even, next),
    edge(odd, next),
    ...chain(tail),
  ];
  return flow({ name: 'twenty', inputSchema: NUMBER, outputSchema: NUMBER, entry: first, exit: last, edges }) as Flow<
    number,
    number
  >;
}

const made = twentyNodes();

/** Runs the flow on a runtime of its own, which is left to the collector with all that its journal holds. */
export function ourFlow(): (input: number) => Promise<number> {
  const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
  return (input) => made.run(runtime, input, { identity: local('bench') });
}
