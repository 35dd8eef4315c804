/**
 * A tool that was written for the AI SDK: what it yields goes out piece by piece, the program gives its context, and what only Pilotage
 * knows of it is added. In a project of your own, import from 'pilotage' and its 'tools', 'journal/memory' and 'planners/deterministic'.
 */
import { tool } from 'ai';
import { z } from 'zod';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { deterministic } from '../src/planners/deterministic/index.ts';
import { withTools } from '../src/tools/index.ts';

const count = tool({
  description: 'Counts the orders of a shop.',
  inputSchema: z.object({ days: z.number() }),
  contextSchema: z.object({ shop: z.string() }),
  async *execute({ days }, { context: { shop } }) {
    for (let day = 1; day <= days; day += 1) yield `${shop}: day ${day} of ${days}`;
    yield { shop, orders: 7 * days };
  },
});

const tools = withTools(
  { count },
  {
    count: {
      effect: 'read',
      timeoutMs: 120_000,
      retries: 5,
      context: ({ identity }) => ({ shop: `the shop of ${identity.user}` }),
    },
  },
);

const planner = deterministic({
  name: 'counting',
  steps: [{ do: 'call', tool: 'count', args: { days: 2 }, once: true }],
});
const runtime = createRuntime({ planner, tools, journal: memoryJournal() });
const run = await runtime.start('How many orders?', { identity: local('ana') });
for await (const event of run.events()) {
  if (event.type === 'tool.chunk') console.log(event.index, JSON.stringify(event.chunk));
  if (event.type === 'tool.completed') console.log(JSON.stringify(event.outcome));
}
await runtime.close();
