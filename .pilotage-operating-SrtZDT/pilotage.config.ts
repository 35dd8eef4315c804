/**
 * A refund that somebody has to approve: `docs/operating.md` walks through it. In a project of your own, import from 'pilotage'
 * and its 'config', 'planners/deterministic' and 'planner'.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { type Config, defineConfig } from 'file:///work/live/node_modules/.cache/pilotage-built-ED2mXM/src/config/index.js';
import { tool } from 'file:///work/live/node_modules/.cache/pilotage-built-ED2mXM/src/index.js';
import { lastResult, lastStep } from 'file:///work/live/node_modules/.cache/pilotage-built-ED2mXM/src/planners/deterministic/index.js';
import type { RunView } from 'file:///work/live/node_modules/.cache/pilotage-built-ED2mXM/src/planners/index.js';

const lookUp = tool({
  name: 'look_up_order',
  description: 'What was paid for an order.',
  inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  effect: 'read',
  execute: ({ order }) => ({ order, paid: 120 }),
});

const refund = tool({
  name: 'refund',
  description: 'Pays money back.',
  inputSchema: {
    type: 'object',
    properties: { order: { type: 'string' }, amount: { type: 'number' } },
    required: ['order', 'amount'],
  },
  // Never made a second time, whatever happens to the process.
  effect: 'once',
  needsApproval: { reason: 'money leaves the account' },
  execute: ({ order, amount }) => {
    appendFileSync('.pilotage/refunds.txt', `${order} ${amount}\n`);
    if (process.env['PULL_THE_PLUG'] === 'refund') process.kill(process.pid, 'SIGKILL');
    return { order, paid_back: amount };
  },
});

const askCourier = tool({
  name: 'ask_courier',
  description: 'Whether the parcel was damaged.',
  inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  effect: 'read',
  execute: async ({ order }) => {
    // The courier takes his time; the process may be killed while the refund waits for approval.
    await after(1_000);
    if (process.env['PULL_THE_PLUG'] !== undefined) process.kill(process.pid, 'SIGKILL');
    return { order, damaged: true };
  },
});

const config: Config = defineConfig({
  planner: {
    driver: 'deterministic',
    name: 'refunds',
    steps: [
      { do: 'call', tool: 'look_up_order', args: { order: 'A-17' }, once: true },
      {
        do: 'parallel',
        branches: (run) => [
          { tool: 'refund', args: { order: 'A-17', amount: paidIn(lastResult(run, 'look_up_order')) } },
          { tool: 'ask_courier', args: { order: 'A-17' } },
        ],
        once: true,
      },
      { do: 'finish', reason: 'goal', payload: report },
    ],
  },
  tools: [lookUp, refund, askCourier],
});

export default config;

function report(run: RunView): string {
  const outcome = lastStep(run, '<parallel>')?.calls[0]?.outcome;
  return outcome?.kind === 'value' ? `Paid back: ${JSON.stringify(outcome.value)}` : 'Nothing was paid back.';
}

function paidIn(order: unknown): number {
  return typeof order === 'object' && order !== null && 'paid' in order ? Number(order.paid) : 0;
}
