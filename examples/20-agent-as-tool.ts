/** An agent as a tool: the editor asks the writer in words, and gets an article of the form that the tool promises. */
import { z } from 'zod';
import { agent, agentTool, createRuntime, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const search = tool({
  name: 'search',
  description: 'Searches the archive.',
  effect: 'read',
  inputSchema: z.object({ words: z.string() }),
  execute: ({ words }) => [`${words}: sales doubled in 2025`],
});
const article = z.object({ title: z.string(), body: z.string() });
const writerModel = scriptedModel([
  { calls: [{ tool: 'search', args: { words: 'heat pumps' } }] },
  { text: '{"title": "Warm without gas", "body": "Sales of heat pumps doubled in 2025."}' },
]);
const planner = react({ model: writerModel, answerSchema: article });
const writer = agent({ name: 'writer', planner, tools: [search], limits: { steps: 10 } });
const write = agentTool(writer, { name: 'write', description: 'Writes an article.', outputSchema: article });

const model = scriptedModel([
  { calls: [{ tool: 'write', args: { input: 'A short article about heat pumps.' } }] },
  { text: 'The article "Warm without gas" is ready.' },
]);
const editor = agent({ name: 'editor', planner: react({ model }), tools: [write] });
const runtime = createRuntime({ agents: [editor], journal: memoryJournal() });
const run = await runtime.start('Have somebody write about heat pumps.');
for await (const event of run.events()) {
  if (event.type === 'tool.completed') console.log(event.tool, JSON.stringify(event.outcome));
}
const result = await run.result();
if (result.status === 'finished') console.log(result.answer);
await runtime.close();
