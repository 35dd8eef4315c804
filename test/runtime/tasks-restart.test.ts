/** Tasks over restarts: two runtimes over one SQLite file, the first of which is closed, or as good as dead. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Decision, PlannerFunction } from '#core';
import type { Append, Journal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { VirtualClock } from '#testing';
import { call, finish, pause, script, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import { entriesOf, hasEnded, observations, payloadOf } from '../kit/run-record.ts';
import { ANA, awaits, PARENT, plays, spawns } from '../kit/tasks.ts';
import { echo, holding } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

/** One process after another over one file, on one clock. */
function machine(): { next(options: WorldOptions, diesAfter?: number): World; die(): void } {
  const path = temporaryFile();
  const clock = new VirtualClock();
  let die = (): void => {};
  return {
    next: (options, diesAfter = Number.POSITIVE_INFINITY) => {
      const stored = sqliteJournal({ path, clock });
      onTestFinished(() => stored.close());
      const { journal, cut } = cutJournal(stored);
      die = cut;
      let appends = 0;
      const append = async (request: Append): Promise<void> => {
        await journal.append(request);
        appends += 1;
        if (appends === diesAfter) cut();
      };
      return world({ ...options, journal: changed(journal, { append }), clock });
    },
    die: () => die(),
  };
}

const sits: Decision = { kind: 'request_pause', reason: 'external_event' };

describe('TK-41 a task that is pending when its process ends is run by the next', () => {
  it.each(['closed', 'dead'] as const)('one that a program started (%s)', async (how) => {
    const { tool, entered } = holding();
    const pc = machine();
    const one = pc.next({ planner: script(call('hold')), tools: [tool], maxLiveRuns: 1 });
    await start(one, { identity: PARENT });
    await entered;
    const { run } = await one.runtime.tasks.spawn('later', { identity: ANA, idempotencyKey: 'k' });
    expect(await one.runtime.tasks.get(ANA, run.id)).toMatchObject({ status: 'pending' });
    if (how === 'dead') pc.die();
    else await one.runtime.close();
    const two = pc.next({ planner: script(), tools: [tool] });
    const stop = two.runtime.work();
    await advanceUntil(two.clock, () => hasEnded(two, run.id));
    stop();
    expect(await two.runtime.tasks.get(ANA, run.id)).toMatchObject({ status: 'complete', result: 'done' });
    expect(await two.runtime.tasks.spawn('later', { identity: ANA, idempotencyKey: 'k' })).toMatchObject({
      reused: true,
    });
    await two.runtime.close();
  });

  it.each([
    'closed',
    'dead',
  ] as const)('one that a planner started, and the owner’s await has its result (%s)', async (how) => {
    const { tool, entered } = holding();
    const pc = machine();
    const scripts: Record<string, PlannerFunction> = { q: script(spawns('child'), awaits('p.0.0')) };
    const one = pc.next({ planner: plays({ ...scripts, child: script(call('hold')) }), tools: [tool] });
    await start(one, { identity: PARENT });
    await entered;
    await until(async () => (await one.journal.get('p'))?.status === 'waiting');
    if (how === 'dead') pc.die();
    else await one.runtime.close();
    const child = watched(script(call('hold')));
    const released = holding();
    released.release();
    const two = pc.next({ planner: plays({ ...scripts, child }), tools: [released.tool] });
    const stop = two.runtime.work();
    await advanceUntil(two.clock, () => hasEnded(two, 'p'));
    stop();
    const run = two.runtime.run('p');
    expect(observations(await run.state())[1]).toEqual({ task_id: 'p.0.0', status: 'complete', result: 'done' });
    expect(await entriesOf(two.journal, run, 'task_ended')).toHaveLength(1);
    await two.runtime.close();
  });
});

