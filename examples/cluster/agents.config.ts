/** What the workers of the cluster carry out: an order in three steps, of which each takes a moment. */
import { setTimeout as after } from 'node:timers/promises';
import { type Config, defineConfig } from '../../src/config/index.ts';
import { tool } from '../../src/index.ts';

const step = (name: string) =>
  tool({
    name,
    description: `Does ${name} for an order.`,
    inputSchema: { type: 'object' },
    // Whoever provides it knows the key, so that a call which was cut off may be made again.
    effect: 'keyed',
    execute: async (_, { idempotencyKey }) => {
      await after(50);
      return { done: name, key: idempotencyKey };
    },
  });

const config: Config = defineConfig({
  planner: {
    driver: 'deterministic',
    name: 'orders',
    steps: [
      { do: 'call', tool: 'reserve', args: {}, once: true },
      { do: 'call', tool: 'charge', args: {}, once: true },
      { do: 'call', tool: 'ship', args: {}, once: true },
      { do: 'finish', reason: 'goal' },
    ],
  },
  tools: ['reserve', 'charge', 'ship'].map(step),
});
export default config;
