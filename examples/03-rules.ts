/**
 * Rules as planner: the first that matches decides what becomes of a message to the support desk. In a project of your own, import
 * from 'pilotage' and its 'journal/memory' and 'planners/rules'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { rules } from '../src/planners/rules/rules.ts';

const page = tool({
  name: 'page_on_call',
  description: 'Wakes whoever is on call.',
  effect: 'keyed',
  inputSchema: z.object({ text: z.string() }),
  execute: () => 'Somebody has been woken and is looking at it.',
});
const file = tool({
  name: 'file_ticket',
  description: 'Puts a ticket into a queue.',
  effect: 'keyed',
  inputSchema: z.object({ text: z.string(), queue: z.string() }),
  execute: ({ queue }) => `We have passed this on to ${queue}.`,
});

const planner = rules({
  name: 'support-desk',
  rules: [
    {
      id: 'handled',
      match: ({ stepCount }) => stepCount > 0,
      toPlanStep: () => ({ id: 'answer', type: 'finish', input: { $from: 'handle' } }),
    },
    {
      id: 'outage',
      match: ({ goal = '' }) => /\b(down|outage)\b/i.test(goal),
      toPlanStep: ({ goal = '' }) => ({ id: 'handle', type: 'tool', toolId: 'page_on_call', input: { text: goal } }),
    },
    {
      id: 'everything-else',
      match: () => true,
      toPlanStep: ({ goal = '' }) => {
        const queue = /invoice|paid/i.test(goal) ? 'accounting' : 'support';
        return { id: 'handle', type: 'tool', toolId: 'file_ticket', input: { text: goal, queue } };
      },
    },
  ],
});

const runtime = createRuntime({ planner, tools: [page, file], journal: memoryJournal() });
for (const message of ['The shop is down!', 'I have paid twice.', 'How do I change my name?']) {
  const run = await runtime.start(message, { identity: local('desk') });
  const result = await run.result();
  const { steps } = await run.state();
  console.log(`${message} [${steps[0]?.provenance?.['rule']}] ${result.status === 'finished' ? result.answer : ''}`);
}
await runtime.close();
