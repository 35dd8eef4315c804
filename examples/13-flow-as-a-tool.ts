/**
 * A flow as a tool of an agent: the model calls it as any other, and a piece that a node inside gives reaches whoever reads the
 * agent's events. It takes the server of OPENAI_BASE_URL and the model of OPENAI_MODEL; without them a scripted server on loopback
 * answers. In a project of your own, import from 'pilotage' and its 'flow', 'journal/memory' and 'openai-compatible'.
 */
import { z } from 'zod';
import { edge, flow, map, node } from '../src/flow/index.ts';
import { createRuntime, local, react } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { openaiCompatible } from '../src/model/openai-compatible.ts';
import { openaiServer } from '../src/testing/index.ts';

const find = node('find', {
  effect: 'read',
  execute: ({ subject }: { subject: string }) => [`A survey of ${subject}`, `${subject}, revisited`],
});
const read = map('read', {
  effect: 'read',
  concurrency: 4,
  execute: async (title: string, { emit }) => {
    emit({ reading: title });
    return { title, pages: title.length };
  },
});
const sum = node('sum', {
  effect: 'pure',
  execute: (papers: { title: string; pages: number }[]) => ({
    papers: papers.length,
    pages: papers.reduce((pages, paper) => pages + paper.pages, 0),
  }),
});
const research = flow({
  name: 'research',
  description: 'Finds and reads what was published about a subject.',
  inputSchema: z.object({ subject: z.string() }),
  budget: { hops: 20, deadlineMs: 30_000 },
  entry: find,
  exit: sum,
  edges: [edge(find, read), edge(read, sum)],
});

const server = await openaiServer([
  { calls: [{ tool: 'research', args: { subject: 'heat pumps' } }] },
  { text: 'Two papers, 43 pages in all.' },
]);
const { OPENAI_BASE_URL: baseUrl = server.url, OPENAI_MODEL: name = 'scripted' } = process.env;
const planner = react({ model: openaiCompatible({ baseUrl, model: name }) });

const runtime = createRuntime({ planner, tools: [research.asTool()], journal: memoryJournal() });
const run = await runtime.start('How much is there to read about heat pumps?', { identity: local('ana') });
for await (const event of run.events()) {
  if (event.type === 'tool.chunk') console.log(event.tool, JSON.stringify(event.chunk));
  if (event.type === 'tool.completed') console.log(event.tool, JSON.stringify(event.outcome));
}
const result = await run.result();
if (result.status === 'finished') console.log(result.answer);
await runtime.close();
await server.close();
