/** Research by several at once: one reply asks an agent three times, side by side; one that fails does not stop the others. */
import { z } from 'zod';
import { agent, agentTool, createRuntime, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const PAGES = new Map(Object.entries({ Oslo: '717,000 people', Bergen: '294,000 people' }));
const page = tool({
  name: 'page',
  description: 'Reads the page of a city.',
  effect: 'read',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => PAGES.get(city) ?? Promise.reject(new Error(`There is no page of ${city}.`)),
});
const reader = agent({
  name: 'reader',
  tools: [page],
  planner: ({ query: city, trajectory }) => {
    const outcome = trajectory.step(0)?.calls[0]?.outcome;
    if (outcome === undefined) return { kind: 'call_tool', tool: 'page', args: { city } };
    return outcome.kind === 'value'
      ? { kind: 'finish', reason: 'goal', payload: outcome.value }
      : { kind: 'finish', reason: 'no_path' };
  },
});
const cities = ['Oslo', 'Bergen', 'Atlantis'];
const model = scriptedModel([
  { calls: cities.map((city) => ({ tool: 'reader', args: { input: city } })) },
  { text: 'Oslo is larger than Bergen. Nothing is known of Atlantis.' },
]);
const tools = [agentTool(reader, { description: 'Reads up on a city.' })];
const lead = agent({ name: 'lead', planner: react({ model }), tools });
const runtime = createRuntime({ agents: [lead], journal: memoryJournal() });
const run = await runtime.start(`Compare ${cities.join(', ')}.`);
for await (const event of run.events()) {
  if (event.type === 'tool.completed' || event.type === 'tool.failed') console.log(JSON.stringify(event.outcome));
}
const result = await run.result();
if (result.status === 'finished') console.log(result.answer);
await runtime.close();
