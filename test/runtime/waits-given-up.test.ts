/** Waits of calls that end while their call is under way, and calls that wait when nothing more is wanted of them. */
import { describe, expect, it } from 'vitest';
import type { CallParallel, Outcome } from '#core';
import { memoryJournal } from '#journal';
import type { RunSnapshot } from '#state';
import { later } from '#tools';
import { call, finish, named, parallel, script } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const outcomesOf = ({ steps }: RunSnapshot): readonly Outcome[] =>
  steps.flatMap(({ calls }) => calls.map(({ outcome }) => outcome));

const race = { join: { kind: 'first_success' } } as const;

describe('a wait that ends while its call is under way', () => {
  it('lets the call go on when it is parked again', async () => {
    const working = gate();
    const goOn = gate();
    const two = make('two', async (_, context) => {
      const waits = [context.sleep({ forMs: 100 }), context.sleep({ forMs: 1_000 })];
      await waits[0];
      await context.once('work', async () => {
        working.open();
        await goOn.opened;
      });
      await waits[1];
      return 'both';
    });
    // Whenever it ends a wait, the run is looked at, and the time of the other call's wait has come.
    const beats = make('beats', async (_, context) => {
      for (let beat = 0; beat < 30; beat += 1) await context.sleep({ forMs: 100 });
      return 'beaten';
    });
    const journal = memoryJournal();
    const made = world({ planner: script(parallel(named('two', 'beats'))), tools: [two, beats], journal });
    const run = await start(made);
    await advanceUntil(made.clock, async () =>
      (await entriesOf(journal, run, 'wait_ended')).some(({ call: of, wait }) => of === 0 && wait === 1),
    );
    await working.opened;
    const isOver = async (wait: number): Promise<boolean> =>
      (await entriesOf(journal, run, 'wait_ended')).some((entry) => entry.call === 0 && entry.wait === wait);
    await advanceUntil(made.clock, () => isOver(2));
    goOn.open();
    await advanceUntil(made.clock, async () => (await journal.get(run.id))?.status === 'finished');
    expect(outcomesOf(await run.state())).toMatchObject([{ value: 'both' }, { value: 'beaten' }]);
    expect((await entriesOf(journal, run, 'call_waits')).filter((entry) => entry.call === 0)).toMatchObject([
      { waits: [{ wait: 1 }, { wait: 2 }] },
      { waits: [], seen: 1 },
    ]);
  });
});

describe('a call that is stopped when it has just begun to wait', () => {
  const ask = make('ask', (_, context) => context.ask({ question: 'Well?' }), { effect: 'once' });

  it('is not in doubt, whatever its effect: it waits as one does that is parked', async () => {
    const made = world({
      planner: script(parallel(named('ask', 'fast'), race)),
      tools: [ask, make('fast', () => 'fast')],
    });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomesOf(await run.state())).toMatchObject([
      { kind: 'cancelled', error: { code: 'cancelled' } },
      { value: 'fast' },
    ]);
    expect(await made.runtime.waiting()).toEqual([]);
  });

  it('lets its run be cancelled', async () => {
    const asks = gate();
    const asking = make(
      'asking',
      (_, context) => {
        asks.open();
        return context.ask({ question: 'Well?' });
      },
      { effect: 'once' },
    );
    const made = world({ planner: script(call('asking')), tools: [asking] });
    const run = await start(made);
    await asks.opened;
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(outcomesOf(await run.state())).toMatchObject([{ kind: 'cancelled' }]);
  });
});

