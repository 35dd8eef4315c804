/** A tool that whoever decides was not shown is not called, whatever was decided. */
import { describe, expect, it } from 'vitest';
import type { Decision, Move } from '#core';
import { flow, node } from '#flow';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import { agent, agentTool } from '#tools';
import { call, finish, named, parallel, pause, script, watched } from '../kit/decisions.ts';
import { entriesOf, outcomes } from '../kit/run-record.ts';
import { PARENT, plays, spawns } from '../kit/tasks.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

function counted(...names: string[]) {
  const called: string[] = [];
  const tools = names.map((name) =>
    make(name, () => {
      called.push(name);
      return name;
    }),
  );
  return { tools, called };
}

const NOT_OFFERED = {
  kind: 'error',
  error: {
    code: 'tool_not_offered',
    message: 'The tool "pay" was not offered, and was not called. The tools are: echo, look.',
  },
};

describe('a tool that the run must not use', () => {
  const hints = { disallowedTools: ['pay'] };

  it.each([
    ['alone', call('pay')],
    ['beside others', parallel(named('pay', 'look'), { onInvalid: 'per_branch' })],
  ] as const)('is shown to no planner, and not called %s', async (_, decision) => {
    const { tools, called } = counted('echo', 'pay', 'look');
    const planner = watched(script(decision as Decision));
    const made = world({ planner, tools });
    const run = await start(made, { context: { hints } });
    await run.result();
    const [step] = (await run.state()).steps;
    expect(step?.calls[0]?.outcome).toEqual(NOT_OFFERED);
    expect(called).toEqual('branches' in decision ? ['look'] : []);
    const { tools: seen } = planner.views[0] as (typeof planner.views)[number];
    expect(seen.list().map(({ name }) => name)).toEqual(['echo', 'look']);
    expect(seen.all().map(({ name }) => name)).not.toContain('pay');
    expect(seen.get('pay')).toBeUndefined();
    expect(await run.replay()).not.toHaveProperty('divergence');
  });

  it('keeps others of its step from being called, unless the decision says otherwise', async () => {
    const { tools, called } = counted('echo', 'pay', 'look');
    const made = world({ planner: script(parallel(named('pay', 'look'))), tools });
    const run = await start(made, { context: { hints } });
    await run.result();
    const codes = (await run.state()).steps[0]?.calls.map(({ outcome }) => 'error' in outcome && outcome.error.code);
    expect(codes).toEqual(['tool_not_offered', 'branch_not_started']);
    expect(called).toEqual([]);
  });

  it('stands in no request, and a model that calls it all the same is told so', async () => {
    const { tools, called } = counted('echo', 'pay', 'look');
    const model = scriptedModel([{ calls: [{ tool: 'pay', args: {} }] }, { text: 'done' }]);
    const made = world({ planner: react({ model }), tools });
    const run = await start(made, { context: { hints } });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
    expect(called).toEqual([]);
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['echo', 'look']);
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain('tool_not_offered');
  });

  it('is not called by a task either, whether the planner starts it or an agent carries out a call', async () => {
    const { tools, called } = counted('pay');
    const inner = agent({ name: 'inner', planner: script(call('pay')), tools });
    const planner = plays({
      q: script(spawns('child', { task: 'foreground' }), call('inner', { input: 'x' })),
      child: script(call('pay')),
    });
    const made = world({ planner, tools: [...tools, agentTool(inner, { description: 'd' })] });
    const run = await start(made, { identity: PARENT, context: { hints } });
    await run.result();
    expect(called).toEqual([]);
    for (const id of ['p.0.0', 'p.1.0']) {
      const { steps } = await made.runtime.run(id).state();
      expect(steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_not_offered' } });
    }
  });

  it('is not called under the name that it has today', async () => {
    const journal = memoryJournal();
    const { tools, called } = counted('echo', 'pay');
    const first = world({ planner: script(call('echo'), pause, call('pay')), tools, journal });
    const run = await start(first, { context: { hints } });
    await run.result();
    await first.runtime.close();
    const later = counted('echo', 'transfer');
    const next = world({
      planner: script(call('echo'), pause, call('transfer')),
      tools: later.tools,
      journal,
      migrate: () => ({ renamedTools: { pay: 'transfer' } }),
    });
    const again = next.runtime.run(run.id);
    await again.resume();
    await again.result();
    expect((await again.state()).steps[2]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_not_offered' } });
    expect([called, later.called]).toEqual([['echo'], []]);
  });

  it('is not called by a task under the name that it has today', async () => {
    const journal = memoryJournal();
    const old = script(call('echo'), pause);
    const first = world({ planner: old, tools: counted('echo', 'pay').tools, journal });
    const run = await start(first, { identity: PARENT, context: { hints } });
    await run.result();
    await first.runtime.close();
    const later = counted('echo', 'transfer');
    const planner = plays({
      q: script(call('echo'), pause, spawns('child', { task: 'foreground' })),
      child: script(call('transfer')),
    });
    const migrate = () => ({ renamedTools: { pay: 'transfer' } });
    const again = world({ planner, tools: later.tools, journal, migrate }).runtime.run(run.id);
    await again.resume();
    await again.result();
    expect(later.called).toEqual([]);
  });

  it('may be the starting of tasks', async () => {
    const made = world({ planner: script(spawns('child', { task: 'foreground' })) });
    const run = await start(made, { identity: PARENT, context: { hints: { disallowedTools: ['_spawn_task'] } } });
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_not_offered' } });
    expect(await made.runtime.list()).toHaveLength(1);
  });

  it('is not a node of a flow, which has its name from the flow; an agent keeps to the hint', async () => {
    const { tools, called } = counted('pay');
    const inner = agent({ name: 'inner', planner: script(call('pay')), tools });
    const pay = node('pay', { inputSchema: {}, effect: 'pure', execute: () => 'the node' });
    const flowing = flow({ name: 'flowing', inputSchema: {}, entry: pay, exit: pay });
    const planner = script(call('pay'), call('flowing'), call('inner', { input: 'x' }));
    const all = [...tools, flowing.asTool(), agentTool(inner, { description: 'd' })];
    const made = world({ planner, tools: all });
    const run = await start(made, { identity: PARENT, context: { hints } });
    await run.result();
    const { steps } = await run.state();
    expect(steps.map(({ calls: [only] }) => only?.outcome)).toMatchObject([
      { error: { code: 'tool_not_offered' } },
      { kind: 'value', value: 'the node' },
      {},
    ]);
    expect(called).toEqual([]);
  });

  it.each([null, 'pay', {}, [5]])('is named in a list: not %j', async (disallowedTools) => {
    const starting = start(world({ planner: script() }), {
      context: { hints: { disallowedTools: disallowedTools as never } },
    });
    await expect(starting).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/disallowedTools.*give a list/),
    });
  });

  it('is another matter than a tool that is not there', async () => {
    const made = world({ planner: script(call('nobody')) });
    const run = await start(made, { context: { hints } });
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_not_found' } });
  });
});

