/** The step is over without the call that did not fit the budget: its join is met, its plan has an end, the goal is another. Nobody has to raise anything. */
import { describe, expect, it } from 'vitest';
import { type Branch, type CallParallel, type Decision, type Join, type Json, usdOf as usd } from '#core';
import type { Run } from '#runtime';
import type { AnyTool, Tool } from '#tools';
import { parallel, script } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { entriesOf, outcomes, pausesOf } from '../kit/run-record.ts';
import { ANY, holding, make } from '../kit/tools.ts';
import { aborted, gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

interface Paying {
  readonly tool: Tool;
  calls(): number;
}

/** Costs 300, of which only 100 are there. */
function dear(): Paying {
  let calls = 0;
  const run = (): Json => {
    calls += 1;
    return 'paid';
  };
  return { tool: make('dear', run, { costUsd: usd(300) }), calls: () => calls };
}

const never = make('never', (_, { signal }) => aborted(signal), {});
const limits = { costUsd: usd(100), onCeiling: 'pause' } as const;
const first: Join = { kind: 'first_success' };
const branch = (tool: string, more: Partial<Branch> = {}): Branch => ({ id: tool, tool, args: {}, ...more });
const plan = (branches: readonly Branch[], more: Partial<CallParallel> = {}): Decision => ({
  kind: 'call_parallel',
  plan: 'p',
  branches,
  ...more,
});

function begun(decision: Decision, tools: readonly AnyTool[]): Promise<readonly [Run, World]> {
  const made = world({ planner: script(decision), tools });
  return start(made, { limits }).then((run) => [run, made] as const);
}

const isAsked = async (made: World, run: Run): Promise<boolean> =>
  (await entriesOf(made.journal, run, 'paused')).length > 0;

describe('a race beside a call that does not fit the budget', () => {
  it.each([
    ['in front of it', ['hold', 'dear']],
    ['behind it', ['dear', 'hold']],
    ['beside one that would never end', ['never', 'dear', 'hold']],
    ['beside two that do not fit', ['dear', 'hold', 'dear']],
  ])('is won by the one that fits, %s, and nobody is asked', async (_, tools) => {
    const slow = holding();
    const { tool, calls } = dear();
    const branches = tools.map((name) => ({ tool: name, args: {} }));
    const [run, made] = await begun(parallel(branches, { join: first }), [slow.tool, tool, never]);
    await slow.entered;
    slow.release();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await entriesOf(made.journal, run, 'paused')).toEqual([]);
    expect(outcomes(await run.state())).toEqual(tools.map((name) => (name === 'hold' ? 'value' : 'cancelled')));
    expect(calls()).toBe(0);
  });

  it('that ends at once leaves nothing to ask for either', async () => {
    const { tool } = dear();
    const quick = make('quick', () => 1);
    const [run, made] = await begun(parallel([branch('dear'), branch('quick')], { join: first }), [tool, quick]);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await entriesOf(made.journal, run, 'paused')).toEqual([]);
  });

  it('of two winners asks when the others have ended without them, once, and goes on after the raise', async () => {
    const slow = holding();
    const fails = make('fails', () => {
      throw new Error('no');
    });
    const { tool, calls } = dear();
    const branches = ['hold', 'dear', 'fails', 'dear'].map((name) => ({ tool: name, args: {} }));
    const [run] = await begun(parallel(branches, { join: { kind: 'n', n: 2 } }), [slow.tool, tool, fails]);
    await slow.entered;
    slow.release();
    const pauses = await pausesOf(run);
    expect(pauses.map(({ payload }) => payload)).toMatchObject([{ tool: 'dear', raise: { costUsd: usd(300) } }]);
    await run.resume({ limits: { costUsd: usd(400) } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(calls()).toBe(1);
  });

  it('is won by a task that carries out a call, also after the raise was asked for', async () => {
    const slowly = gate();
    const { tool } = dear();
    const slow = make('slow', () => slowly.opened.then(() => 1));
    const planner = { name: 'inner', next: script({ kind: 'call_tool', tool: 'slow', args: {} }) };
    const agent = {
      name: 'agent',
      description: 'a',
      inputSchema: ANY,
      agent: { name: 'inner', planner, tools: [slow] },
    };
    const [run, made] = await begun(parallel([branch('agent'), branch('dear')], { join: first }), [tool, agent]);
    await until(() => isAsked(made, run));
    slowly.open();
    await until(async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(outcomes(await run.state())).toEqual(['value', 'cancelled']);
  });
});

describe('a plan with a node that does not fit the budget', () => {
  it('comes to its end without one', async () => {
    const slow = holding();
    const { tool, calls } = dear();
    const end = { id: 'end', tool: '_finish', args: {}, after: ['hold'] };
    const [run, made] = await begun(plan([branch('hold'), branch('dear'), end]), [slow.tool, tool]);
    await slow.entered;
    slow.release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await isAsked(made, run)).toBe(false);
    expect(calls()).toBe(0);
  });

  it('is over with a branch that failed, while another would never end', async () => {
    const slow = gate();
    const fails = make('fails', () => slow.opened.then(() => Promise.reject(new Error('no'))));
    const { tool, calls } = dear();
    const branches = [branch('fails'), branch('dear'), branch('never')];
    const [run, made] = await begun(plan(branches, { failFast: true }), [fails, tool, never]);
    slow.open();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await isAsked(made, run)).toBe(false);
    expect(outcomes(await run.state())).toEqual(['error', 'cancelled', 'cancelled']);
    expect(calls()).toBe(0);
  });

  it('is over when the goal is another', async () => {
    const { tool, calls } = dear();
    const [run, made] = await begun(plan([branch('dear')]), [tool]);
    await pausesOf(run);
    await run.steer('REDIRECT', { goal: 'another' });
    await until(async () => (await made.journal.get(run.id))?.status === 'finished');
    const [paused] = await entriesOf(made.journal, run, 'paused');
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([
      { token: paused?.token, verdict: 'superseded' },
    ]);
    expect((await collect(run)).map(({ type }) => type)).toContain('pause.resumed');
    expect(outcomes(await run.state())).toEqual(['skipped']);
    expect(calls()).toBe(0);
  });

  it('stays held when calls that are all wanted have ended beside it', async () => {
    const { tool } = dear();
    const quick = make('quick', () => 1);
    const [run] = await begun(parallel([branch('quick'), branch('dear')]), [tool, quick]);
    expect(await pausesOf(run)).toHaveLength(1);
    await run.steer('REDIRECT', { goal: 'another' });
    expect(await pausesOf(run)).toHaveLength(1);
  });
});
