/** The run loop: who is asked, how often, and with what. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, type Json, local, type PlannerFunction, type RunView } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { kindsOf, observations } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const forever = (): Decision => call('echo');

describe('what a run needs to begin', () => {
  it('RL-01 refuses a runtime without a planner', () => {
    expect(() => createRuntime({ planner: undefined as never })).toThrow(
      expect.objectContaining({ code: 'no_planner' }),
    );
    expect(() => createRuntime({ planner: {} as never })).toThrow(expect.objectContaining({ code: 'no_planner' }));
  });

  it.each(['tenant', 'user', 'session', 'run'] as const)('RL-01, PX-06 fails closed without %s', async (part) => {
    const planner = watched(script());
    const { runtime } = world({ planner });
    for (const value of [undefined, '', ' \t']) {
      const identity = { ...local('ana'), [part]: value } as never;
      const refused = runtime.start('q', { identity });
      await expect(refused).rejects.toMatchObject({ code: 'identity_required', data: { missing: [part] } });
    }
    // @ts-expect-error an identity that got lost is refused, by the type too where optional properties are exact
    await expect(runtime.start('q', { identity: undefined })).rejects.toMatchObject({
      code: 'identity_required',
    });
    expect(await runtime.list()).toEqual([]);
    expect(planner.views).toEqual([]);
  });

  it('a script need not say who it is: a run without an identity is that of the user local', async () => {
    const { runtime } = world({ planner: script() });
    const run = await runtime.start('q');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const [record] = await runtime.list();
    expect(record?.identity).toEqual({ tenant: 'local', user: 'local', session: 'default', run: run.id });
  });

  it('PC-30 takes a plain async function for a planner', async () => {
    const run = await start(world({ planner: async () => finish('hello') }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', answer: 'hello' });
  });

  it('what a planner keeps of a run is there at its next move, and is nothing of another run', async () => {
    const key = {};
    const found: unknown[] = [];
    const { runtime } = world({
      tools: [echo],
      planner: ({ cache, query, trajectory }) => {
        found.push(cache.get(key));
        cache.set(key, `${query} ${trajectory.count}`);
        return trajectory.count === 2 ? finish() : call('echo');
      },
    });
    for (const query of ['one', 'two']) await (await runtime.start(query)).result();
    expect(found).toEqual([undefined, 'one 0', 'one 1', undefined, 'two 0', 'two 1']);
  });

  it('RL-16 has written that the run started before the planner is asked', async () => {
    const heads: (number | undefined)[] = [];
    const { journal, ...rest } = world({
      planner: async (run) => {
        heads.push((await journal.get(run.identity.run))?.head);
        return finish();
      },
    });
    await (await start(rest)).result();
    expect(heads).toEqual([1]);
  });

  it('RL-16 never asks the planner when the start cannot be written', async () => {
    const planner = watched(script());
    const { runtime, journal } = world({ planner });
    await journal.close();
    await expect(start({ runtime })).rejects.toMatchObject({ code: 'journal_closed' });
    expect(planner.views).toEqual([]);
  });
});

describe('one step after the other', () => {
  it('RL-03 asks a planner that finishes at once just once', async () => {
    const planner = watched(script());
    const { journal, ...rest } = world({ planner });
    const run = await start(rest);
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done', usage: { steps: 0 } });
    expect(planner.views).toHaveLength(1);
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'finished']);
  });

  it('RL-09, RL-27 appends a step with its outcome, times and the model’s words', async () => {
    const { clock, ...rest } = world({
      planner: (run) =>
        run.trajectory.count > 0
          ? finish()
          : {
              decision: call('slow', { a: 1 }),
              text: 'I look',
              reasoning: 'why',
              usage: { inputTokens: 7, outputTokens: 2, costMicroUsd: 5 },
              providerState: { id: 'x' },
              provenance: { model: 'm' },
            },
      tools: [
        make('slow', (args) => {
          clock.advance(40);
          return { got: args };
        }),
      ],
    });
    const began = clock.now();
    const run = await start(rest);
    expect(await run.result()).toMatchObject({ usage: { steps: 1, calls: 1, inputTokens: 7, outputTokens: 2 } });
    const [step] = (await run.state()).steps;
    expect(step).toMatchObject({
      index: 0,
      text: 'I look',
      reasoning: 'why',
      usage: { inputTokens: 7, outputTokens: 2, costMicroUsd: 5 },
      providerState: { id: 'x' },
      provenance: { model: 'm' },
      startedAt: began,
      endedAt: began + 40,
      calls: [
        { outcome: { kind: 'value', value: { got: { a: 1 } } }, startedAt: began, endedAt: began + 40, attempts: 1 },
      ],
    });
  });

  it('RL-10 goes on after a tool that failed, and shows the planner the error', async () => {
    const planner = watched(script(call('bad')));
    const run = await start(
      world({
        planner,
        tools: [
          make('bad', () => {
            throw Object.assign(new Error('no such city'), { code: 'not_there' });
          }),
        ],
      }),
    );
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const step = planner.views[1]?.trajectory.step(0);
    expect(step?.calls[0]?.outcome).toEqual({ kind: 'error', error: { code: 'not_there', message: 'no such city' } });
    expect(observations(await run.state())).toEqual([{ error: { code: 'not_there', message: 'no such city' } }]);
  });

  it('RL-13 carries no reasoning over to the next step', async () => {
    const run = await start(
      world({
        planner: ({ trajectory }) =>
          trajectory.count === 0
            ? { decision: forever(), reasoning: 'why' }
            : trajectory.count === 1
              ? forever()
              : finish(),
        tools: [echo],
      }),
    );
    const decisions = only(await collect(run), 'planner.decision');
    expect(decisions.map((event) => event.reasoningTrace)).toEqual(['why', undefined, undefined]);
    expect(decisions.map((event) => event.reasoningChars)).toEqual([3, 0, 0]);
  });

  it('RL-14 keeps everything of a step that made several calls for the next one', async () => {
    const planner = watched((run) =>
      run.trajectory.count > 0
        ? finish()
        : {
            decision: {
              kind: 'call_parallel',
              branches: [
                { tool: 'echo', args: { n: 1 }, callId: 'a' },
                { tool: 'echo', args: { n: 2 }, callId: 'b' },
              ],
            },
            providerState: { thread: 1 },
          },
    );
    const run = await start(world({ planner, tools: [echo] }));
    await run.result();
    const step = planner.views[1]?.trajectory.step(0);
    expect(step).toMatchObject({
      providerState: { thread: 1 },
      calls: [{ outcome: { value: { n: 1 } } }, { outcome: { value: { n: 2 } } }],
    });
    expect(step?.decision).toMatchObject({ branches: [{ callId: 'a' }, { callId: 'b' }] });
  });

  it('PC-06 gives each step a fresh frozen view that later steps do not change', async () => {
    const planner = watched(script(forever(), forever()));
    const run = await start(world({ planner, tools: [echo] }));
    await run.result();
    const [first, second] = planner.views as [RunView, RunView];
    expect(first).not.toBe(second);
    expect([first.trajectory.count, second.trajectory.count]).toEqual([0, 1]);
    expect(first.trajectory.steps).toEqual([]);
    expect(first.trajectory.step(0)).toBeUndefined();
    expect(() => Object.assign(first, { goal: 'mine' })).toThrow(TypeError);
    expect(() => Object.assign(first.trajectory, { count: 9 })).toThrow(TypeError);
    expect(() => Object.assign(second.trajectory.step(0) ?? {}, { index: 9 })).toThrow(TypeError);
    expect(() => Object.assign(first.identity, { tenant: 'other' })).toThrow(TypeError);
  });

  it('PC-12 tells the planner the recorded time, and stamps every entry and event by the clock', async () => {
    const planner = watched(script(call('tick')));
    const { clock, journal, ...rest } = world({ planner, tools: [make('tick', () => clock.advance(1_000))] });
    const began = clock.now();
    const run = await start(rest);
    const events = await collect(run);
    expect(planner.views.map((view) => view.startedAt)).toEqual([began, began]);
    expect(events.map((event) => event.occurredAt - began)).toEqual([0, 0, 0, 1_000, 1_000, 1_000]);
    expect((await journal.read(run.id)).map((entry) => entry.at - began)).toEqual([0, 0, 1_000, 1_000, 1_000]);
  });

  it('PC-17 shows and runs only the tools whose scopes the run holds', async () => {
    const seen: string[][] = [];
    const ran: string[] = [];
    const named = (name: string, scopes: readonly string[]) => make(name, () => ran.push(name), { scopes });
    const { runtime } = world({
      planner: (run) => {
        seen.push(run.tools.list().map((tool) => tool.name));
        if (run.trajectory.count === 0) expect(run.tools.get('admin')).toBeUndefined();
        return run.trajectory.count === 0 ? call('admin') : run.trajectory.count === 1 ? call('mail') : finish();
      },
      tools: [named('admin', ['root']), named('mail', ['mail']), named('both', ['mail', 'root']), named('free', [])],
    });
    const run = await start({ runtime }, { scopes: ['mail'] });
    await run.result();
    expect(seen[0]).toEqual(['free', 'mail']);
    expect(ran).toEqual(['mail']);
    const [refused] = (await run.state()).steps;
    expect(refused?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'tool_not_found' } });
    // The same words as for a name that nobody knows.
    expect(JSON.stringify(refused?.calls[0]?.outcome)).not.toContain('scope');
  });
});

describe('a planner and tools that never wait', () => {
  it('hold up neither other runs nor timers nor a signal that cancels', async () => {
    const journal = memoryJournal();
    const at = make('at_once', () => 'value');
    const planner: PlannerFunction = ({ query, trajectory }) =>
      query === 'short' && trajectory.count === 3 ? finish('done') : call('at_once');
    const runtime = createRuntime({ planner, tools: [at], journal, limits: { steps: 20_000 } });
    onTestFinished(() => runtime.close());
    const cancel = new AbortController();
    const long = await runtime.start('long', { identity: local('ana'), signal: cancel.signal });
    const short = await runtime.start('short', { identity: local('bob') });
    expect(await short.result()).toMatchObject({ reason: 'goal' });
    setImmediate(() => cancel.abort());
    const result = await long.result();
    expect(result).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(result.status === 'paused' ? 0 : result.usage.steps).toBeLessThan(2_000);
  });

  it('may give something to wait for that is a function', async () => {
    const then = (done: (value: Json) => void): void => done('made');
    const lazy = make('lazy', () => Object.defineProperty(() => {}, 'then', { value: then }) as never);
    const run = await start(world({ planner: script(call('lazy')), tools: [lazy] }));
    await run.result();
    expect(observations(await run.state())).toEqual(['made']);
  });
});
