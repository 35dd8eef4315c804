/** A flow that stops in the middle, and goes on with what a person says. */
import { z } from 'zod';
import { edge, flow, node } from '../src/flow/index.ts';
import { createRuntime, local } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';

const draft = node('draft', { effect: 'pure', execute: (topic: string) => `A letter about ${topic}` });
const review = node('review', {
  effect: 'pure',
  execute: async (text: string, { ask }) => ({ text, said: await ask({ question: `${text}?`, schema: z.string() }) }),
});
const send = node('send', { effect: 'keyed', execute: (letter: { text: string; said: string }) => letter });
const edges = [edge(draft, review), edge(review, send)];
const letter = flow({ name: 'letter', inputSchema: z.string(), entry: draft, exit: send, edges });

const runtime = createRuntime({ agents: [letter], journal: memoryJournal() });
const run = await letter.start(runtime, 'the sea', { identity: local('ana', { run: 'letter' }) });
const asked = await run.result();
if (asked.status === 'paused') {
  console.log(asked.pauses[0]?.payload?.['message']);
  await run.send('Shorter, please.');
}
console.log(await run.payload());
await runtime.close();
