/** A webhook before anybody waits: it is kept, comes once, and goes to the run that waits for its key. */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const checkout = tool({
  name: 'checkout',
  description: 'Sends an order out when it is paid.',
  effect: 'keyed',
  inputSchema: z.object({ order: z.int() }),
  execute: async ({ order }, context) => {
    const { paid } = await context.event({ key: `order-${order}`, schema: z.object({ paid: z.int() }) });
    return `Order ${order} is paid (${paid}), and on its way.`;
  },
});
const runtime = createRuntime({
  planner: ({ trajectory: { count }, query }) =>
    count > 0
      ? { kind: 'finish', reason: 'goal' }
      : { kind: 'call_tool', tool: 'checkout', args: { order: Number(query) } },
  tools: [checkout],
  journal: memoryJournal(),
});
for (const id of ['hook-1', 'hook-1']) {
  const { isNew, kept } = await runtime.signal('order-17', { paid: 90 }, { id });
  console.log(isNew ? 'new' : 'known', kept ? 'kept' : '');
}
const started = ['17', '18'].map((n) => runtime.start(n, { identity: local('ann', { run: `order-${n}` }) }));
const orders = await Promise.all(started);
await orders[0]?.result();
for await (const { type } of orders[1]?.events() ?? []) if (type === 'call.waiting') break;
for (const { run, for: what, key } of await runtime.waiting()) console.log(what, key, run === orders[1]?.id);
await runtime.signal('order-18', 'paid').catch(({ code }) => console.log(code));
console.log('told', (await runtime.signal('order-18', { paid: 20 }, { id: 'hook-2' })).runs.length);
for (const order of orders) {
  await order.result();
  console.log((await order.state()).steps[0]?.calls[0]?.outcome);
}
await runtime.close();
