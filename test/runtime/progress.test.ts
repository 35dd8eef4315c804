/** A run that goes round in circles: a hint first, then a pause or an end, as set. */
import { describe, expect, it } from 'vitest';
import type { Decision } from '#core';
import { memoryJournal } from '#journal';
import type { ProgressGuard } from '#runtime';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { call, finish, named, parallel, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, outcomes, pausesOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

/** The same decisions over and over, `count` of them, and then an end. */
function rounds(period: readonly Decision[], count: number) {
  return watched(({ trajectory }) =>
    trajectory.count < count ? (period[trajectory.count % period.length] as Decision) : finish('done'),
  );
}

function circling(planner: ReturnType<typeof rounds>, progress?: ProgressGuard, tools: Tool[] = [echo]): World {
  return world({ planner, tools, ...(progress === undefined ? {} : { progress }) });
}

/** For each step, what the planner was told of it. */
function hints({ views }: ReturnType<typeof rounds>): (string | undefined)[] {
  return views.map(({ noProgress }) => noProgress && `${noProgress.period}x${noProgress.times}`);
}

const A = call('echo', { of: 'a' });
const B = call('echo', { of: 'b' });
const C = call('echo', { of: 'c' });

describe('the hint', () => {
  it('comes to the planner after three equal steps, with an entry and an event; the run goes on', async () => {
    const planner = rounds([A], 4);
    const made = circling(planner);
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { steps: 4 } });
    expect(hints(planner)).toEqual([undefined, undefined, undefined, '1x3', '1x4']);
    expect(await entriesOf(made.journal, run, 'no_progress')).toMatchObject([
      { step: 3, period: 1, times: 3 },
      { step: 4, period: 1, times: 4 },
    ]);
    expect(only(await collect(run), 'planner.no_progress')).toMatchObject([
      { step: 3, period: 1, times: 3 },
      { step: 4, period: 1, times: 4 },
    ]);
  });

  it('A, B, A, B is a circle of two, and A, B, C one of three', async () => {
    const two = rounds([A, B], 7);
    await (await start(circling(two))).result();
    expect(hints(two)).toEqual([...Array(6).fill(undefined), '2x3', '2x3']);
    const three = rounds([A, B, C], 10);
    await (await start(circling(three))).result();
    expect(hints(three)).toEqual([...Array(9).fill(undefined), '3x3', '3x3']);
  });

  it('is gone as soon as a step is another', async () => {
    const planner = watched(({ trajectory: { count } }) => [A, A, A, B, A, A][count] ?? finish());
    await (await start(circling(planner))).result();
    expect(hints(planner)).toEqual([undefined, undefined, undefined, '1x3', undefined, undefined, undefined]);
  });

  it('does not come when the results differ: a poll that brings something new is progress', async () => {
    let count = 0;
    const poll = make('poll', () => (count += 1));
    const planner = rounds([call('poll')], 8);
    await (await start(circling(planner, undefined, [poll]))).result();
    expect(hints(planner)).toEqual(Array(9).fill(undefined));
  });

  it('comes for failures, too, and for calls beside each other', async () => {
    const fails = make('fails', () => {
      throw new Error('always the same');
    });
    const planner = rounds([parallel(named('echo', 'fails'))], 3);
    const run = await start(circling(planner, undefined, [echo, fails]));
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value', 'error']);
    expect(hints(planner)).toEqual([undefined, undefined, undefined, '1x3']);
  });

  it('does not look at call ids, which are fresh each time', async () => {
    const planner = watched(({ trajectory: { count } }) =>
      count < 3 ? { ...(A as Extract<Decision, { kind: 'call_tool' }>), callId: `call_${count}` } : finish(),
    );
    await (await start(circling(planner))).result();
    expect(hints(planner).at(-1)).toBe('1x3');
  });

  it('comes after as many times as is set', async () => {
    const planner = rounds([A], 6);
    await (await start(circling(planner, { hintAfter: 5 }))).result();
    expect(hints(planner)).toEqual([...Array(5).fill(undefined), '1x5', '1x6']);
  });

  it('is told once for a step, also when another process takes the run over there', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const stuck = watched(({ trajectory: { count } }, signal) =>
      count < 3 ? A : new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    const first = world({ planner: stuck, tools: [echo], journal, clock });
    const run = await start(first);
    await until(() => stuck.views.length === 4);
    await first.runtime.close();
    const planner = rounds([A], 3);
    const second = world({ planner, tools: [echo], journal, clock });
    await second.runtime.run(run.id).resume();
    await second.runtime.run(run.id).result();
    expect(hints(planner)).toEqual(['1x3']);
    expect(await entriesOf(journal, run, 'no_progress')).toHaveLength(1);
  });
});

