/**
 * A plan that runs while the model is still writing it: each line is checked and starts when what it waits for has ended. It takes
 * the server of OPENAI_BASE_URL and the model of OPENAI_MODEL; without them a scripted server on loopback answers. In a project of
 * your own, import from 'pilotage' and its 'journal/memory', 'openai-compatible' and 'planners/pipeline'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { pipeline } from '../src/planners/pipeline/index.ts';
import { openaiServer } from '../src/testing/index.ts';

const search = tool({
  name: 'search_papers',
  description: 'Titles of papers about a subject.',
  effect: 'read',
  inputSchema: z.object({ subject: z.string() }),
  execute: ({ subject }) => [`A survey of ${subject}`, `${subject} revisited`],
});
const summarise = tool({
  name: 'write_summary',
  description: 'A summary of the papers with these titles.',
  effect: 'read',
  inputSchema: z.object({ papers: z.array(z.array(z.string())) }),
  execute: ({ papers }) => `${papers.flat().length} papers were read.`,
});

const step = (line: object): string => JSON.stringify({ type: 'step', step: line });
const lines = [
  JSON.stringify({ type: 'reasoning', text: 'Two searches, then a summary of both.' }),
  step({ id: 'heat', type: 'tool', toolId: 'search_papers', input: { subject: 'heat pumps' }, after: [] }),
  step({ id: 'wind', type: 'tool', toolId: 'search_papers', input: { subject: 'wind turbines' }, after: [] }),
  step({ id: 'sum', type: 'tool', toolId: 'write_summary', input: { papers: [{ $from: 'heat' }, { $from: 'wind' }] } }),
  step({ id: 'done', type: 'finish', input: { $from: 'sum' } }),
  JSON.stringify({ type: 'finish' }),
];
const server = await openaiServer([{ text: lines.join('\n') }]);
const { OPENAI_BASE_URL: baseUrl = server.url, OPENAI_MODEL: name = 'scripted' } = process.env;

const planner = pipeline({ model: openaiCompatible({ baseUrl, model: name }), stream: true });

const runtime = createRuntime({ planner, tools: [search, summarise], journal: memoryJournal() });
const run = await runtime.start('What is new about heat pumps and wind turbines?', { identity: local('ana') });
for await (const event of run.events()) {
  if (event.type === 'plan.grown') console.log(event.done ? 'the plan is whole' : 'the plan grows');
  if (event.type === 'tool.completed') console.log(event.tool, JSON.stringify(event.outcome));
  if (event.type === 'planner.finish') console.log(event.reason, event.payload);
}
await runtime.close();
await server.close();
