/** A payment that is decided at once or later, by a webhook, which may come before anybody waits for it, and twice. */
import { z } from 'zod';
import { flow, node } from '../src/flow/index.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const intent = z.object({ id: z.string(), status: z.enum(['processing', 'succeeded', 'failed']) });
type Intent = z.infer<typeof intent>;
const webhook = (event: string, paid: Intent) => runtime.signal(`payment-${paid.id}`, paid, { id: event });

/** In the place of a payment service: its webhook is faster than its answer. */
async function charge(amount: number, key: string): Promise<Intent> {
  const id = `intent-${key.length}-${amount}`;
  for (const _ of ['sent', 'sent again']) await webhook(`event-${id}`, { id, status: 'succeeded' });
  return { id, status: 'processing' };
}

const pay = node('pay', {
  effect: 'keyed',
  execute: async ({ amount }: { amount: number }, context) => {
    const made = await context.once('charge', () => charge(amount, context.idempotencyKey));
    const paid =
      made.status === 'processing' ? await context.event({ key: `payment-${made.id}`, schema: intent }) : made;
    if (paid.status !== 'succeeded') throw new Error(`The payment ${paid.id} has failed.`);
    return { amount, ...paid };
  },
});
const inputSchema = z.object({ amount: z.int().positive() });
const payment = flow({ name: 'payment', inputSchema, entry: pay, exit: pay });
const runtime = createRuntime({ agents: [payment], journal: memoryJournal() });
const run = await payment.start(runtime, { amount: 90 }, { identity: local('ana', { run: 'payment' }) });
for await (const event of run.events()) if (event.type === 'call.waited') console.log('waited', event.ended);
console.log(await run.payload());
await runtime.close();