describe('a call that has been made, and whose value comes later', () => {
  const render = make('render', () => later({ key: 'film' }), { effect: 'once' });

  it('was not cancelled when another call has won', async () => {
    const quick = make('quick', () => 'quick');
    const { runtime } = world({ planner: script(parallel(named('render', 'quick'), race)), tools: [render, quick] });
    const run = await start({ runtime });
    await run.result();
    expect(outcomesOf(await run.state())).toMatchObject([
      { kind: 'unknown', error: { code: 'outcome_unknown' } },
      { value: 'quick' },
    ]);
  });

  it('was not cancelled with its run, which says so', async () => {
    const { runtime, journal } = world({ planner: script(call('render')), tools: [render] });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await run.cancel();
    expect(await run.result()).toMatchObject({ metadata: { in_doubt: [{ tool: 'render' }] } });
    expect(await entriesOf(journal, run, 'call_ended')).toMatchObject([{ outcome: { kind: 'unknown' }, attempts: 1 }]);
  });

  it('is not made a second time by a plan that is made anew', async () => {
    let made = 0;
    const pays = make(
      'pays',
      () => {
        made += 1;
        return later({ key: 'paid' });
      },
      { effect: 'once' },
    );
    const plan: CallParallel = {
      kind: 'call_parallel',
      plan: 'p',
      branches: [{ tool: 'pays', args: {}, reuse: true }],
    };
    const planner = (run: Parameters<ReturnType<typeof script>>[0]) => (run.trajectory.count < 2 ? plan : finish());
    const { runtime, journal } = world({ planner, tools: [pays] });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await run.steer('REDIRECT', { goal: 'elsewhere' });
    await run.result();
    expect(made).toBe(1);
    expect(outcomesOf(await run.state()).map(({ kind }) => kind)).toEqual(['unknown', 'unknown']);
  });

  it('takes no settlement, which is told what brings its value, and is unknown when somebody cancels it', async () => {
    const { runtime, journal } = world({ planner: script(call('render')), tools: [render] });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await expect(run.settle(undefined, { happened: true, value: 'film.mp4' })).rejects.toMatchObject({
      code: 'pause_not_found',
      message: expect.stringContaining('"film", which a signal brings'),
    });
    await run.cancelCall({ step: 0, call: 0 }, { reason: 'too late' });
    await run.result();
    expect(outcomesOf(await run.state())).toMatchObject([
      {
        kind: 'unknown',
        error: { message: expect.stringMatching(/cancelled the call: too late\. render was called/) },
      },
    ]);
  });

  it('keeps its place in the budget while it waits', async () => {
    const planner = script(parallel(named('render', 'render'), { onInvalid: 'per_branch' }));
    const { runtime, journal } = world({ planner, tools: [{ ...render, concurrency: 1 }] });
    const run = await start({ runtime }, { limits: { calls: 1 } });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    expect(await entriesOf(journal, run, 'call_ended')).toMatchObject([
      { outcome: { error: { code: 'budget_exceeded' } } },
    ]);
  });
});

describe('a call that waits in a plan', () => {
  const plan: CallParallel = {
    kind: 'call_parallel',
    plan: 'p',
    branches: [
      { id: 'a', tool: 'waits', args: {} },
      { id: 'b', tool: 'other', args: {}, after: ['a'] },
    ],
  };
  const other = make('other', () => 'other');

  it('hears that the goal was changed, and ends by itself', async () => {
    const waits = make('waits', async (_, context) => {
      try {
        return await context.event({ key: 'never' });
      } catch (error) {
        return (error as { code: string }).code;
      }
    });
    const { runtime, journal } = world({ planner: script(plan), tools: [waits, other] });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await run.steer('REDIRECT', { goal: 'elsewhere' });
    await run.result();
    expect(outcomesOf(await run.state())).toMatchObject([
      { kind: 'value', value: 'superseded' },
      { kind: 'skipped', error: { code: 'plan_redirected' } },
    ]);
  });

  it('cannot be changed any more by whoever resumes the plan', async () => {
    const waits = make('waits', (_, context) => context.event({ key: 'never' }));
    const { runtime, journal } = world({ planner: script(plan), tools: [waits, other] });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await run.pause();
    await until(async () => (await journal.get(run.id))?.status === 'paused');
    await expect(run.resume({ nodes: { a: { skip: true } } })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.resume({ nodes: { b: { skip: true } } });
    await until(async () => (await entriesOf(journal, run, 'resumed')).length === 1);
    await run.cancel();
  });
});
