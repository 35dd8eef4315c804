/** Breakpoints and single steps: where a run stops before a call begins. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { crashEverywhere } from '#testing';
import type { Tool } from '#tools';
import { call, finish, parallel, script } from '../kit/decisions.ts';
import { innerState, outcomes, pausesOf } from '../kit/run-record.ts';
import { holding, make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

interface Made extends World {
  readonly made: string[];
}

/** Tools that note that they were called: `a` waits for the gate, when there is one. */
function noting(
  planner: Parameters<typeof world>[0]['planner'],
  more: Partial<Parameters<typeof world>[0]> = {},
  first?: Promise<void>,
): Made {
  const made: string[] = [];
  const tools = ['a', 'b', 'c'].map(
    (name): Tool =>
      make(name, async () => {
        made.push(name);
        if (name === 'a') await first;
        return name;
      }),
  );
  const there = world({ ...(planner === undefined ? {} : { planner }), tools, ...more });
  onTestFinished(() => there.runtime.close());
  return { made, ...there };
}

describe('a breakpoint', () => {
  it('before a tool stops a run of single calls, each time, until it is taken away', async () => {
    const go = gate();
    const there = noting(script(call('a'), call('b'), call('c'), call('b'), call('b')), {}, go.opened);
    const run = await start(there);
    await until(() => there.made.length === 1);
    await run.pause({ before: { tool: 'b' } });
    go.open();
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({
      reason: 'external_event',
      payload: { by: 'breakpoint', before: { tool: 'b' }, step: 1, call: 0, tool: 'b' },
    });
    expect(there.made).toEqual(['a']);
    await run.resume();
    await run.result();
    expect(there.made).toEqual(['a', 'b', 'c']);
    await run.pause({ before: { tool: 'b' }, clear: true, until: 'applied' });
    await run.resume();
    await expect(run.result()).resolves.toMatchObject({ status: 'finished' });
    expect(there.made).toEqual(['a', 'b', 'c', 'b', 'b']);
  });

  it('before a node lets what runs end, and nothing else begin', async () => {
    const go = gate();
    const steps = parallel([
      { id: 'first', tool: 'a', args: {} },
      { id: 'second', tool: 'b', args: {}, after: ['first'] },
      { id: 'third', tool: 'c', args: {}, after: ['first'] },
    ]);
    const there = noting(script(steps), {}, go.opened);
    const run = await start(there);
    await until(() => there.made.length === 1);
    await run.pause({ before: { node: 'second' }, until: 'applied' });
    go.open();
    const [pause] = await pausesOf(run);
    expect(pause?.payload).toMatchObject({ node: 'second', before: { node: 'second' } });
    expect(there.made).toEqual(['a']);
    await run.resume();
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value', 'value', 'value']);
    expect(there.made.toSorted()).toEqual(['a', 'b', 'c']);
  });

  it('survives its process', async () => {
    const journal = memoryJournal();
    const go = gate();
    const first = noting(script(call('a'), call('b')), { journal }, go.opened);
    const run = await start(first);
    await until(() => first.made.length === 1);
    await run.pause({ before: { tool: 'b' } });
    go.open();
    await run.result();
    await first.runtime.close();
    const second = noting(script(call('a'), call('b')), { journal });
    expect((await innerState(journal, run)).breakpoints).toEqual([{ tool: 'b' }]);
    await second.runtime.run(run.id).resume();
    await expect(second.runtime.run(run.id).result()).resolves.toMatchObject({ status: 'finished' });
    expect(second.made).toEqual(['b']);
  });

  it('before a tool that the run does not have is refused with those that it has, and one before nothing', async () => {
    const { tool: hold, entered, release } = holding();
    const there = noting(script(call('hold')), { tools: [hold, make('b', () => 'b')] });
    const run = await start(there);
    await entered;
    await expect(run.pause({ before: { tool: 'cutt' } })).rejects.toMatchObject({
      code: 'tool_not_found',
      message: expect.stringContaining('b, hold'),
    });
    for (const before of [{ tool: '' }, { node: '' }]) {
      await expect(run.pause({ before })).rejects.toMatchObject({ code: 'invalid_config' });
    }
    // What is taken away need not exist any more; nodes are those of plans to come.
    await run.pause({ before: { tool: 'cutt' }, clear: true });
    await run.pause({ before: { node: 'later' } });
    release();
    await run.result();
    expect((await innerState(there.journal, run)).breakpoints).toEqual([{ node: 'later' }]);
  });

  it('before such a tool is refused by whoever has the tools, when its sender has not', async () => {
    const { tool: hold, entered, release } = holding();
    const there = noting(script(call('hold')), { tools: [hold] });
    const run = await start(there);
    await entered;
    const other = world({ planner: { name: 'other', next: script() }, journal: there.journal });
    onTestFinished(() => other.runtime.close());
    const said = other.runtime.run(run.id).pause({ before: { tool: 'cutt' }, until: 'applied' });
    const refused = expect(said).rejects.toMatchObject({ code: 'tool_not_found' });
    await until(async () => (await there.journal.inbox(run.id)).length > 0);
    release();
    await refused;
    expect((await innerState(there.journal, run)).breakpoints).toEqual([]);
  });

  it('that names nothing is refused', async () => {
    const run = await start(noting(script(call('a'))));
    for (const wrong of [{ before: {} }, { before: 'b' }, { clear: true }, { before: { node: 'x', tool: 'y' } }]) {
      await expect(run.pause(wrong as never)).rejects.toMatchObject({ code: 'invalid_config' });
    }
    await expect(run.resume({ until: 'end' as never })).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

it('a run is stepped through, call by call', async () => {
  const go = gate();
  const there = noting(script(call('a'), parallel(['b', 'c'].map((tool) => ({ tool, args: {} })))), {}, go.opened);
  const run = await start(there);
  await until(() => there.made.length === 1);
  await run.pause({ before: 'next' });
  go.open();
  const seen: string[][] = [];
  for (;;) {
    const result = await run.result();
    seen.push([...there.made]);
    if (result.status !== 'paused') break;
    await run.resume({ until: 'next' });
  }
  expect(seen).toEqual([['a'], ['a', 'b'], ['a', 'b', 'c']]);
});

it('stops once at a breakpoint, wherever the process dies', async () => {
  const report = await crashEverywhere({
    name: 'breakpoint',
    query: 'q',
    planner: (run) => (run.trajectory.count < 2 ? call('works', { n: run.trajectory.count }) : finish('done')),
    tools: (around) => [
      make('works', async (_, context) => void (await around.effect(context)), {
        effect: 'once',
        reconcile: async (_, context) =>
          around.count(context) > 0 ? { status: 'done', value: null } : { status: 'not_done' },
      }),
    ],
    controls: (entry) =>
      entry.kind === 'moved' && entry.step === 0
        ? { id: 'break', type: 'PAUSE', payload: { before: { tool: 'works' } } }
        : undefined,
    check: (_, entries) => {
      const stops = entries.filter((entry) => entry.kind === 'paused' && entry.payload?.['by'] === 'breakpoint');
      const calls = stops.map((entry) => entry.kind === 'paused' && entry.payload?.['step']);
      return new Set(calls).size === calls.length ? [] : [`It stopped before the same call twice: ${String(calls)}.`];
    },
  });
  expect(report.violations).toEqual([]);
});
