/**
 * A person changes a plan that is under way: the run is paused, a waiting step gets other arguments, another is left out. In a
 * project of your own, import from 'pilotage' and its 'journal/memory' and 'planners/graph'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { graph } from '../src/planners/graph/index.ts';

const count = tool({
  name: 'count_stock',
  description: 'Counts what is on the shelf.',
  effect: 'read',
  inputSchema: z.object({ item: z.string() }),
  // So few are odd: somebody is to look before more is ordered.
  execute: async ({ item }, { identity }) => {
    await runtime.run(identity.run).pause();
    return { item, left: 2 };
  },
});
const order = tool({
  name: 'order_goods',
  description: 'Orders from a supplier.',
  effect: 'keyed',
  inputSchema: z.object({ item: z.string(), pieces: z.number() }),
  execute: ({ item, pieces }) => `${pieces} × ${item}`,
});
const write = tool({
  name: 'write_to_customers',
  description: 'Tells those who wait.',
  effect: 'keyed',
  inputSchema: z.object({ text: z.string() }),
  execute: () => 'written',
});

const few = z.object({ pieces: z.number().max(100) });
const planner = graph({
  plan: {
    steps: [
      { id: 'count', type: 'tool', toolId: 'count_stock', input: { item: 'lamp' } },
      { id: 'order', type: 'tool', toolId: 'order_goods', input: { item: 'lamp', pieces: 80 }, after: ['count'] },
      { id: 'write', type: 'tool', toolId: 'write_to_customers', input: { text: 'Soon!' }, after: ['count'] },
    ],
  },
});
const runtime = createRuntime({
  planner,
  tools: [count, order, write],
  journal: memoryJournal(),
  // Of the plan, before any of it runs, and of each call: also with what a person has changed.
  policy: ({ tool, args }) =>
    tool !== 'order_goods' || few.safeParse(args).success ? 'allow' : { deny: 'At most 100 pieces.' },
});
const run = await runtime.start('Fill the shelf', { identity: local('ana') });
console.log((await run.result()).status);
await run.resume({ nodes: { order: { args: { item: 'lamp', pieces: 40 } }, write: { skip: true } } });
for await (const event of run.events()) if ('outcome' in event) console.log(JSON.stringify(event.outcome));
const result = await run.result();
console.log(result.status, result.status === 'finished' ? result.reason : '');
await runtime.close();
