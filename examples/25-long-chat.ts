/** A conversation of 1,000 turns in one run: each message is heard once and answered, and a limit of steps is for one turn. */
import { createRuntime, react } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const TURNS = 1_000;
const model = scriptedModel(
  ({ prompt }) => ({ text: `You have written ${prompt.filter(({ role }) => role === 'user').length} times.` }),
  { record: false },
);
const planner = react({ model, converse: true });
const runtime = createRuntime({ planner, journal: memoryJournal(), limits: { steps: 5 } });
const run = await runtime.start('Message 1');
for (let turn = 2; turn <= TURNS; turn += 1) {
  await run.result();
  await run.resume({ payload: { message: `Message ${turn}` } });
}
const result = await run.result();
if (result.status === 'paused') console.log(result.pauses[0]?.text);
console.log(`${result.usage.steps} replies`);
await runtime.close();
