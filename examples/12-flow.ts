/**
 * A flow on its own: nodes, a router with two ways that meet again, and a join. It prints what becomes of two orders, and the
 * graph as Mermaid text. In a project of your own, import from 'pilotage' and its 'flow' and 'journal/memory'.
 */
import { z } from 'zod';
import { edge, FlowError, flow, join, node, predicateRouter } from '../src/flow/index.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const order = z.object({ item: z.string(), grams: z.number().positive(), country: z.string().default('NO') });
type Order = z.infer<typeof order>;

const read = node('read', { effect: 'pure', execute: (given: Order) => ({ ...given, item: given.item.trim() }) });
const stock = node('stock', {
  effect: 'read',
  execute: ({ item }: Order) => {
    if (item === 'anvil') throw new Error('No such item.');
    return { shelf: 'B', left: 12 };
  },
});
const byVan = ({ grams }: Order) => ({ by: 'van', price: 40 + grams / 100 });
const inland = node('inland', { effect: 'read', execute: byVan });
const abroad = node('abroad', {
  effect: 'read',
  execute: ({ grams }: Order) => ({ by: 'air', price: 90 + grams / 20 }),
  policy: { timeoutMs: 2_000, retries: 2 },
});

const byCountry = predicateRouter<Order>({
  branches: [{ when: ({ country }) => country === 'NO', to: inland }],
  default: abroad,
}).asNode('by_country');
// It is reached by whichever way the router has picked.
type Way = { by: string; price: number };
const label = node('label', { effect: 'pure', execute: ({ by, price }: Way) => `by ${by} for ${price}` });
// It waits for both of its parents.
const parcel = join('parcel', {
  of: [stock, label],
  effect: 'pure',
  execute: (parents) => `${parents.label}, from shelf ${parents.stock.shelf}`,
});

const ship = flow({
  name: 'ship',
  inputSchema: order,
  outputSchema: z.string(),
  entry: read,
  exit: parcel,
  edges: [edge(read, stock), edge(read, byCountry), edge(inland, label), edge(abroad, label)],
});

const runtime = createRuntime({ agents: [ship], journal: memoryJournal() });
const orders = [{ grams: 700 }, { grams: 700, country: 'IS' }, { grams: 9_000, item: 'anvil' }];
for (const each of orders) {
  // A fresh identity each time: it names the run.
  const sent = ship.run(runtime, { item: 'lamp', ...each }, { identity: local('ana') });
  console.log(await sent.catch((error) => (error instanceof FlowError ? `${error.code}: ${error.message}` : error)));
}
console.log(ship.mermaid());
await runtime.close();
