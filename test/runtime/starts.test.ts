/** Runs that begin later, or are started under a key, and how runs are found. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { StartOptions } from '#pilotage';
import { VirtualClock } from '#testing';
import { call, finish, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { cutJournal } from '../kit/journals.ts';
import { echo, holding } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { type WorldOptions, world } from '../kit/world.ts';

const MINUTE = 60_000;
const STORES = {
  memory: (clock: VirtualClock) => memoryJournal({ clock }),
  sqlite: (clock: VirtualClock) => sqliteJournal({ path: temporaryFile(), clock }),
};

describe.each(Object.entries(STORES))('a start in %s', (_name, open) => {
  function scene(options: Partial<WorldOptions> = {}) {
    const clock = options.clock ?? new VirtualClock();
    const planner = watched(({ query }) => finish(`re ${query}`));
    const made = world({ planner, tools: [echo], journal: open(clock), clock, ...options });
    const start = (query: string, more: StartOptions = {}) => made.runtime.start(query, more);
    return { ...made, planner, start };
  }

  it('at a time is pending until then, and is listed with that time', async () => {
    const { start, clock, journal, planner, runtime } = scene();
    const at = clock.now() + MINUTE;
    const run = await start('later', { at: new Date(at) });
    expect(await journal.get(run.id)).toMatchObject({ status: 'pending', wakeAt: at, conversation: false });
    clock.advance(MINUTE - 1);
    await quiet();
    expect(planner.views).toHaveLength(0);
    clock.advance(100);
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 're later' });
    await runtime.close();
  });

  it('at a time is begun by another process when the one that stored it has died', async () => {
    const clock = new VirtualClock();
    const journal = open(clock);
    const cut = cutJournal(journal);
    const first = scene({ clock, journal: cut.journal });
    const run = await first.start('later', { at: new Date(clock.now() + MINUTE).toISOString() });
    cut.cut();
    const second = scene({ clock, journal });
    second.runtime.work();
    clock.advance(MINUTE);
    await until(async () => {
      clock.advance(1_000);
      await quiet();
      return (await journal.get(run.id))?.status === 'finished';
    });
    expect([first.planner.views.length, second.planner.views.length]).toEqual([0, 1]);
    await second.runtime.close();
  });

  it('at a time is cancelled before it begins, and one in the past begins at once', async () => {
    const { start, clock, planner, runtime } = scene();
    const run = await start('later', { at: clock.now() + MINUTE });
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(planner.views).toHaveLength(0);
    expect(await (await start('now', { at: clock.now() - MINUTE })).result()).toMatchObject({ payload: 're now' });
    await runtime.close();
  });

  it('at a time hears what is said to it before, and begins no earlier', async () => {
    const { start, clock, planner, journal, runtime } = scene();
    const run = await start('later', { at: clock.now() + MINUTE });
    await run.steer('USER_MESSAGE', { message: 'one more thing' });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    expect([planner.views.length, (await journal.get(run.id))?.wakeAt]).toEqual([0, clock.now() + MINUTE]);
    clock.advance(MINUTE + 100);
    await run.result();
    expect(planner.views[0]?.trajectory.steering).toHaveLength(1);
    await runtime.close();
  });

  it('under a singleton key gives the run under way, or starts one', async () => {
    const hold = holding();
    const planner = watched(({ trajectory: { count } }) => (count === 0 ? call('hold') : finish('done')));
    const { start, runtime } = scene({ planner, tools: [hold.tool] });
    const singleton = { key: 'sync' };
    const first = await start('one', { singleton });
    await hold.entered;
    const again = await start('two', { singleton, identity: local('ben') });
    expect(again.id).toBe(first.id);
    hold.release();
    expect(await again.result()).toMatchObject({ status: 'finished' });
    expect((await start('three', { singleton })).id).not.toBe(first.id);
    await runtime.close();
  });

  it('debounced runs once, with the last query, in whichever process', async () => {
    const clock = new VirtualClock();
    const journal = open(clock);
    const [one, other] = [scene({ clock, journal }), scene({ clock, journal })];
    const debounce = { key: 'save', waitMs: 1_000 };
    const first = await one.start('a', { debounce });
    // Somebody reads it meanwhile.
    expect((await first.state()).query).toBe('a');
    clock.advance(900);
    await quiet();
    const last = await other.start('ab', { debounce });
    expect(last.id).toBe(first.id);
    clock.advance(900);
    await quiet();
    expect(one.planner.views.length + other.planner.views.length).toBe(0);
    clock.advance(200);
    expect(await first.result()).toMatchObject({ payload: 're ab' });
    expect((await first.state()).query).toBe('ab');
    expect(one.planner.views.length + other.planner.views.length).toBe(1);
    await one.runtime.close();
    await other.runtime.close();
  });

  it('throttled waits for its time, and beyond the rate it is refused', async () => {
    const { start, clock, journal, runtime } = scene();
    const from = clock.now();
    const throttle = { key: 'mail', limit: 1, perMs: 1_000 };
    const runs = [await start('1', { throttle }), await start('2', { throttle }), await start('3', { throttle })];
    const begin = await Promise.all(runs.map(async ({ id }) => (await journal.get(id))?.wakeAt));
    expect(begin.slice(1)).toEqual([from + 1_000, from + 2_000]);
    clock.advance(1_100);
    expect(await runs[1]?.result()).toMatchObject({ payload: 're 2' });
    const rate = { key: 'mail', limit: 1, perMs: 1_000 };
    await start('4', { rate });
    await expect(start('5', { rate })).rejects.toMatchObject({
      code: 'rate_limited',
      data: { allowedAt: clock.now() + 1_000 },
    });
    await runtime.close();
  });

  it('is found by its labels and by its words; a fork keeps the labels', async () => {
    const { start, runtime } = scene();
    const run = await start('Send the parcel', { labels: { order: '17' } });
    await run.result();
    const fork = await run.fork();
    await fork.result();
    const ids = async (query: Parameters<typeof runtime.list>[0]) =>
      (await runtime.list(query)).map(({ identity }) => identity.run);
    expect(await ids({ labels: { order: '17' } })).toEqual([fork.id, run.id]);
    expect(await ids({ text: 'THE PARCEL', agent: 'function' })).toEqual([fork.id, run.id]);
    expect(await ids({ text: 'letter' })).toEqual([]);
    await runtime.erase({ tenant: 'local', user: 'local' });
    expect(await ids({ labels: { order: '17' } })).toEqual([]);
    await runtime.close();
  });

  it('with options that cannot be is refused', async () => {
    const { start, runtime } = scene();
    const key = { key: 'k' };
    const wrong: [StartOptions, RegExp][] = [
      [{ at: 'tomorrow' }, /cannot be read as a time/],
      [{ at: '2027-01-01T09:00:00' }, /with its zone/],
      [{ at: '2027-02-31T09:00:00Z' }, /cannot be read as a time/],
      [{ at: Number.NaN }, /cannot be read/],
      [{ at: 1, conversation: true }, /does not become a turn/],
      [{ singleton: key, rate: { ...key, limit: 1, perMs: 1 } }, /either singleton or rate/],
      [{ at: 1, throttle: { ...key, limit: 1, perMs: 1 } }, /either at or throttle/],
      [{ rate: { ...key, limit: 1_001, perMs: 1 } }, /at most 1000/],
      [{ debounce: { ...key, waitMs: 0 } }, /waitMs/],
      [{ debounce: { ...key, waitMs: 10, maxWaitMs: 9 } }, /maxWaitMs .* is 9, less than waitMs \(10\)/],
      [{ singleton: { key: '' } }, /1 to 256 characters/],
      [{ labels: { a: 1 } as never }, /label "a"/],
      [{ labels: { '': 'b' } }, /1 to 64 characters/],
      [{ labels: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`l${n}`, 'x'])) }, /at most 32/],
    ];
    for (const [options, message] of wrong) await expect(start('q', options), String(message)).rejects.toThrow(message);
    expect(await runtime.list()).toEqual([]);
    await runtime.close();
  });
});
