/** `onCeiling: 'pause'`: a call that does not fit what is left is held until somebody raises the limit, and then made once. */
import { describe, expect, it } from 'vitest';
import { commandsFor, parseCommandLine, pauseLines } from '#cli';
import { type Branch, type Decision, type Json, type PlannerFunction, usdOf as usd } from '#core';
import { flow, node } from '#flow';
import { graph } from '#planners/graph';
import type { Run } from '#runtime';
import type { Tool } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { pausesOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

interface Paid {
  readonly tool: Tool;
  /** What was paid, in order. */
  readonly paid: Json[];
}

function paying(costMicroUsd: number, more: Partial<Tool> = {}, name = 'pay'): Paid {
  const paid: Json[] = [];
  const run = ({ id }: Record<string, Json>): Json => {
    paid.push(id ?? null);
    return id ?? null;
  };
  return { paid, tool: make(name, run, { costUsd: usd(costMicroUsd), ...more }) };
}

const pays = (...ids: number[]): Branch[] => ids.map((id) => ({ id: `n${id}`, tool: 'pay', args: { id } }));
const parallel = (...branches: Branch[]): Decision => ({ kind: 'call_parallel', branches });

async function held(run: Run): Promise<Json> {
  const pauses = await pausesOf(run);
  expect(pauses).toHaveLength(1);
  expect(pauses[0]?.reason).toBe('constraints_conflict');
  return pauses[0]?.payload ?? null;
}

describe('BG-01 a call that does not fit what is left', () => {
  it.each([
    'pure',
    'read',
    'keyed',
    'once',
  ] as const)('cap 700, price 300 (%s): the third call waits for a raise, and is made once', async (effect) => {
    const { tool, paid } = paying(300, { effect });
    const made = world({ planner: script(...[1, 2, 3].map((id) => call('pay', { id }))), tools: [tool] });
    const run = await start(made, { limits: { costUsd: usd(700), onCeiling: 'pause' } });
    expect(await held(run)).toEqual({
      budget: 'cost',
      limit: usd(700),
      used: usd(600),
      tool: 'pay',
      needs: usd(300),
      left: usd(100),
      raise: { costUsd: usd(900) },
    });
    expect(paid).toEqual([1, 2]);
    // Resumed without a raise it asks again, and nothing is made.
    await run.resume();
    await held(run);
    await run.resume({ limits: { costUsd: usd(899) } });
    expect(await held(run)).toMatchObject({ left: usd(299), raise: { costUsd: usd(900) } });
    await run.resume({ limits: { costUsd: usd(950) } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { costMicroUsd: 900 } });
    expect(paid).toEqual([1, 2, 3]);
  });

  it('a raise that cannot be is refused with what to write; one of a class counts', async () => {
    const planner: PlannerFunction = ({ trajectory: { count } }) => ({
      decision: count < 3 ? call('echo', { count }) : finish('done'),
      usage: { inputTokens: 100 },
    });
    const run = await start(world({ planner, tools: [echo] }), { limits: { tokens: 200, onCeiling: 'pause' } });
    await run.result();
    for (const [limits, says] of [
      [{ tokens: Number.NaN }, 'limits.tokens is NaN; give a number from 0 up'],
      [{ costUsd: 1n as never }, 'limits.costUsd is'],
    ] as const) {
      await expect(run.resume({ limits })).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringContaining(says),
      });
    }
    class Raised {
      get tokens() {
        return 1_000;
      }
    }
    await run.resume({ limits: new Raised() });
    expect(await run.result()).toMatchObject({ reason: 'goal' });
  });

  it('calls are a limit like that', async () => {
    const { tool, paid } = paying(0);
    const made = world({ planner: script(...[1, 2].map((id) => call('pay', { id }))), tools: [tool] });
    const run = await start(made, { limits: { calls: 1, onCeiling: 'pause' } });
    expect(await held(run)).toEqual({
      budget: 'calls',
      limit: 1,
      used: 1,
      tool: 'pay',
      needs: 1,
      left: 0,
      raise: { calls: 2 },
    });
    await run.resume({ limits: { calls: 2 } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(paid).toEqual([1, 2]);
  });

  it('without a pause it is refused as before, and so it is when somebody gives up pausing', async () => {
    for (const onCeiling of ['finish', 'pause'] as const) {
      const { tool, paid } = paying(300);
      const made = world({ planner: script(call('pay', { id: 1 }), call('pay', { id: 2 })), tools: [tool] });
      const run = await start(made, { limits: { costUsd: usd(500), onCeiling } });
      if (onCeiling === 'pause') {
        await held(run);
        await run.resume({ limits: { onCeiling: 'finish' } });
      }
      expect(await run.result()).toMatchObject({ status: 'finished' });
      expect((await run.state()).steps[1]?.calls[0]?.outcome).toMatchObject({ error: { code: 'budget_exceeded' } });
      expect(paid).toEqual([1]);
    }
  });

  it('of parallel branches what fits runs, also behind one that does not; one pause asks for them all', async () => {
    const dear = paying(300);
    const cheap = paying(50, {}, 'cheap');
    const branches = [...pays(1, 2, 3, 4), { id: 'c', tool: 'cheap', args: { id: 5 } }];
    const made = world({ planner: script(parallel(...branches)), tools: [dear.tool, cheap.tool] });
    const run = await start(made, { limits: { costUsd: usd(700), onCeiling: 'pause' } });
    expect(await held(run)).toMatchObject({ budget: 'cost', tool: 'pay', needs: usd(300) });
    expect([dear.paid, cheap.paid]).toEqual([[1, 2], [5]]);
    await run.resume({ limits: { costUsd: usd(950) } });
    expect(await held(run)).toMatchObject({ left: 0, raise: { costUsd: usd(1_250) } });
    await run.resume({ limits: { costUsd: usd(1_300) } });
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { costMicroUsd: 1_250 } });
    expect([dear.paid, cheap.paid]).toEqual([[1, 2, 3, 4], [5]]);
  });

  it('a plan goes on where it was: what waits for the held node is not skipped', async () => {
    const { tool, paid } = paying(300);
    const steps = [1, 2, 3].map((id) => ({ id: `s${id}`, type: 'tool' as const, toolId: 'pay', input: { id } }));
    const made = world({ planner: graph({ plan: { steps } }), tools: [tool] });
    const run = await start(made, { limits: { costUsd: usd(400), onCeiling: 'pause' } });
    await held(run);
    await run.resume({ limits: { costUsd: usd(950) } });
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    expect(paid).toEqual([1, 2, 3]);
  });

  it('a node of a flow is held too, and the flow gives its output after the raise', async () => {
    let ran = 0;
    const first = node('first', { effect: 'once', costUsd: usd(300), execute: () => ++ran });
    const made = flow({ name: 'dear', inputSchema: {}, entry: first as never, exit: first });
    const run = await start(world({ agents: [made] }), {
      context: { args: null },
      limits: { costUsd: usd(100), onCeiling: 'pause' },
    });
    expect(await held(run)).toMatchObject({ tool: 'first', raise: { costUsd: usd(300) } });
    await run.resume({ limits: { costUsd: usd(300) } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(ran).toBe(1);
  });

  it('a task for which nothing is left is spawned after the raise', async () => {
    const { tool } = paying(300);
    const spawns: Decision = { kind: 'spawn_task', task: 'foreground', spec: { description: 'more', query: 'child' } };
    const planner = script(call('pay', { id: 1 }), parallel({ id: 'p', tool: 'pay', args: { id: 2 } }), spawns);
    const made = world({
      planner: (view) =>
        view.query === 'child' ? { kind: 'finish', reason: 'goal' } : planner(view, new AbortController().signal),
      tools: [tool],
    });
    const run = await start(made, { limits: { calls: 2, onCeiling: 'pause' } });
    expect(await held(run)).toEqual({
      budget: 'calls',
      limit: 2,
      used: 2,
      tool: '_spawn_task',
      needs: 1,
      left: 0,
      raise: { calls: 3 },
    });
    await run.resume({ limits: { calls: 4 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect((await run.state()).tasks).toHaveLength(1);
  });

  it('whoever takes the run over finds it held, with what runs no more', async () => {
    const { tool, paid } = paying(300);
    const planner = script(parallel(...pays(1, 2, 3)));
    const first = world({ planner, tools: [tool] });
    const run = await start(first, { limits: { costUsd: usd(700), onCeiling: 'pause' } });
    await held(run);
    await first.runtime.close();
    const second = world({ planner, tools: [tool], journal: first.journal, clock: first.clock });
    const again = second.runtime.run(run.id);
    await again.resume({ limits: { costUsd: usd(950) } });
    expect(await again.result()).toMatchObject({ status: 'finished' });
    expect(paid).toEqual([1, 2, 3]);
  });

  it('people are told what does not fit, what is left and what to raise', async () => {
    const { tool } = paying(300_000);
    const run = await start(world({ planner: script(call('pay', { id: 1 })), tools: [tool] }), {
      limits: { costUsd: usd(100_000), onCeiling: 'pause' },
    });
    const parsed = parseCommandLine(['inspect', run.id]);
    if (parsed.kind !== 'command') throw new Error('No command.');
    const text = pauseLines(run.id, await pausesOf(run), commandsFor(run.id, parsed.options))
      .map((line) => line.text)
      .join('\n');
    expect(text).toMatch(/The limit of cost has no room for pay, which needs \$0\.3\S*; \$0\.1\S* is left\./);
    expect(text).toContain('--max-cost-usd 0.3');
  });
});
