/** A journey of three bookings as a flow. It is cancelled while the last one waits, and what is booked is undone, the last first. */
import { z } from 'zod';
import { edge, flow, node } from '../src/flow/index.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const order = z.object({ customer: z.string(), flight: z.string(), car: z.string(), hotel: z.string() });
type Order = z.infer<typeof order>;
const booking = (what: 'flight' | 'car' | 'hotel') =>
  node(what, {
    effect: 'keyed',
    execute: async (given: Order, context) => {
      if (what === 'hotel') await context.ask({ question: 'With breakfast?' });
      console.log(`${what} ${given[what]} is booked`);
      return given;
    },
    undo: ({ customer }) => console.log(`${what} of ${customer} is cancelled`),
  });
const [flight, car, hotel] = [booking('flight'), booking('car'), booking('hotel')];
const edges = [edge(flight, car), edge(car, hotel)];
const journey = flow({ name: 'journey', inputSchema: order, entry: flight, exit: hotel, edges });

const runtime = createRuntime({ agents: [journey], journal: memoryJournal(), onFail: 'undo' });
const given = { customer: 'ana', flight: 'LH 12', car: 'van', hotel: 'Sol' };
const run = await journey.start(runtime, given, { identity: local('ana', { run: 'lisbon' }) });
if ((await run.result()).status === 'paused') await run.cancel();
const result = await run.result();
if (result.status === 'finished') console.log(result.reason);
await runtime.close();
