/** Customer service with a hand-over: the desk gives the customer to the agent for refunds, who asks on, and is answered through the desk's run. */
import { z } from 'zod';
import { agent, agentTool, createRuntime, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const refund = tool({
  name: 'refund',
  description: 'Pays an order back.',
  effect: 'once',
  inputSchema: z.object({ order: z.string() }),
  execute: ({ order }) => `${order} is paid back`,
});
const clerk = scriptedModel([
  { text: 'Which order is it?' },
  { calls: [{ tool: 'refund', args: { order: 'A-17' } }] },
  { calls: [{ tool: '_finish', args: { answer: 'Order A-17 is paid back.' } }] },
]);
const refunds = agent({ name: 'refunds', planner: react({ model: clerk, converse: true }), tools: [refund] });
const model = scriptedModel([
  { calls: [{ tool: 'refunds', args: { input: 'The customer wants money back for boots.' } }] },
  { text: 'Your boots, order A-17, are paid back. Anything else?' },
]);
const tools = [agentTool(refunds, { description: 'Takes over whoever wants money back.' })];
const desk = agent({ name: 'desk', planner: react({ model, converse: true }), tools });
const runtime = createRuntime({ agents: [desk], journal: memoryJournal() });
const run = await runtime.start('I want my money back for the boots.');
const asked = await run.result();
if (asked.status === 'paused') console.log('refunds asks:', asked.pauses[0]?.text);
await run.resume({ payload: { message: 'It is A-17.' } });
const answered = await run.result();
if (answered.status === 'paused') console.log('desk says:', answered.pauses[0]?.text);
await runtime.close();
