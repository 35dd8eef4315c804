/** The flow of the child processes: a map and a subflow, whose nodes write what they do into a file. */
import { setImmediate as turn } from 'node:timers/promises';
import { edge, flow, join, map, node, predicateRouter } from '#flow';
import type { Json } from '#pilotage';
import type { Effect } from '#pilotage/tools';
import type { Agent, Reconciled, ToolContext } from '#tools';
import { appendDurably, readLines } from '../kit/durable-lines.ts';

/** One line of the effects file: a node did its thing. */
export interface NodeEffect {
  /** Which of the processes it was. */
  readonly life: number;
  readonly node: string;
  readonly key: string;
}

export const ITEMS = 12;

export const readNodeEffects = (file: string): NodeEffect[] => readLines(file) as NodeEffect[];

/** What the flow gives for this number. */
export function resultFor(n: number): Json {
  const stamps = Array.from({ length: ITEMS }, (_, item) => n + item);
  return { total: stamps.reduce((sum, stamp) => sum + stamp, 0), paid: n, size: n % 2 === 0 ? 'even' : 'odd' };
}

/** @param say told of each effect, after it is on disk. */
export function stampFlow(file: string, life: number, say: (line: string) => void): Agent {
  /** A `once` node that was cut off looks in the file whether it did it. */
  const does = <Args, Out extends Json>(name: string, effect: Effect, give: (args: Args) => Out) => {
    const execute = async (args: Args, { idempotencyKey: key }: ToolContext): Promise<Out> => {
      await turn();
      appendDurably(file, JSON.stringify({ life, node: name, key } satisfies NodeEffect));
      say(`effect ${name} ${key}`);
      await turn();
      return give(args);
    };
    const reconcile = (args: Args, { idempotencyKey }: ToolContext): Reconciled =>
      readNodeEffects(file).some(({ key }) => key === idempotencyKey)
        ? { status: 'done', value: give(args) }
        : { status: 'not_done' };
    return effect === 'once' ? { effect, execute, reconcile } : { effect, execute };
  };
  const begin = node(
    'begin',
    does('begin', 'keyed', (n: number) => n),
  );
  const items = node(
    'items',
    does('items', 'pure', (n: number) => Array.from({ length: ITEMS }, (_, item) => n + item)),
  );
  const stamp = map('stamp', { concurrency: 3, ...does('stamp.item', 'once', (n: number) => n) });
  const pack = node(
    'pack',
    does('pack', 'keyed', (n: number) => n),
  );
  const pay = node(
    'pay',
    does('pay', 'once', (n: number) => ({ paid: n })),
  );
  const parcel = flow({ name: 'parcel', inputSchema: {}, entry: pack, exit: pay, edges: [edge(pack, pay)] }).asNode(
    'parcel',
  );
  const both = join('both', {
    of: [stamp, parcel],
    effect: 'pure',
    execute: ({ stamp: stamps, parcel: { paid } }) => ({ total: stamps.reduce((sum, each) => sum + each, 0), paid }),
  });
  const sized = (size: 'even' | 'odd') =>
    node(
      size,
      does(size, 'once', (sum: { total: number; paid: number }) => ({ ...sum, size })),
    );
  const [even, odd] = [sized('even'), sized('odd')];
  const bySize = predicateRouter<{ total: number; paid: number }>({
    branches: [{ when: ({ paid }) => paid % 2 === 0, to: even }],
    default: odd,
  });
  return flow({
    name: 'stamps',
    inputSchema: { type: 'number' },
    entry: begin,
    exit: [even, odd],
    edges: [edge(begin, items), edge(items, stamp), edge(begin, parcel as never), edge(both, bySize.asNode('by_size'))],
  });
}
