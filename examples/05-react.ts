/**
 * A model as planner, one call a step. It takes the server of OPENAI_BASE_URL and the model of OPENAI_MODEL; without them a
 * scripted server on loopback answers. In a project of your own, import from 'pilotage' and its 'journal/memory',
 * 'openai-compatible' and 'planners/finish'.
 */
import { z } from 'zod';
import { createRuntime, local, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { finish } from '../src/planners/finish/finish.ts';
import { openaiServer } from '../src/testing/index.ts';

const order = tool({
  name: 'look_up_order',
  description: 'State and contents of an order.',
  effect: 'read',
  inputSchema: z.object({ order: z.string() }),
  execute: ({ order }) => ({ order, item: 'boots, size 41', state: 'delivered' }),
});
const stock = tool({
  name: 'in_stock',
  description: 'How many of an item are there.',
  effect: 'read',
  inputSchema: z.object({ item: z.string() }),
  execute: ({ item }) => ({ item, left: 3 }),
});

const server = await openaiServer([
  { calls: [{ tool: 'look_up_order', args: { order: 'A-17' } }] },
  // Written badly, and read all the same.
  { calls: [{ tool: 'in_stock', input: '{"item": "boots, size 42",}' }] },
  { text: 'Yes: your boots were delivered in 41, and three pairs in 42 are left.' },
]);
const { OPENAI_BASE_URL: baseUrl = server.url, OPENAI_MODEL: name = 'scripted' } = process.env;
const model = openaiCompatible({ baseUrl, model: name });

const planner = react({
  model,
  guidance: 'You work at the support desk of a shoe shop. Look things up before you answer.',
  fallback: finish({ reason: 'no_path', payload: 'A colleague will write to you.' }),
});

const runtime = createRuntime({ planner, tools: [order, stock], journal: memoryJournal(), limits: { steps: 10 } });
const run = await runtime.start('Can I swap the boots of order A-17 for size 42?', { identity: local('ana') });
for await (const event of run.events()) {
  if (event.type === 'planner.reply_repaired') console.log('repaired:', event.issues[0]?.message);
  if (event.type === 'tool.completed') console.log(event.tool, JSON.stringify(event.outcome));
}
const result = await run.result();
if (result.status === 'finished') console.log(result.answer);
await runtime.close();
await server.close();
