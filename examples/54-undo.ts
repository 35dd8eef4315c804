/** A journey of three bookings. It is cancelled while the third one waits for an answer, and what is booked is undone, the last first: a saga. */
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const inputSchema = { type: 'object', properties: { what: { type: 'string' } } } as const;
const book = tool({
  name: 'book',
  description: 'Books it.',
  effect: 'keyed',
  inputSchema,
  execute: async ({ what }, context) => {
    if (what === 'car') await context.ask({ question: 'Who drives?' });
    console.log('book', what);
    return { booking: `${what}-1` };
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
const run = await runtime.start('A week in Lisbon', { identity: local('ana', { run: 'lisbon' }) });
const asked = await run.result();
if (asked.status === 'paused') await run.cancel({ reason: 'We stay at home.' });
const result = await run.result();
if (result.status === 'finished') console.log(result.reason, JSON.stringify(result.metadata?.['undo']));
for (const { undoes, index } of (await run.state()).steps)
  if (undoes) console.log('step', index, 'undoes', undoes.step);
await runtime.close();