describe('a planner that showed its model only some tools', () => {
  const moves =
    (...made: readonly (Move | Decision)[]) =>
    (run: { trajectory: { count: number } }) =>
      made[run.trajectory.count] ?? finish('done');

  it('says which, and a call of another one is not made', async () => {
    const { tools, called } = counted('echo', 'pay', 'look');
    const decision = parallel(named('look', 'pay'), { onInvalid: 'per_branch' });
    const made = world({
      planner: moves(
        { decision: call('pay'), offered: [] },
        { decision, offered: ['echo', 'look'] },
        { decision: call('pay'), offered: ['pay'] },
        call('look'),
      ),
      tools,
    });
    const run = await start(made);
    await run.result();
    const state = await run.state();
    expect([0, 1, 2, 3].map((step) => outcomes(state, step))).toEqual([
      ['error'],
      ['value', 'error'],
      ['value'],
      ['value'],
    ]);
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject({
      error: { code: 'tool_not_offered', message: expect.stringContaining('The tools are: none.') },
    });
    expect(state.steps[1]?.calls[1]?.outcome).toEqual(NOT_OFFERED);
    expect(called).toEqual(['look', 'pay', 'look']);
    const recorded = await entriesOf(made.journal, run, 'moved');
    expect(recorded.map(({ offered }) => offered)).toEqual([[], ['echo', 'look'], ['pay'], undefined, undefined]);
  });

  it('is refused when it says something else', async () => {
    const made = world({ planner: moves({ decision: call('echo'), offered: 'echo' as never }) });
    const run = await start(made);
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_decision', message: expect.stringContaining('must be a list of names of tools') },
    });
  });
});
