/** A tool under test: its process dies at every write and around every effect, and what it did is counted. */
import { z } from 'zod';
import { tool } from '../src/index.ts';
import { assertCrashProof, crashEverywhere } from '../src/testing/index.ts';

const crashes = await crashEverywhere({
  name: 'pay',
  query: 'Pay A-17',
  tools: (world) => [
    tool({
      name: 'pay',
      description: 'Pays.',
      effect: 'once',
      inputSchema: z.object({ order: z.string() }),
      execute: async ({ order }, context) => {
        await world.effect(context); // the moment at which the money is gone
        return { paid: order };
      },
      // The bank is asked by the key of the call: without this, the calls that a crash cut off would wait for somebody.
      reconcile: (_, context) =>
        world.count(context) > 0 ? { status: 'done', value: { paid: 'A-17' } } : { status: 'not_done' },
    }),
  ],
  planner: ({ trajectory }) => {
    if (trajectory.count === 0) return { kind: 'call_tool', tool: 'pay', args: { order: 'A-17' } };
    return { kind: 'finish', reason: 'goal', payload: 'Paid.' };
  },
});
assertCrashProof(crashes);
console.log(crashes.points.length > 10, crashes.violations);
