/** Nothing of a step runs on: what is stopped, how many run at once, and that every branch has one outcome. */
import { describe, expect, it } from 'vitest';
import { call, finish, named, parallel, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, kindsOf, observations, outcomes } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

describe('structured concurrency', () => {
  it('PX-21 closes the step only when aborted branches have settled', async () => {
    const noticed = gate();
    const settle = gate();
    const { journal, ...rest } = world({
      planner: script(parallel(named('fast', 'careful'), { join: { kind: 'first_success' } })),
      tools: [
        make('fast', () => 'fast'),
        make('careful', async (_, { signal }) => {
          await aborted(signal).catch(() => noticed.open());
          await settle.opened;
          throw new Error('cleaned up');
        }),
      ],
    });
    const run = await start(rest);
    await noticed.opened;
    await quiet();
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended']);
    settle.open();
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value', 'cancelled']);
  });

  it('PX-21 reports what ignores its abort as abandoned after the grace time, and drops what it says later', async () => {
    const late = gate<string>();
    const { clock, ...rest } = world({
      planner: script(parallel(named('fast', 'deaf'), { join: { kind: 'first_success' } }), call('other')),
      tools: [
        make('fast', () => 'fast'),
        make('deaf', () => late.opened),
        make('other', async () => {
          late.open('too late');
          await quiet();
        }),
      ],
    });
    const run = await start(rest);
    const events = collect(run);
    const before = clock.now();
    await advanceUntil(clock, async () => (await run.state()).steps.length > 0);
    expect(clock.now() - before).toBeLessThan(1_000);
    const calls = (await run.state()).steps[0]?.calls;
    expect(calls?.[1]?.outcome).toMatchObject({ kind: 'cancelled', error: { code: 'tool_abandoned' } });
    expect(only(await events, 'tool.late')).toMatchObject([{ step: 0, call: 1, tool: 'deaf' }]);
    expect(JSON.stringify(await run.state())).not.toContain('too late');
  });

  it('PX-21 takes a loser’s value that comes within the grace time as its outcome', async () => {
    const run = await start(
      world({
        planner: script(parallel(named('fast', 'polite'), { join: { kind: 'first_success' } })),
        tools: [
          make('fast', () => 'fast'),
          make('polite', async (_, { signal }) => {
            await aborted(signal).catch(() => {});
            return 'done all the same';
          }),
        ],
      }),
    );
    await run.result();
    const state = await run.state();
    expect(outcomes(state)).toEqual(['value', 'value']);
    expect(observations(state)[0]).toEqual([{ tool: 'fast', index: 0, value: 'fast' }]);
  });

  it('PX-22 runs 50 branches all at once', async () => {
    let running = 0;
    let most = 0;
    const run = await start(
      world({
        planner: script(parallel(named(...Array(50).fill('busy')))),
        tools: [
          make('busy', async () => {
            running += 1;
            most = Math.max(most, running);
            await quiet();
            running -= 1;
          }),
        ],
      }),
    );
    await run.result();
    expect(most).toBe(50);
    expect(outcomes(await run.state())).toEqual(Array(50).fill('value'));
  });

  it('W74 keeps to a tool’s own limit while others go on', async () => {
    const busy = { one: 0, two: 0 };
    const most = { one: 0, two: 0 };
    const limited = (name: 'one' | 'two', concurrency: number) =>
      make(
        name,
        async () => {
          busy[name] += 1;
          most[name] = Math.max(most[name], busy[name]);
          await quiet();
          busy[name] -= 1;
        },
        { concurrency },
      );
    const run = await start(
      world({
        planner: script(parallel([...named(...Array(6).fill('one')), ...named(...Array(6).fill('two'))])),
        tools: [limited('one', 1), limited('two', 3)],
      }),
    );
    await run.result();
    expect(most).toEqual({ one: 1, two: 3 });
    expect(outcomes(await run.state())).toEqual(Array(12).fill('value'));
  });

  it('PX-24 aborts all branches with the run, and every branch has an outcome', async () => {
    const entered = gate();
    let count = 0;
    const planner = watched(script(parallel(named(...Array(12).fill('wait')))));
    const { journal, ...rest } = world({
      planner,
      tools: [
        make('wait', (_, { signal }) => {
          count += 1;
          if (count === 12) entered.open();
          return aborted(signal);
        }),
      ],
    });
    const run = await start(rest);
    await entered.opened;
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    const state = await run.state();
    expect(outcomes(state)).toEqual(Array(12).fill('cancelled'));
    expect((await entriesOf(journal, run, 'call_ended')).map((entry) => entry.call).sort((a, b) => a - b)).toEqual([
      ...Array(12).keys(),
    ]);
    expect(planner.views).toHaveLength(1);
    expect(count).toBe(12);
  });

  it('PX-24 aborts a branch that waits to try again', async () => {
    const failed = gate();
    const { clock, ...rest } = world({
      planner: script(call('flaky')),
      tools: [
        make('flaky', () => {
          failed.open();
          throw Object.assign(new Error('busy'), { status: 503 });
        }),
      ],
    });
    const run = await start(rest);
    await failed.opened;
    await until(() => clock.pending > 1);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
    await rest.runtime.close();
    expect(clock.pending).toBe(0);
  });

  it('gives a deadline’s end to every branch', async () => {
    const made = world({
      planner: script(parallel(named('a', 'b')), finish()),
      tools: [make('a', (_, { signal }) => aborted(signal)), make('b', () => 'b')],
    });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 60_000 } });
    await until(async () => (await kindsOf(made.journal, run)).includes('call_ended'));
    made.clock.advance(60_000);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
  });
});

describe('a run whose planner and tools never wait', () => {
  it('still lets the event loop turn, so that a cancel is heard', async () => {
    const run = await start(
      world({ planner: () => ({ kind: 'call_tool', tool: 'echo', args: {} }), tools: [make('echo', () => 1)] }),
      { limits: { steps: 1_000_000 } },
    );
    // A real timer: that it fires at all is what is tested.
    const cancelled = new Promise<void>((resolve, reject) => {
      setTimeout(() => run.cancel().then(resolve, reject), 1);
    });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    await cancelled;
  });
});
