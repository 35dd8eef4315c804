/**
 * A live handle: a shop's page that the calls of a run share. The process goes away while somebody is asked, and the page with it;
 * no empty cart is ordered. In a project of your own, import from 'pilotage' and its 'journal/memory' and 'planner'.
 */
import { z } from 'zod';
import { createRuntime, handle, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import type { Decision, RunView } from '../src/planners/index.ts';

const page = handle({
  name: 'page',
  onLost: 'fail',
  keepMs: 10 * 60_000,
  open: async (): Promise<{ cart: string[] }> => ({ cart: [] }),
  close: ({ cart }, { reason }) => console.log(`closed with ${cart.length} in the cart: ${reason}`),
});
const add = tool({
  name: 'add',
  description: 'Puts an item into the cart.',
  effect: 'read', // of the world: the cart is gone with the page
  inputSchema: z.object({ item: z.string() }),
  handles: { page },
  execute: ({ item }, { handles }) => handles.page.cart.push(item),
});
const order = tool({
  name: 'order',
  description: 'Orders what is in the cart.',
  effect: 'once',
  needsApproval: true,
  inputSchema: z.object({}),
  handles: { page },
  execute: (_, { handles }) => ({ ordered: [...handles.page.cart] }),
});
/** Two items, and the order; all of it again when the page was lost. */
function shop({ trajectory: { steps } }: RunView): Decision {
  const lost = steps.findLastIndex(({ calls }) =>
    calls.some(({ outcome }) => outcome.kind === 'error' && outcome.error.code === 'handle_lost'),
  );
  const since = steps.length - lost - 1;
  const item = ['lamp', 'bulb'][since];
  if (item !== undefined) return { kind: 'call_tool', tool: 'add', args: { item } };
  if (since === 2) return { kind: 'call_tool', tool: 'order', args: {} };
  return { kind: 'finish', reason: 'goal' };
}

const journal = memoryJournal();
const first = createRuntime({ planner: shop, tools: [add, order], journal });
const { id } = await first.start('A lamp that works', { identity: local('ana') });
console.log((await first.run(id).result()).status);
await first.close(); // as a restart does, or a crash

const second = createRuntime({ planner: shop, tools: [add, order], journal });
const run = second.run(id);
for (let result = await run.result(); result.status === 'paused'; result = await run.result()) await run.approve();
for await (const event of run.events()) {
  if (event.type === 'handle.lost' || event.type === 'handle.opened') console.log(event.type, event.opening);
  if (event.type === 'tool.completed' || event.type === 'tool.failed')
    console.log(event.tool, JSON.stringify(event.outcome));
}
await second.close();