describe('the pause', () => {
  it('comes after twice as many times; nothing of the run is lost, and no step is counted for it', async () => {
    const planner = rounds([A], 7);
    const made = circling(planner, { action: 'pause' });
    const run = await start(made);
    expect(await pausesOf(run)).toMatchObject([
      { reason: 'constraints_conflict', payload: { no_progress: true, period: 1, times: 6 } },
    ]);
    expect(planner.views).toHaveLength(6);
    expect((await run.state()).totals.steps).toBe(6);
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'paused' });
  });

  it('after a resume it counts anew: three more until the hint, six until the pause', async () => {
    const planner = rounds([A], 20);
    const made = circling(planner, { action: 'pause' });
    const run = await start(made);
    await pausesOf(run);
    const asked = planner.views.length;
    await run.resume();
    expect(await pausesOf(run)).toMatchObject([{ payload: { times: 6 } }]);
    // The first after the resume is still told of the circle that it was in.
    expect(hints(planner).slice(asked)).toEqual(['1x6', undefined, undefined, '1x3', '1x4', '1x5']);
    expect((await run.state()).totals.steps).toBe(12);
    await run.resume();
    await pausesOf(run);
    expect((await run.state()).totals.steps).toBe(18);
  });

  it('comes when it is set to, after a circle of two as well', async () => {
    const planner = rounds([A, B], 20);
    const run = await start(circling(planner, { hintAfter: 2, action: 'pause', actAfter: 3 }));
    expect(await pausesOf(run)).toMatchObject([{ payload: { period: 2, times: 3 } }]);
    expect((await run.state()).totals.steps).toBe(6);
    expect(hints(planner)).toEqual([undefined, undefined, undefined, undefined, '2x2', '2x2']);
  });

  it('is answered as any other, and can be the end', async () => {
    const run = await start(circling(rounds([A], 9), { action: 'pause' }));
    await pausesOf(run);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled', metadata: { cancel_while_paused: true } });
  });
});

describe('the end', () => {
  it('comes as no_path, and says why', async () => {
    const planner = rounds([A], 9);
    const made = circling(planner, { action: 'end' });
    const run = await start(made);
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'no_path',
      metadata: { no_progress: true, period: 1, times: 6 },
      usage: { steps: 6 },
    });
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'finished' });
    expect((await collect(run)).slice(-2)).toMatchObject([
      { type: 'planner.no_progress', step: 6, times: 6 },
      { type: 'planner.finish', reason: 'no_path' },
    ]);
  });

  it('does not come to a planner that takes the hint', async () => {
    const planner = watched(({ noProgress, trajectory }) =>
      noProgress === undefined && trajectory.count < 20 ? A : finish('another way'),
    );
    const run = await start(circling(planner, { action: 'end' }));
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: 'another way', usage: { steps: 3 } });
  });
});

describe('settings', () => {
  it.each<[string, unknown]>([
    ['hintAfter', { hintAfter: 1 }],
    ['hintAfter', { hintAfter: 2.5 }],
    ['actAfter', { actAfter: 2 }],
    ['actAfter', { action: 'end', actAfter: 13 }],
    ['action', { action: 'explode' }],
  ])('a bad %s is refused by name', (name, progress) => {
    expect(() => circling(rounds([A], 1), progress as ProgressGuard)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(`progress.${name}`) }),
    );
  });

  it('a late hint needs no other number beside it', async () => {
    const planner = rounds([A], 8);
    await (await start(circling(planner, { hintAfter: 7 }))).result();
    expect(hints(planner).at(-2)).toBe('1x7');
  });
});
