/** Work in the background: the calls end with ids of tasks, the run goes on, and is told the results when they are there. */
import { agent, agentTool, createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const video = tool({
  name: 'video',
  description: 'Renders a video.',
  effect: 'keyed',
  inputSchema: { type: 'object', properties: { of: { type: 'string' } } },
  background: true,
  timeoutMs: 3_600_000,
  execute: async ({ of }) => `${of}.mp4`,
});
const writer = agent({
  name: 'writer',
  planner: ({ query }) => ({ kind: 'finish', reason: 'goal', payload: `A text about ${query}` }),
});
const write = agentTool(writer, { description: 'Writes a text.', background: true });

const runtime = createRuntime({
  planner: ({ trajectory: { count, background } }) => {
    if (count === 0) return { kind: 'call_tool', tool: 'video', args: { of: 'cats' } };
    if (count === 1) return { kind: 'call_tool', tool: 'writer', args: { input: 'cats' } };
    if (background.length < 2) return { kind: 'request_pause', reason: 'external_event' };
    const results = background.flatMap(({ group }) => group.members.map(({ end }) => end?.result ?? null));
    return { kind: 'finish', reason: 'goal', payload: results.toSorted() };
  },
  tools: [video, write],
  journal: memoryJournal(),
});
const run = await runtime.start('A video and a text about cats', { identity: local('ann', { run: 'cats' }) });
for await (const event of run.events({ overPauses: true })) {
  if (event.type === 'tool.completed') console.log(event.tool, event.outcome);
}
console.log(await run.payload());
await runtime.close();
