/** A tool that asks in the middle of its work, and goes on with the answer in another process. */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const book = tool({
  name: 'book',
  description: 'Books a room.',
  effect: 'keyed',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }, context) => {
    const room = await context.once('hold', () => {
      console.log(`A room in ${city} is held.`);
      return 12;
    });
    const stay = await context.ask({ question: 'How many nights?', schema: z.object({ nights: z.int().min(1) }) });
    return { city, room, ...stay };
  },
});
const planner = (run: { trajectory: { count: number } }) =>
  run.trajectory.count === 0
    ? ({ kind: 'call_tool', tool: 'book', args: { city: 'Oslo' } } as const)
    : ({ kind: 'finish', reason: 'goal' } as const);

const journal = memoryJournal();
const first = createRuntime({ planner, tools: [book], journal });
const { id } = await first.start('A room in Oslo', { identity: local('ana', { run: 'oslo' }) });
const asked = await first.run(id).result();
await first.close();

const run = createRuntime({ planner, tools: [book], journal }).run(id);
if (asked.status === 'paused') {
  console.log(asked.pauses[0]?.payload?.['message'], asked.pauses[0]?.schema?.['required']);
  await run.answer(undefined, { kind: 'answer', value: { nights: 0 } }).catch((error) => console.log(error.code));
  await run.answer(undefined, { kind: 'answer', value: { nights: 2 } });
}
await run.result();
console.log((await run.state()).steps[0]?.calls[0]?.outcome);
