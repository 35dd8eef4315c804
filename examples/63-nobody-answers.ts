/** An agent that asks a person about large claims, and is told to decide itself when nobody has answered in time. */
import { z } from 'zod';
import { createRuntime, local, PilotageError, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const review = tool({
  name: 'human_approval',
  description: 'Asks a person. For claims of more than 1,000 dollars.',
  effect: 'read',
  inputSchema: z.object({ claim: z.string() }),
  execute: ({ claim }, context) =>
    context.ask({ question: `May it be paid? ${claim}`, schema: z.boolean(), expiresInMs: 50 }).catch((error) => {
      if (PilotageError.is(error, 'question_expired')) return 'Nobody has answered: evaluate it yourself.';
      throw error;
    }),
});
const model = scriptedModel(({ prompt }) =>
  prompt.at(-1)?.role === 'tool'
    ? { text: 'Not approved: it is to be looked at again.' }
    : { calls: [{ tool: 'human_approval', args: { claim: 'A broken leg, 3,000 dollars' } }] },
);
const runtime = createRuntime({ planner: react({ model }), tools: [review], journal: memoryJournal() });
const run = await runtime.start('My bill of 3,000 dollars', { identity: local('ana', { run: 'claim' }) });
for await (const event of run.events({ overPauses: true }))
  if (event.type === 'tool.completed') console.log(event.outcome);
console.log(await run.payload());
await runtime.close();
