/** An approval in a chat program: a webhook tells it of the question, and the button that somebody presses there answers it. */
import { createServer } from 'node:http';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { webhooks } from '../src/server/index.ts';

const refund = tool({
  name: 'refund',
  description: 'Pays an order back.',
  inputSchema: { type: 'object' },
  effect: 'once',
  needsApproval: true,
  execute: ({ order }) => `${String(order)} is paid back`,
});
const runtime = createRuntime({
  planner: ({ trajectory: { count } }) =>
    count === 0
      ? { kind: 'call_tool', tool: 'refund', args: { order: 'A-17' } }
      : { kind: 'finish', reason: 'goal', payload: 'Done.' },
  tools: [refund],
  journal: memoryJournal(),
});
// In the place of the chat program: it shows the question, and somebody presses the button. What it is sent is signed (standard-webhooks).
const chat = createServer(async (request, response) => {
  const { data } = JSON.parse(Buffer.concat(await request.toArray()).toString());
  console.log(`#refunds: ${data.event.reason}: ${data.event.payload.tool}? [yes] [no]`);
  response.end();
  // The token is the question's own: pressed twice, it is answered once.
  await runtime.run(data.run).approve(data.event.token);
});
await new Promise<void>((resolve) => chat.listen(0, '127.0.0.1', resolve));
const host = `127.0.0.1:${(chat.address() as { port: number }).port}`;
const hooks = webhooks({ runtime, allowHosts: [host], pollMs: 50 });
await hooks.put({ id: 'refunds', tenant: 'local', url: `http://${host}/`, events: ['pause.requested'] });
hooks.work();
const run = await runtime.start('Pay A-17 back', { identity: local('ana') });
for await (const event of run.events({ overPauses: true }))
  if (event.type === 'planner.finish') console.log(event.payload);
await runtime.close();
chat.close();
