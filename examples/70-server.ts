/** Our own API: a server, who may ask, and a client that starts a run, answers its question and reads its events. */
import { createClient } from '../src/client/index.ts';
import { agent, createRuntime, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { api, bearerKeys, createHandler, newBearerKey, serve } from '../src/server/index.ts';

const refund = tool({
  name: 'refund',
  description: 'Pays an order back.',
  inputSchema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
  effect: 'once',
  needsApproval: true,
  execute: ({ amount }) => ({ paidBack: amount }),
});
const desk = agent({
  name: 'desk',
  planner: ({ trajectory }) =>
    trajectory.count === 0
      ? { kind: 'call_tool', tool: 'refund', args: { amount: 120 } }
      : { kind: 'finish', reason: 'goal', payload: 'Paid back.' },
  tools: [refund],
});
const runtime = createRuntime({ agents: [desk], journal: memoryJournal() });
runtime.work();

const { key, sha256 } = newBearerKey(); // the key is for the client, its hash for the list
const authenticate = bearerKeys({ keys: [{ sha256, tenant: 'shop', user: 'ana' }] });
const served = await serve(createHandler({ runtime, parts: [api()], authenticate }), { port: 0 });

const client = createClient({ url: served.url, headers: { authorization: `Bearer ${key}` } });
const run = await client.runs.start('Pay A-17 back', { labels: { order: 'A-17' } });
console.log((await run.result()).status);
const [asked] = (await client.waiting()).items;
console.log(asked?.tool, asked?.kinds);
await run.approve(asked?.token, { args: { amount: 90 } });
for await (const event of run.events()) if (event.type === 'tool.completed') console.log(event.type, event.tool);
const result = await run.result();
if (result.status === 'finished') console.log(result.answer);
await served.close();
await runtime.close();
