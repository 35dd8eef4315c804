/** A supervisor: one agent hears what the others have found, and decides who goes on. Its limits hold for all whom it asks. */
import { z } from 'zod';
import { agent, agentTool, createRuntime, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const price = tool({
  name: 'price',
  description: 'The price of a share, in euros.',
  effect: 'read',
  inputSchema: z.object({ share: z.string() }),
  execute: () => 42,
});
const times = tool({
  name: 'times',
  description: 'Multiplies.',
  effect: 'pure',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a * b,
});
const asks = [{ calls: [{ tool: 'price', args: { share: 'ACME' } }] }, { text: 'ACME is at 42 euros.' }];
const counts = [{ calls: [{ tool: 'times', args: { a: 42, b: 100 } }] }, { text: 'It is 4,200 euros.' }];
const market = agent({ name: 'market', planner: react({ model: scriptedModel(asks) }), tools: [price] });
const sums = agent({ name: 'sums', planner: react({ model: scriptedModel(counts) }), tools: [times] });

const model = scriptedModel([
  { calls: [{ tool: 'market', args: { input: 'What is the price of ACME?' } }] },
  { calls: [{ tool: 'sums', args: { input: 'ACME is at 42 euros. What are 100 of them worth?' } }] },
  { text: 'Your 100 shares of ACME are worth 4,200 euros.' },
]);
const tools = [agentTool(market, { description: 'Knows prices.' }), agentTool(sums, { description: 'Knows sums.' })];
const supervisor = agent({ name: 'supervisor', planner: react({ model }), tools, limits: { tokens: 50_000 } });
const runtime = createRuntime({ agents: [supervisor], journal: memoryJournal() });
const run = await runtime.start('What are my 100 shares of ACME worth?');
for await (const event of run.events()) if (event.type === 'tool.completed') console.log(event.tool, event.outcome);
const result = await run.result();
if (result.status === 'finished') console.log(result.answer, result.usage.taskCalls, 'calls of others');
await runtime.close();
