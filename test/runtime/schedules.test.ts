/** Schedules: each fire time is begun once, whoever looks and whenever. */
import { describe, expect, it } from 'vitest';
import type { PlannerFunction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Runtime } from '#pilotage';
import { VirtualClock } from '#testing';
import { asks, call, finish } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { echo, holding, make, type Runs } from '../kit/tools.ts';
import { aborted, advanceUntil, type Gate, gate, quiet, until } from '../kit/waiting.ts';
import { type World, type WorldOptions, world } from '../kit/world.ts';

const STORES = {
  memory: (clock: VirtualClock): Journal => memoryJournal({ clock }),
  sqlite: (clock: VirtualClock): Journal => sqliteJournal({ path: temporaryFile(), clock, synchronous: 'normal' }),
};

const HOUR = 3_600_000;
const done: PlannerFunction = () => finish('done');
/** The first call of each run is held. */
const held: PlannerFunction = ({ trajectory: { count } }) => (count === 0 ? call('hold') : finish('done'));

describe.each(Object.entries(STORES))('schedules in %s', (name, open) => {
  function scene(options: Partial<WorldOptions> = {}): World {
    const clock = options.clock ?? new VirtualClock(Date.UTC(2026, 0, 1));
    return world({ planner: done, tools: [echo], journal: open(clock), clock, ...options });
  }
  const timesOf = async ({ runtime }: World, schedule = 's'): Promise<string[]> =>
    (await runtime.list({ schedule, limit: 200 }))
      .map((record) => new Date(record.schedule?.at ?? 0).toISOString())
      .reverse();

  it('start a run at each fire time, which is found by the schedule and its labels, and has the time in its id', async () => {
    const made = scene();
    const put = await made.runtime.schedules.put({
      id: 's',
      cron: '0 * * * *',
      query: 'look',
      input: { n: 1 },
      labels: { a: 'b' },
      overlap: 'parallel',
    });
    expect(put).toMatchObject({
      id: 's',
      status: 'active',
      revision: 1,
      nextAt: made.clock.now() + HOUR,
      agent: 'function',
    });
    for (let hour = 1; hour <= 3; hour += 1) {
      made.clock.advance(HOUR);
      await until(async () => (await timesOf(made)).length === hour);
    }
    expect(await timesOf(made)).toEqual([1, 2, 3].map((hour) => `2026-01-01T0${hour}:00:00.000Z`));
    const [run] = await made.runtime.list({ labels: { a: 'b' }, schedule: 's', limit: 1 });
    expect(run?.identity.run).toMatch(/^schedule_s_2026-01-01T03:00:00\.000Z_[0-9a-f]{16}$/);
    expect(run).toMatchObject({ query: 'look', conversation: false, schedule: { id: 's' } });
    const handle = made.runtime.run(run?.identity.run ?? '');
    expect(await handle.result()).toMatchObject({ status: 'finished' });
    expect((await handle.state()).context).toEqual({
      args: { n: 1 },
      meta: { schedule: 's', fire_time: '2026-01-01T03:00:00.000Z' },
    });
    expect(made.faults).toEqual([]);
    await made.runtime.close();
  });

  it('do not fire again for times that have passed while whoever puts other times stood still', async () => {
    const made = scene();
    const { clock, journal } = made;
    const schedule = { id: 's', query: 'look', overlap: 'parallel', catchUp: 'all' } as const;
    await made.runtime.schedules.put({ ...schedule, everyMs: 2_000 });
    const [asked, thawed] = [gate(), gate()];
    const put: Journal['schedules']['put'] = async (definition) => {
      asked.open();
      await thawed.opened;
      return journal.schedules.put(definition);
    };
    const schedules = changed(journal.schedules, { put });
    const frozen = world({ planner: done, tools: [echo], journal: changed(journal, { schedules }), clock });
    const others = frozen.runtime.schedules.put({ ...schedule, everyMs: 3_000 });
    await asked.opened;
    for (let fires = 1; fires <= 6; fires += 1) {
      clock.advance(2_000);
      await until(async () => (await timesOf(made)).length === fires);
    }
    thawed.open();
    expect((await others).nextAt).toBe(Date.UTC(2026, 0, 1, 0, 0, 15));
    clock.advance(3_000);
    await until(async () => (await timesOf(made)).length === 7);
    expect(new Set(await timesOf(made)).size).toBe(7);
    for (const { runtime } of [made, frozen]) await runtime.close();
  });

  it.each([
    ['that was fired', async () => {}],
    [
      'that was fired, also when they were triggered since',
      async ({ schedules }: Runtime) => void (await (await schedules.trigger('s')).result()),
    ],
    [
      'that was fired, also when that run is gone',
      async ({ sessions }: Runtime) =>
        void (await sessions.delete({ tenant: 'local', user: 'local', session: 'schedule:s' })),
    ],
  ])('of which other times are put by a clock that is behind go on after the last time %s', async (_, meanwhile) => {
    const made = scene();
    const { clock, journal } = made;
    await made.runtime.schedules.put({ id: 's', query: 'look', everyMs: 2_000 });
    clock.advance(2_000);
    await until(async () => (await timesOf(made)).length === 1);
    await until(async () => (await made.runtime.list({ schedule: 's', status: ['finished'] })).length === 1);
    await meanwhile(made.runtime);
    const behind = world({ planner: done, tools: [echo], journal, clock: new VirtualClock(Date.UTC(2025, 11, 31)) });
    const put = await behind.runtime.schedules.put({ id: 's', query: 'look', everyMs: 1_000 });
    expect(put.nextAt).toBe(Date.UTC(2026, 0, 1, 0, 0, 3));
    for (const { runtime } of [made, behind]) await runtime.close();
  });

  it('of which other times are put twice by a clock that is behind do not fire again what was fired by a run that is gone', async () => {
    const made = scene();
    const { clock, journal } = made;
    const schedule = { id: 's', query: 'look', overlap: 'parallel' } as const;
    await made.runtime.schedules.put({ ...schedule, everyMs: 2_000 });
    clock.advance(10_000);
    await until(async () => (await timesOf(made)).at(-1) === '2026-01-01T00:00:10.000Z');
    await until(async () => (await made.runtime.list({ schedule: 's', status: ['finished'] })).length === 5);
    const behind = world({ planner: done, tools: [echo], journal, clock: new VirtualClock(Date.UTC(2025, 11, 31)) });
    // The time before its next one is 00:00:00, by these times.
    await behind.runtime.schedules.put({ ...schedule, everyMs: 60_000 });
    await made.runtime.sessions.delete({ tenant: 'local', user: 'local', session: 'schedule:s' });
    const put = await behind.runtime.schedules.put({ ...schedule, everyMs: 2_000 });
    expect(put.nextAt).toBe(Date.UTC(2026, 0, 1, 0, 0, 12));
    for (const { runtime } of [made, behind]) await runtime.close();
  });

  it('are put again without an effect, stay paused, and go on without what the pause left out', async () => {
    const made = scene();
    const { schedules } = made.runtime;
    const options = { id: 's', everyMs: HOUR, query: 'look' };
    const first = await schedules.put(options);
    expect(await schedules.put(options)).toEqual(first);
    await schedules.pause('s');
    expect(await schedules.put({ ...options, query: 'look well' })).toMatchObject({ revision: 2, status: 'paused' });
    made.clock.advance(2.5 * HOUR);
    await quiet();
    expect(await timesOf(made)).toEqual([]);
    expect(await schedules.resume('s')).toMatchObject({ status: 'active', nextAt: Date.UTC(2026, 0, 1, 3) });
    made.clock.advance(HOUR);
    await until(async () => (await timesOf(made)).length > 0);
    expect(await timesOf(made)).toEqual(['2026-01-01T03:00:00.000Z']);
    expect((await made.runtime.list({ schedule: 's' }))[0]?.query).toBe('look well');
    expect(await schedules.delete('s')).toBe(true);
    expect([await schedules.get('s'), await schedules.list(), await schedules.delete('s')]).toEqual([
      undefined,
      [],
      false,
    ]);
    await made.runtime.close();
  });

  it('fire now when somebody triggers them, also while they are paused', async () => {
    const made = scene();
    await made.runtime.schedules.put({ id: 's', cron: '@daily', query: 'look' });
    const { nextAt } = await made.runtime.schedules.pause('s');
    const run = await made.runtime.schedules.trigger('s');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await made.runtime.schedules.get('s')).toMatchObject({ nextAt, lastRun: run.id, status: 'paused' });
    expect((await made.runtime.list({ schedule: 's' }))[0]?.schedule).toMatchObject({ triggered: true });
    await made.runtime.close();
  });

  it('start a run for each of many who trigger them at once, none of whom has to try again because of another', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const journal = open(clock);
    let looks = 0;
    const get: Journal['schedules']['get'] = (...args) => {
      looks += 1;
      return journal.schedules.get(...args);
    };
    const made = scene({ clock, journal: changed(journal, { schedules: changed(journal.schedules, { get }) }) });
    await made.runtime.schedules.put({ id: 's', cron: '@daily', query: 'look' });
    looks = 0;
    const runs = await Promise.all(Array.from({ length: 40 }, () => made.runtime.schedules.trigger('s')));
    expect(looks).toBe(40);
    await Promise.all(runs.map((run) => run.result()));
    expect(await timesOf(made)).toHaveLength(40);
    await made.runtime.close();
  });

  it('start a run for each of many processes that trigger them at once, and a failed change holds up none', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const journal = open(clock);
    const processes = Array.from({ length: 4 }, () => scene({ clock, journal }));
    const [made] = processes as [World];
    await made.runtime.schedules.put({ id: 's', cron: '@daily', query: 'look' });
    const none = made.runtime.schedules.put({ id: 's', cron: '0 0 30 2 *', query: 'look' });
    const [refused, ...runs] = await Promise.all([
      none.catch((error: unknown) => error),
      ...processes.flatMap(({ runtime: { schedules } }) => [schedules.trigger('s'), schedules.trigger('s')]),
    ]);
    expect(refused).toMatchObject({ code: 'invalid_config' });
    await Promise.all(runs.map((run) => run.result()));
    expect(await timesOf(made)).toHaveLength(8);
    for (const { runtime } of processes) await runtime.close();
  });

  describe('while the last run is under way', () => {
    async function overlapping(overlap: 'skip' | 'queue' | 'parallel') {
      const hold = holding();
      const made = scene({ planner: held, tools: [hold.tool] });
      await made.runtime.schedules.put({ id: 's', cron: '* * * * *', query: 'look', overlap });
      made.clock.advance(60_000);
      await hold.entered;
      made.clock.advance(60_000);
      await quiet();
      made.clock.advance(30_000);
      await quiet();
      return { made, hold };
    }

    it('skip: the fire times are left out', async () => {
      const { made, hold } = await overlapping('skip');
      expect(await timesOf(made)).toEqual(['2026-01-01T00:01:00.000Z']);
      hold.release();
      const [first] = await made.runtime.list();
      await made.runtime.run(first?.identity.run ?? '').result();
      made.clock.advance(30_000);
      await until(async () => (await timesOf(made)).length === 2);
      expect(await timesOf(made)).toEqual(['2026-01-01T00:01:00.000Z', '2026-01-01T00:03:00.000Z']);
      await made.runtime.close();
    });

    it('queue: the fire time waits for its end', async () => {
      const { made, hold } = await overlapping('queue');
      expect(await timesOf(made)).toEqual(['2026-01-01T00:01:00.000Z']);
      expect((await made.runtime.schedules.get('s'))?.nextAt).toBe(Date.UTC(2026, 0, 1, 0, 2));
      hold.release();
      await until(async () => (await timesOf(made)).length === 2);
      expect(await timesOf(made)).toEqual(['2026-01-01T00:01:00.000Z', '2026-01-01T00:02:00.000Z']);
      await made.runtime.close();
    });

    it.each([
      ['skip', '00:04'],
      ['queue', '00:02'],
    ] as const)('%s: also while runs that somebody triggered since hide it', async (overlap, next) => {
      const gates = new Map<string, Gate>();
      const holds: Runs = async (_, { identity: { run }, signal }) => {
        const free = gates.get(run) ?? gate();
        gates.set(run, free);
        await Promise.race([free.opened, aborted(signal)]);
      };
      const hold = make('hold', holds, { timeoutMs: HOUR });
      const made = scene({ planner: held, tools: [hold] });
      const { runtime, clock } = made;
      const fired = async (): Promise<string[]> => {
        const all = await runtime.list({ schedule: 's' });
        const own = all.flatMap(({ schedule }) => (schedule?.triggered === true ? [] : (schedule?.at ?? 0)));
        return own.reverse().map((at) => new Date(at).toISOString().slice(11, 16));
      };
      await runtime.schedules.put({ id: 's', cron: '* * * * *', query: 'look', overlap, catchUp: 'all' });
      clock.advance(60_000);
      await until(() => gates.size === 1);
      await runtime.schedules.trigger('s');
      await runtime.schedules.trigger('s');
      await until(() => gates.size === 3);
      const [first, second, third] = [...gates.keys()];
      // The last one ends first; while any of the others is under way, nothing is fired.
      for (const run of [third, first, second]) {
        gates.get(run ?? '')?.open();
        await runtime.run(run ?? '').result();
        if (run === second) break;
        clock.advance(60_000);
        await quiet();
        expect(await fired()).toEqual(['00:01']);
      }
      clock.advance(60_000);
      await until(() => gates.size > 3);
      expect((await fired()).slice(0, 2)).toEqual(['00:01', next]);
      await runtime.close();
    });

    it('parallel: the next one starts all the same', async () => {
      const { made, hold } = await overlapping('parallel');
      expect(await timesOf(made)).toEqual(['2026-01-01T00:01:00.000Z', '2026-01-01T00:02:00.000Z']);
      hold.release();
      await made.runtime.close();
    });
  });

  it.each([
    ['none', []],
    ['last', [5]],
    ['all', [1, 2, 3, 4, 5]],
  ] as const)('what nobody was there for: %s', async (catchUp, hours) => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const journal = open(clock);
    const before = scene({ journal, clock });
    await before.runtime.schedules.put({ id: 's', cron: '0 * * * *', query: 'look', catchUp, overlap: 'parallel' });
    await before.runtime.close();
    clock.advance(5.5 * HOUR);
    const made = scene({ journal, clock });
    made.runtime.work();
    await until(async () => ((await made.runtime.schedules.get('s'))?.nextAt ?? 0) > clock.now());
    expect(await timesOf(made)).toEqual(hours.map((hour) => `2026-01-01T0${hour}:00:00.000Z`));
    await made.runtime.close();
  });

  it('make up for the newest 1,000 and no more', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const journal = open(clock);
    const before = scene({ journal, clock });
    await before.runtime.schedules.put({ id: 's', everyMs: 1_000, query: 'q', catchUp: 'all', overlap: 'parallel' });
    await before.runtime.close();
    clock.advance(2 * HOUR);
    const made = scene({ journal, clock });
    made.runtime.work();
    await until(async () => ((await made.runtime.schedules.get('s'))?.nextAt ?? 0) > clock.now());
    let count = 0;
    for (let after: string | undefined; ; ) {
      const page = await made.runtime.list({ schedule: 's', limit: 200, ...(after === undefined ? {} : { after }) });
      count += page.length;
      after = page.at(-1)?.identity.run;
      if (page.length < 200) break;
    }
    expect(count).toBe(1_000);
    await made.runtime.close();
  });

  it('make up for what one has missed without holding up the others', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const journal = open(clock);
    const before = scene({ journal, clock });
    await before.runtime.schedules.put({ id: 'all', everyMs: 60_000, query: 'q', catchUp: 'all', overlap: 'parallel' });
    await before.runtime.schedules.put({ id: 'last', everyMs: 60_000, query: 'q', catchUp: 'last' });
    await before.runtime.close();
    clock.advance(HOUR);
    const begun: (string | undefined)[] = [];
    const slow = changed(journal, {
      create: (run, ...rest) => {
        begun.push(run.fires?.id);
        clock.advance(1_000);
        return journal.create(run, ...rest);
      },
    });
    const made = scene({ journal: slow, clock });
    made.runtime.work();
    await until(() => begun.includes('last'));
    expect(begun.indexOf('last')).toBeLessThan(10);
    await until(() => begun.filter((id) => id === 'all').length >= 60);
    await made.runtime.close();
  });

  it('say something to a session, as a turn of its own', async () => {
    const planner: PlannerFunction = ({ query, trajectory: { count } }) =>
      query === 'ask' && count === 0 ? asks : finish(`re ${query}`);
    const made = scene({ planner });
    const session = made.runtime.session('news');
    await made.runtime.schedules.put({ id: 's', cron: '0 * * * *', query: 'The news?', session: 'news' });
    made.clock.advance(HOUR);
    await until(async () => (await session.turns()).length === 1);
    expect(await session.result()).toMatchObject({ answer: 're The news?' });
    // A question is for the user to answer.
    const asked = await session.send('ask');
    expect(await asked.result()).toMatchObject({ status: 'paused' });
    made.clock.advance(HOUR);
    await until(
      async () => (await made.runtime.sessions.get({ tenant: 'local', user: 'local', session: 'news' }))?.waiting === 1,
    );
    await session.send('my answer');
    await until(async () => (await session.turns()).every(({ status }) => status === 'finished'));
    expect((await session.turns()).map(({ exchanges }) => exchanges[0]?.user)).toEqual([
      'The news?',
      'ask\n\nmy answer',
      'The news?',
    ]);
    expect(await timesOf(made)).toEqual(['2026-01-01T01:00:00.000Z', '2026-01-01T02:00:00.000Z']);
    await made.runtime.close();
  });

  it('two runtimes on one journal begin each second once, over the end of an hour, and none is missed', async () => {
    // A file takes its time for each commit.
    const seconds = name === 'memory' ? 600 : 120;
    const from = Date.UTC(2026, 0, 1, 0, 59);
    const clock = new VirtualClock(from);
    const journal = open(clock);
    const one = scene({ journal, clock });
    const other = scene({ journal, clock });
    await one.runtime.schedules.put({ id: 's', cron: '* * * * * *', query: 'q', overlap: 'parallel' });
    other.runtime.work();
    for (let second = 1; second <= seconds; second += 1) {
      clock.advance(1_000);
      await until(async () => ((await journal.schedules.get('local', 's'))?.nextAt ?? 0) > clock.now());
    }
    const found = new Set<number>();
    let count = 0;
    for (let after: string | undefined; ; ) {
      const page = await one.runtime.list({ schedule: 's', limit: 200, ...(after === undefined ? {} : { after }) });
      for (const { schedule } of page) found.add(schedule?.at ?? 0);
      count += page.length;
      after = page.at(-1)?.identity.run;
      if (page.length < 200) break;
    }
    expect([count, found.size]).toEqual([seconds, seconds]);
    expect([Math.min(...found), Math.max(...found)]).toEqual([from + 1_000, from + seconds * 1_000]);
    expect([...one.faults, ...other.faults]).toEqual([]);
    await one.runtime.close();
    await other.runtime.close();
  });

  function settable() {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const now = clock.now.bind(clock);
    const set = { clock, offMs: 0 };
    clock.now = () => now() + set.offMs;
    return set;
  }
  async function passing(clock: VirtualClock, hours: number): Promise<void> {
    for (let part = 0; part < hours * 4; part += 1) {
      clock.advance(HOUR / 4);
      await quiet();
    }
  }
  const hoursOf = async (made: World): Promise<string[]> => (await timesOf(made)).map((time) => time.slice(11, 13));

  it('a clock that is set back fires nothing again, and goes on where it was', async () => {
    const set = settable();
    const { clock } = set;
    const made = scene({ clock, journal: open(clock) });
    await made.runtime.schedules.put({ id: 's', cron: '0 * * * *', query: 'q', overlap: 'parallel' });
    await passing(clock, 2);
    set.offMs = -2 * HOUR;
    await passing(clock, 2);
    expect(await timesOf(made)).toHaveLength(2);
    await passing(clock, 1);
    set.offMs += 3 * HOUR;
    await passing(clock, 1);
    expect(await hoursOf(made)).toEqual(['01', '02', '03', '06', '07']);
    await made.runtime.close();
  });

  it('after a clock that was ahead they are resumed from now, and what was begun ahead is not begun again', async () => {
    const set = settable();
    const { clock } = set;
    const made = scene({ clock, journal: open(clock) });
    const { schedules } = made.runtime;
    await schedules.put({ id: 's', cron: '0 * * * *', query: 'q', overlap: 'parallel' });
    set.offMs = 4 * HOUR;
    await passing(clock, 1);
    expect(await hoursOf(made)).toEqual(['04', '05']);
    set.offMs = 0;
    await schedules.pause('s');
    expect((await schedules.resume('s')).nextAt).toBe(Date.UTC(2026, 0, 1, 2));
    await passing(clock, 5);
    expect((await hoursOf(made)).toSorted()).toEqual(['02', '03', '04', '05', '06']);
    await made.runtime.close();
  });

  it('what they would start is looked at when they are put', async () => {
    const { runtime } = scene();
    const { schedules } = runtime;
    const good = { id: 's', cron: '0 9 * * *', query: 'q' };
    const wrong: [object, RegExp][] = [
      [{ cron: undefined }, /either cron/],
      [{ everyMs: 5_000 }, /either cron/],
      [{ cron: '61 * * * *' }, /cannot be read/],
      [{ cron: '* * *' }, /five fields/],
      [{ cron: '2030-01-01T00:00:00' }, /five fields/],
      [{ cron: '0 0 31 2 *' }, /never fire/],
      [{ timezone: 'Europe/Atlantis' }, /time zone "Europe\/Atlantis" is not known/],
      [{ cron: undefined, everyMs: 10 }, /everyMs is 10/],
      [{ cron: undefined, everyMs: 1_000.5 }, /everyMs is 1000.5; give a whole number/],
      [{ cron: undefined, everyMs: '5000' }, /everyMs/],
      [{ cron: undefined, everyMs: 1_000, timezone: 'UTC' }, /timezone goes with cron/],
      [{ id: 'a b' }, /id of a schedule is "a b"/],
      [{ agent: 'nobody' }, /no agent "nobody"/],
      [{ overlap: 'wait' }, /overlap/],
      [{ catchUp: 'some' }, /catchUp/],
      [{ labels: { a: 1 } }, /label "a"/],
      [{ query: 'x'.repeat(40_000) }, /more than 32768 bytes/],
      [{ crom: '* * * * *' }, /crom/],
    ];
    for (const [change, message] of wrong) {
      await expect(schedules.put({ ...good, ...change } as never), JSON.stringify(change)).rejects.toThrow(message);
    }
    expect(await schedules.list()).toEqual([]);
    for (const act of ['pause', 'resume', 'trigger'] as const) {
      await expect(schedules[act]('s')).rejects.toMatchObject({ code: 'schedule_not_found' });
    }
    await expect(
      runtime.start('q', { identity: { tenant: 'a', user: 'b', session: 'c', run: 'schedule_s' } }),
    ).rejects.toThrow(/schedules start/);
    await runtime.close();
  });

  it('the schedule of an agent that is not known here is left to others', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const journal = open(clock);
    const knows = scene({ journal, clock });
    await knows.runtime.schedules.put({ id: 's', cron: '* * * * *', query: 'q' });
    await knows.runtime.close();
    const other = scene({ journal, clock, planner: { name: 'another', next: done } });
    other.runtime.work();
    clock.advance(60_000);
    await quiet();
    expect(await other.runtime.list()).toEqual([]);
    expect(other.faults).toEqual([]);
    await other.runtime.close();
  });

  it('a schedule that nobody has fired for a minute is told of once, by processes that do not know its agent', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const journal = open(clock);
    const knows = scene({ journal, clock });
    const each = { cron: '* * * * *', query: 'q' };
    for (const id of ['s', 'paused']) await knows.runtime.schedules.put({ ...each, id });
    await knows.runtime.schedules.pause('paused');
    await knows.runtime.close();
    const other = scene({ journal, clock, planner: { name: 'another', next: done } });
    other.runtime.work();
    await advanceUntil(clock, () => other.faults.length > 0);
    for (let minutes = 0; minutes < 5; minutes += 1) {
      clock.advance(60_000);
      await quiet();
    }
    expect(other.faults).toMatchObject([{ code: 'agent_unknown', data: { schedule: 's' } }]);
    expect(other.faults[0]).toMatchObject({ message: expect.stringContaining('2026-01-01T00:01:00.000Z') });
    await other.runtime.close();
  });

  it('what cannot be started is told once, and is made up for when it can', async () => {
    let isBroken = true;
    const made = scene();
    const create = made.journal.create.bind(made.journal);
    made.journal.create = (run) => (isBroken ? Promise.reject(new Error('no room')) : create(run));
    await made.runtime.schedules.put({ id: 's', cron: '* * * * *', query: 'q' });
    await advanceUntil(made.clock, () => made.faults.length > 0);
    made.clock.advance(10_000);
    await quiet();
    made.clock.advance(10_000);
    await quiet();
    expect(made.faults).toHaveLength(1);
    isBroken = false;
    await advanceUntil(made.clock, async () => (await timesOf(made)).length === 1);
    expect(await timesOf(made)).toEqual(['2026-01-01T00:01:00.000Z']);
    await made.runtime.close();
  });
});