it.each(
  Array.from({ length: 9 }, (_, index) => index + 1),
)('TK-37 a result reaches the planner once when the process dies after append %i, wherever that is', async (diesAfter) => {
  const pc = machine();
  const parent = watched((run, signal) =>
    run.trajectory.background.length > 0
      ? finish(run.trajectory.background.map(({ group }) => group.id))
      : script(spawns('child'), sits, sits)(run, signal),
  );
  const options = { planner: plays({ q: parent, child: script(call('echo')) }), tools: [echo] };
  const one = pc.next(options, diesAfter);
  await start(one, { identity: PARENT });
  await quiet();
  pc.die();
  const two = pc.next(options);
  const stop = two.runtime.work();
  await advanceUntil(two.clock, () => hasEnded(two, 'p'));
  stop();
  const run = two.runtime.run('p');
  expect(await payloadOf(run)).toEqual(['group:p.0.0']);
  expect(await entriesOf(two.journal, run, 'task_ended')).toHaveLength(1);
  expect(await entriesOf(two.journal, run, 'group_ended')).toHaveLength(1);
  expect(await entriesOf(two.journal, run, 'spawned')).toHaveLength(1);
  for (const { trajectory } of parent.views) expect(trajectory.background.length).toBeLessThanOrEqual(1);
  await two.runtime.close();
});

it('TK-43 the tasks of a session are all there when the file is opened again', async () => {
  const pc = machine();
  const planner = plays({ q: script(spawns('one'), spawns('two')), one: script(pause) });
  const one = pc.next({ planner });
  await (await start(one, { identity: PARENT })).result();
  const { run } = await one.runtime.tasks.spawn('three', { identity: ANA });
  await run.result();
  await until(() => hasEnded(one, 'p.1.0'));
  await until(async () => (await one.journal.get('p.0.0'))?.status === 'paused');
  const before = await one.runtime.tasks.list(ANA);
  await one.runtime.close();
  const two = pc.next({ planner });
  expect(await two.runtime.tasks.list(ANA)).toEqual(before);
  expect(before.map(({ id }) => id).sort()).toEqual(['p', 'p.0.0', 'p.1.0', run.id].sort());
  expect(await two.runtime.tasks.list(ANA, { parent: 'p', status: ['paused'] })).toMatchObject([{ id: 'p.0.0' }]);
  expect(await two.runtime.tasks.watchGroup(ANA, 'p', 'group:p.1.0').catch(({ code }: { code: string }) => code)).toBe(
    'run_ended',
  );
  await two.runtime.close();
});

it('a kept task that pauses is answered through its owner in the next process, and its first step ran once', async () => {
  const pc = machine();
  const child = watched(script(call('hold'), pause));
  const planner = plays({ q: script(spawns('child', { task: 'foreground' })), child });
  const { tool, release, runs } = holding();
  release();
  const one = pc.next({ planner, tools: [tool] });
  expect(await (await start(one, { identity: PARENT })).result()).toMatchObject({ pauses: [{ run: 'p.0.0' }] });
  pc.die();
  const two = pc.next({ planner, tools: [tool] });
  const run = two.runtime.run('p');
  await run.approve(undefined, { payload: { yes: true } });
  await until(() => hasEnded(two, 'p'));
  expect(await payloadOf(run)).toBe('done');
  expect([runs(), child.views.length]).toEqual([1, 3]);
  await two.runtime.close();
});

it('of two runtimes over one file, a spawned task is run by one of them alone', async () => {
  const path = temporaryFile();
  const clock = new VirtualClock();
  const journals: Journal[] = [sqliteJournal({ path, clock }), sqliteJournal({ path, clock })];
  onTestFinished(async () => {
    await Promise.all(journals.map((journal) => journal.close()));
  });
  const child = watched(script());
  const planner = plays({ q: script(spawns('child'), spawns('child'), awaits('p.0.0'), awaits('p.1.0')), child });
  const [one, two] = journals.map((journal) => world({ planner, journal, clock })) as [World, World];
  one.runtime.work();
  two.runtime.work();
  await start(one, { identity: PARENT });
  await advanceUntil(clock, () => hasEnded(two, 'p'));
  expect(child.views).toHaveLength(2);
  expect([...one.faults, ...two.faults]).toEqual([]);
  await Promise.all([one.runtime.close(), two.runtime.close()]);
});
