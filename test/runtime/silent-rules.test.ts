/** Whoever is asked about a call and never answers holds no run for ever. */
import { expect, it } from 'vitest';
import type { ToolPolicy } from '#core';
import { graph } from '#planners/graph';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const never = (): Promise<never> => new Promise(() => {});
const SAYS = 'it gave no answer within 30000 ms';

it('a policy that never answers allows nothing', async () => {
  const { runtime, clock } = world({ planner: script(call('pay')), tools: [make('pay', () => 'paid')], policy: never });
  const run = await start({ runtime });
  await advanceUntil(clock, async () => (await run.state()).ending !== null);
  expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
    error: { code: 'policy_refused', message: expect.stringContaining(SAYS) },
  });
});

it('nor does one that is asked about a whole plan', async () => {
  const policy: ToolPolicy = never;
  const planner = graph({ plan: { steps: [{ id: 'a', type: 'tool', toolId: 'pay', args: {} }] } as never });
  const { runtime, clock } = world({ planner, tools: [make('pay', () => 'paid')], policy });
  const run = await start({ runtime });
  await advanceUntil(clock, async () => (await run.state()).ending !== null);
  expect(JSON.stringify((await run.state()).ending)).toContain(SAYS);
});

it('a rule of a gate that never answers refuses its call', async () => {
  const pay = make('pay', () => 'paid', { needsApproval: never });
  const { runtime, clock } = world({ planner: script(call('pay')), tools: [pay] });
  const run = await start({ runtime });
  await advanceUntil(clock, async () => (await run.state()).ending !== null);
  expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
    error: { code: 'approval_failed', message: expect.stringContaining(SAYS) },
  });
});

it.each(['policy', 'gate'] as const)('a cancel ends a run whose %s does not answer', async (who) => {
  const asked = gate();
  const silent = (): Promise<never> => {
    asked.open();
    return never();
  };
  const pay = make('pay', () => 'paid', who === 'gate' ? { needsApproval: silent } : {});
  const planner = script(call('pay'), finish());
  const made = world({ planner, tools: [pay], ...(who === 'policy' ? { policy: silent } : {}) });
  const run = await start(made);
  await asked.opened;
  await run.cancel();
  await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
  expect((await run.state()).ending).toMatchObject({ reason: 'cancelled' });
  await until(async () => (await made.runtime.waiting()).length === 0);
});
