/** Which tasks run, and when: priorities, and how many at once. */
import { expect, it } from 'vitest';
import { local, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { call, finish, parallel, script } from '../kit/decisions.ts';
import { hasEnded, payloadOf } from '../kit/run-record.ts';
import { ANA, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, turn, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Notes the queries of the runs in the order in which they are asked for their first move. */
function noting(next: PlannerFunction): PlannerFunction & { readonly order: string[] } {
  const order: string[] = [];
  const planner: PlannerFunction = (run, signal) => {
    if (run.trajectory.count === 0) order.push(run.query);
    return next(run, signal);
  };
  return Object.assign(planner, { order });
}

it('TK-45 with one slot the task with the higher priority runs first, then the older one', async () => {
  const { tool, entered, release } = holding();
  const planner = noting(plays({ first: script(call('hold')) }));
  const made = world({ planner, tools: [tool], maxLiveRuns: 1 });
  await start(made, { query: 'first' });
  await entered;
  for (const [query, priority] of [
    ['low', -5],
    ['a', 0],
    ['high', 10],
    ['b', 0],
  ] as const) {
    await made.runtime.tasks.spawn(query, { identity: ANA, priority });
  }
  release();
  await until(() => planner.order.length === 5);
  expect(planner.order).toEqual(['first', 'high', 'a', 'b', 'low']);
});

it('TK-45 a planner’s tasks are ordered by the priority that it gave them', async () => {
  const { tool, release } = holding();
  release();
  const planner = noting(
    plays({
      q: script(
        parallel([spawning('low', {}, { priority: -5 }), spawning('middle'), spawning('high', {}, { priority: 10 })]),
        call('hold'),
      ),
    }),
  );
  const made = world({ planner, tools: [tool], maxLiveRuns: 1 });
  await (await start(made, { identity: PARENT })).result();
  await until(() => planner.order.length === 4);
  expect(planner.order).toEqual(['q', 'high', 'middle', 'low']);
});

it('TK-45, TK-14 prioritize moves a task in the queue; another process claims by it, too', async () => {
  const { tool, entered, release } = holding();
  const planner = noting(plays({ first: script(call('hold')) }));
  const made = world({ planner, tools: [tool], maxLiveRuns: 1 });
  await start(made, { query: 'first' });
  await entered;
  const { run: late } = await made.runtime.tasks.spawn('late', { identity: ANA });
  const { run: early } = await made.runtime.tasks.spawn('early', { identity: ANA, priority: 1 });
  expect(await made.runtime.tasks.prioritize(ANA, late.id, 5)).toBe(true);
  await made.runtime.tasks.prioritize(ANA, early.id, -5);
  await made.runtime.tasks.spawn('middle', { identity: ANA });
  release();
  await until(() => planner.order.length === 4);
  expect(planner.order).toEqual(['first', 'late', 'middle', 'early']);
});

it('TK-45 a worker that finds tasks in the journal takes the higher priority first', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const { tool, entered, release } = holding();
  const one = world({ planner: plays({ first: script(call('hold')) }), tools: [tool], maxLiveRuns: 1, journal, clock });
  await start(one, { query: 'first' });
  await entered;
  for (const [query, priority] of [
    ['low', -5],
    ['high', 10],
    ['middle', 0],
  ] as const) {
    await one.runtime.tasks.spawn(query, { identity: ANA, priority });
  }
  await one.runtime.close();
  release();
  const planner = noting(plays({}));
  const two = world({ planner, tools: [tool], maxLiveRuns: 1, journal, clock });
  const stop = two.runtime.work();
  await advanceUntil(clock, () => planner.order.length >= 3);
  stop();
  expect(planner.order.filter((query) => query !== 'first')).toEqual(['high', 'middle', 'low']);
});

it('RL-32 of 1000 tasks at most 10 are under way at once, and all end', async () => {
  let live = 0;
  let most = 0;
  const busy = make('busy', async () => {
    live += 1;
    most = Math.max(most, live);
    await turn();
    live -= 1;
  });
  const made = world({ planner: script(call('busy')), tools: [busy], maxLiveRuns: 10 });
  const spawned = await Promise.all(
    Array.from({ length: 1_000 }, () => made.runtime.tasks.spawn('q', { identity: ANA })),
  );
  const results = await Promise.all(spawned.map(({ run }) => run.result()));
  expect(results.every(({ status }) => status === 'finished')).toBe(true);
  expect(most).toBe(10);
  await until(() => made.clock.pending === 0);
});

it('RL-32, W119 tasks that a planner starts wait for room as all others', async () => {
  let live = 0;
  let most = 0;
  const busy = make('busy', async () => {
    live += 1;
    most = Math.max(most, live);
    await turn();
    live -= 1;
  });
  const made = world({
    planner: plays({
      q: thenTell(parallel(Array.from({ length: 16 }, () => spawning('child', { kind: 'foreground' })))),
      child: script(call('busy')),
    }),
    tools: [busy],
    maxLiveRuns: 3,
  });
  expect(await payloadOf(await start(made, { identity: PARENT }))).toHaveLength(16);
  expect(most).toBe(3);
});

it('RL-32 a run that waits for a task takes no slot: with one slot a chain of four ends', async () => {
  const made = world({
    planner: (run) => {
      const depth = Number(run.query);
      if (run.trajectory.count === 0 && depth < 4) return spawns(String(depth + 1), { task: 'foreground' });
      return finish(depth);
    },
    maxLiveRuns: 1,
  });
  const run = await start(made, { identity: PARENT, query: '0' });
  expect(await run.result()).toMatchObject({ status: 'finished', payload: 0 });
  expect(await made.runtime.tasks.list(ANA, { status: ['complete'] })).toHaveLength(5);
});

it('RL-32 one tenant takes no more than its part: another’s task runs although a hundred wait', async () => {
  const { tool, release, runs } = holding();
  const made = world({
    planner: plays({ slow: script(call('hold')) }),
    tools: [tool],
    maxLiveRuns: 10,
    maxLiveRunsPerTenant: 3,
  });
  const slow = await Promise.all(
    Array.from({ length: 100 }, () => made.runtime.tasks.spawn('slow', { identity: ANA })),
  );
  await until(() => runs() === 3);
  const { run } = await made.runtime.tasks.spawn('quick', { identity: { ...ANA, tenant: 'other' } });
  expect(await run.result()).toMatchObject({ status: 'finished', payload: 'quick' });
  await quiet();
  expect(runs()).toBe(3);
  release();
  await Promise.all(slow.map(({ run: each }) => each.result()));
});

it('RL-32 per tenant holds for tasks that a worker takes from the journal, too', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const full = world({ planner: plays({}), maxLiveRuns: 1, journal, clock });
  const { tool, entered, release, runs } = holding();
  const first = world({ planner: script(call('hold')), tools: [tool], maxLiveRuns: 1, journal, clock });
  await start(first, { identity: local('ana', { run: 'first' }) });
  await entered;
  for (let count = 0; count < 20; count += 1) await first.runtime.tasks.spawn('slow', { identity: ANA, priority: 5 });
  const { run: theirs } = await first.runtime.tasks.spawn('quick', { identity: { ...ANA, tenant: 'other' } });
  await first.runtime.close();
  await full.runtime.close();
  let live = 0;
  let most = 0;
  const busy = make('hold', async () => {
    live += 1;
    most = Math.max(most, live);
    await turn();
    live -= 1;
  });
  const worker = world({
    planner: plays({ slow: script(call('hold')) }),
    tools: [busy],
    maxLiveRuns: 10,
    maxLiveRunsPerTenant: 2,
    journal,
    clock,
  });
  worker.runtime.work();
  await advanceUntil(clock, async () => (await worker.runtime.tasks.list(ANA, { status: ['complete'] })).length === 21);
  expect(await hasEnded(worker, theirs.id)).toBe(true);
  expect(most).toBe(2);
  expect(runs()).toBe(1);
  release();
  await worker.runtime.close();
});
