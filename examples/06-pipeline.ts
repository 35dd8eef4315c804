/**
 * A model writes the whole plan, which is checked before any of it runs; after a failure it plans the rest anew. It takes the
 * server of OPENAI_BASE_URL and the model of OPENAI_MODEL; without them a scripted server on loopback answers. In a project of
 * your own, import from 'pilotage' and its 'journal/memory', 'openai-compatible', 'planners/finish' and 'planners/pipeline'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { finish } from '../src/planners/finish/finish.ts';
import { pipeline } from '../src/planners/pipeline/index.ts';
import { openaiServer } from '../src/testing/index.ts';

const pick = tool({
  name: 'pick',
  description: 'Takes an item from shelf A or B.',
  effect: 'keyed',
  inputSchema: z.object({ item: z.string(), shelf: z.enum(['A', 'B']) }),
  execute: ({ item, shelf }) => {
    if (shelf === 'A') throw new Error('Shelf A is empty.');
    return { item, box: 'small' };
  },
});
const label = tool({
  name: 'print_label',
  description: 'Prints the label of an order.',
  effect: 'keyed',
  inputSchema: z.object({ order: z.string() }),
  execute: ({ order }) => ({ label: `label of ${order}` }),
});

const plan = (takeTool: string, shelf: string) => ({
  planId: 'ship',
  steps: [
    { id: 'take', type: 'tool', toolId: takeTool, input: { item: 'lamp', shelf } },
    { id: 'label', type: 'tool', toolId: 'print_label', input: { order: '1041' }, after: [] },
    { id: 'done', type: 'finish', input: { sent: { $from: 'take', path: '/item' }, with: { $from: 'label' } } },
  ],
});
const replies = [plan('fetch_item', 'A'), plan('pick', 'A'), plan('pick', 'B')];
const server = await openaiServer(replies.map((args) => ({ calls: [{ tool: 'submit_plan', args }] })));
const { OPENAI_BASE_URL: baseUrl = server.url, OPENAI_MODEL: name = 'scripted' } = process.env;

const planner = pipeline({
  model: openaiCompatible({ baseUrl, model: name }),
  fallback: finish({ reason: 'no_path', payload: 'No plan was found; somebody has to pack this order.' }),
});

const runtime = createRuntime({ planner, tools: [pick, label], journal: memoryJournal() });
const run = await runtime.start('Ship order 1041: one lamp', { identity: local('ana') });
for await (const event of run.events()) {
  if (event.type === 'plan.try') console.log(event.purpose, event.result, event.faults[0]?.message ?? '');
  if (event.type === 'tool.completed' || event.type === 'tool.failed') console.log(' ', event.type, event.tool);
  if (event.type === 'planner.finish') console.log(event.reason, event.payload);
}
await runtime.close();
await server.close();
