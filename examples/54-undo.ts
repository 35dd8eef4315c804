/** A journey of three bookings. It is cancelled at the third, and what is booked is undone, the last first: a saga. */
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const inputSchema = { type: 'object', properties: { what: { type: 'string' } } } as const;
const atThird = Promise.withResolvers<void>();
const book = tool({
  name: 'book',
  description: 'Books it.',
  effect: 'keyed',
  inputSchema,
  execute: async ({ what }, { signal }) => {
    console.log('book', what);
    if (what !== 'car') return { booking: `${what}-1` };
    atThird.resolve();
    // What is under way when the run is cancelled is heard out.
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return { booking: 'car-1' };
  },
  undo: (_, { booking }: { booking: string }) => ({ tool: 'cancel', args: { what: booking } }),
});
const cancel = tool({
  name: 'cancel',
  description: 'Cancels a booking.',
  effect: 'keyed',
  inputSchema,
  execute: ({ what }) => console.log('cancel', what),
});

const planner = ({ trajectory: { count } }: { trajectory: { count: number } }) =>
  ({ kind: 'call_tool', tool: 'book', args: { what: ['hotel', 'flight', 'car'][count] ?? '' } }) as const;
const runtime = createRuntime({ planner, tools: [book, cancel], journal: memoryJournal(), onFail: 'undo' });
const run = await runtime.start('A week in Lisbon', { identity: local('ana') });
await atThird.promise;
await run.cancel({ reason: 'We stay at home.' });
const result = await run.result();
if (result.status === 'finished') console.log(result.reason, JSON.stringify(result.metadata?.['undo']));
for (const { undoes, index } of (await run.state()).steps)
  if (undoes) console.log('step', index, 'undoes', undoes.step);
await runtime.close();
