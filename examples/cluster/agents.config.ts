/**
 * What the workers of the cluster carry out: an order in three steps, of which each takes a moment. It imports nothing but a type, so that it runs in
 * the image as it stands; in a project of your own the type comes from `pilotage/config`.
 */
import { setTimeout as after } from 'node:timers/promises';
import type { Config } from '../../src/config/index.ts';

type ConfiguredTool = Extract<NonNullable<Config['tools']>, readonly unknown[]>[number];

const step = (name: string): ConfiguredTool => ({
  name,
  description: `Does ${name} for an order.`,
  inputSchema: { type: 'object' },
  // Whoever provides it knows the key, so that a call which was cut off may be made again.
  effect: 'keyed',
  execute: async (_: unknown, { idempotencyKey }: { readonly idempotencyKey: string }) => {
    await after(50);
    return { done: name, key: idempotencyKey };
  },
});

const config: Config = {
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
};
export default config;
