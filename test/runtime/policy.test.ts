/** The program's rule about calls, asked before each is made. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Decision, PolicyCall, PolicyView, RunView, ToolPolicy } from '#core';
import { graph } from '#planners/graph';
import type { Plan } from '#plans';
import type { Tool } from '#tools';
import { call, script, watched } from '../kit/decisions.ts';
import { start, world } from '../kit/world.ts';

const made: string[] = [];
const tool = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  description: 'd',
  effect: 'read',
  inputSchema: { type: 'object' },
  execute: (args) => {
    made.push(name);
    return args as never;
  },
  ...more,
});
const plan: Decision = {
  kind: 'call_parallel',
  plan: 'p',
  onInvalid: 'per_branch',
  branches: [
    { id: 'a', tool: 'look', args: { n: 1 } },
    { id: 'b', tool: 'send', args: { n: { $from: 'a', path: '/n' } } },
    { id: 'c', tool: 'look', args: {}, after: ['b'] },
    { id: 'd', tool: 'look', args: { n: 2 } },
  ],
};

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  made.length = 0;
  for (const runtime of open.splice(0)) await runtime.close();
});

async function outcomes(policy: ToolPolicy, tools: readonly Tool[] = [tool('look'), tool('send')]) {
  let seen: RunView | undefined;
  const here = world({
    planner: (run) => {
      seen = run;
      return run.trajectory.count === 0 ? plan : { kind: 'finish', reason: 'goal' };
    },
    tools,
    policy,
  });
  open.push(here.runtime);
  expect(await (await start(here)).result()).toMatchObject({ status: 'finished', reason: 'goal' });
  return seen?.trajectory.step(0)?.calls.map(({ outcome }) => outcome) ?? [];
}

describe('the policy', () => {
  it('AG-05 is asked before every call of a plan, and a forbidden one is not made', async () => {
    const asked: (PolicyCall & Pick<PolicyView, 'identity'>)[] = [];
    const given = await outcomes((call, { identity }) => {
      asked.push({ ...call, identity });
      return call.tool === 'send' ? { deny: 'nothing leaves the house' } : 'allow';
    });
    expect(given.map(({ kind }) => kind)).toEqual(['value', 'error', 'skipped', 'value']);
    expect(given[1]).toMatchObject({
      error: { code: 'policy_refused', message: expect.stringContaining('nothing leaves') },
    });
    expect(made).toEqual(['look', 'look']);
    expect(asked.find(({ tool: name }) => name === 'send')).toMatchObject({
      args: { n: 1 },
      identity: { user: 'ana' },
    });
  });

  it('is shown what was spent and what is left, so that it may stop what costs more', async () => {
    const left: unknown[] = [];
    const here = world({
      planner: ({ trajectory: { count } }) => ({
        decision: count < 3 ? { kind: 'call_tool', tool: 'look', args: {} } : { kind: 'finish', reason: 'goal' },
        usage: { costMicroUsd: 40 },
      }),
      tools: [tool('look')],
      limits: { costUsd: 0.001 },
      policy: (_, { budget }) => {
        left.push(budget.costMicroUsdLeft);
        return budget.costMicroUsdSpent > 100 ? { deny: 'it has cost enough' } : 'allow';
      },
    });
    open.push(here.runtime);
    const run = await start(here);
    await run.result();
    expect((await run.state()).steps.map(({ calls }) => calls[0]?.outcome.kind)).toEqual(['value', 'value', 'error']);
    expect(left).toEqual([960, 920, 880]);
  });

  it('AG-05 a policy that changed in between stops what was planned under the old one', async () => {
    let isOpen = true;
    const given = await outcomes(
      () => (isOpen ? 'allow' : { deny: 'closed now' }),
      [
        tool('look', {
          execute: () => {
            isOpen = false;
            return { n: 1 };
          },
        }),
        tool('send'),
      ],
    );
    expect(given.map(({ kind }) => kind)).toEqual(['value', 'error', 'skipped', expect.any(String)]);
    expect(made).toEqual([]);
  });

  it('allows nothing when it fails', async () => {
    const given = await outcomes(() => {
      throw new Error('no rules today');
    });
    expect(given.map(({ kind }) => kind)).toEqual(['error', 'skipped', 'skipped', 'error']);
    expect(given[0]).toMatchObject({
      error: { code: 'policy_refused', message: expect.stringContaining('no rules today') },
    });
    expect(made).toEqual([]);
  });

  it('is asked before a person is: nobody approves what is forbidden', async () => {
    const given = await outcomes(
      ({ tool: name }) => (name === 'send' ? { deny: 'no' } : 'allow'),
      [tool('look'), tool('send', { needsApproval: true })],
    );
    expect(given[1]).toMatchObject({ error: { code: 'policy_refused' } });
  });
});

describe('planners that look ahead', () => {
  const steps: Plan = {
    steps: [
      { id: 'a', type: 'tool', toolId: 'look' },
      { id: 'b', type: 'tool', toolId: 'send', after: ['a'] },
    ],
  };
  const tools = [tool('look'), tool('send')];
  const policy: ToolPolicy = ({ tool: name }) => (name === 'send' ? { deny: 'nothing leaves the house.' } : 'allow');
  const faults = [{ code: 'plan_forbidden', step: 'b' }];

  it('see the policy of the runtime, also in a fork; without one there is none', async () => {
    const planner = watched(script(call('look')));
    const here = world({ planner, tools, policy });
    open.push(here.runtime);
    const run = await start(here);
    await run.result();
    await (await run.fork({ step: 0 })).result();
    const asked = planner.views.map(({ tools: shown }) =>
      shown.policy?.({ tool: 'send', args: {} }, {} as PolicyView, new AbortController().signal),
    );
    expect(asked).toEqual(Array.from({ length: 4 }, () => ({ deny: 'nothing leaves the house.' })));
    const free = world({ planner, tools });
    open.push(free.runtime);
    await (await start(free)).result();
    expect(planner.views.at(-1)?.tools).not.toHaveProperty('policy');
  });

  it('AG-05 AG-22 a plan with a forbidden step does not begin', async () => {
    const here = world({ planner: graph({ plan: steps }), tools, policy });
    open.push(here.runtime);
    expect(await (await start(here)).result()).toMatchObject({
      status: 'failed',
      error: { code: 'plan_invalid', data: { faults } },
    });
    expect(made).toEqual([]);
  });

  it('a replay asks the policy of today', async () => {
    const then = world({ planner: graph({ plan: steps }), tools });
    const run = await start(then);
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    await then.runtime.close();
    const now = world({ planner: graph({ plan: steps }), tools, policy, journal: then.journal });
    open.push(now.runtime);
    expect((await now.runtime.run(run.id).replay()).divergence).toMatchObject({
      step: 0,
      recorded: { decision: { kind: 'call_parallel' } },
      now: { error: { message: expect.stringContaining('nothing leaves the house') } },
    });
    expect(made).toEqual(['look', 'send']);
  });
});

describe('what is no policy', () => {
  it.each([null, 'none', { look: true }])('%j is refused', (policy) => {
    const planner = script();
    expect(() => world({ planner, policy: policy as never })).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('policy') }),
    );
  });
});
