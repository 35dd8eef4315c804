/** A process that fires a schedule dies before and after each write: the next one loses nothing and begins nothing twice. */
import { describe, expect, it } from 'vitest';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Runtime } from '#runtime';
import { VirtualClock } from '#testing';
import { finish } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { quiet } from '../kit/waiting.ts';

/** A journal as a process sees it that dies at its n-th write: before it, or when it has landed. */
function mortal(journal: Journal, dieAt: number, lands: boolean): { journal: Journal; writes: () => number } {
  let writes = 0;
  const never = new Promise<never>(() => {});
  const wrapped = (target: object): object =>
    new Proxy(target, {
      get(of, key) {
        const own: unknown = Reflect.get(of, key);
        if (key === 'schedules') return wrapped(own as object);
        if (typeof own !== 'function') return own;
        const isWrite = ['create', 'append', 'release', 'claim', 'move', 'send', 'put', 'startByKey'].includes(
          String(key),
        );
        return (...args: unknown[]) => {
          if (writes > dieAt) return String(key).startsWith('watch') ? () => {} : never;
          if (!isWrite) return own.apply(of, args);
          writes += 1;
          if (writes <= dieAt) return own.apply(of, args);
          if (lands) void Promise.resolve(own.apply(of, args)).catch(() => {});
          return never;
        };
      },
    });
  return { journal: wrapped(journal) as Journal, writes: () => writes };
}

const FIRES = 4;
const SCHEDULE = { id: 's', everyMs: 1_000, query: 'q', catchUp: 'all', overlap: 'parallel' } as const;
const STORES = {
  memory: (clock: VirtualClock): Journal => memoryJournal({ clock }),
  sqlite: (clock: VirtualClock): Journal => sqliteJournal({ path: temporaryFile(), clock, synchronous: 'normal' }),
};

describe.each(Object.entries(STORES))('a schedule in %s', (_name, open) => {
  it.each([
    {},
    { session: 'news' },
  ])('loses and doubles nothing when its process dies at any write: %j', async (more) => {
    let last = Number.POSITIVE_INFINITY;
    let deaths = 0;
    for (let dieAt = 1; dieAt <= last; dieAt += 1) {
      for (const lands of [false, true]) {
        const clock = new VirtualClock();
        const from = clock.now();
        const journal = open(clock);
        const process = (seen: Journal): Runtime =>
          createRuntime({ planner: { name: 'p', next: () => finish('x') }, journal: seen, clock, onFault: () => {} });
        const doomed = mortal(journal, dieAt, lands);
        const first = process(doomed.journal);
        void first.schedules.put({ ...SCHEDULE, ...more }).catch(() => {});
        await quiet();
        for (let second = 0; second < FIRES / 2; second += 1) {
          clock.advance(1_000);
          await quiet();
        }
        if (doomed.writes() > dieAt) deaths += 1;
        const next = process(journal);
        // The program puts its schedules when it starts.
        await next.schedules.put({ ...SCHEDULE, ...more });
        next.work();
        while (clock.now() < from + FIRES * 1_000) {
          clock.advance(1_000);
          await quiet();
        }
        const runs = await journal.list({ schedule: 's', limit: 200 });
        const times = runs.map(({ schedule }) => ((schedule?.at ?? 0) - from) / 1_000).reverse();
        // Before it was stored there was no schedule.
        const since = (await journal.schedules.get('local', 's'))?.createdAt ?? 0;
        const wanted = Array.from({ length: FIRES }, (_, index) => index + 1).filter((n) => from + n * 1_000 > since);
        expect(times, `died at write ${dieAt}, which ${lands ? 'landed' : 'did not land'}`).toEqual(wanted);
        if (doomed.writes() <= dieAt) last = dieAt;
      }
    }
    expect(deaths).toBeGreaterThan(5);
  });

  it.each([
    'skip',
    'queue',
  ] as const)('does not stand still over a run that was cut off, though nobody works: %s', async (overlap) => {
    let last = Number.POSITIVE_INFINITY;
    for (let dieAt = 1; dieAt <= last; dieAt += 1) {
      const clock = new VirtualClock();
      const from = clock.now();
      const journal = open(clock);
      const process = (seen: Journal): Runtime =>
        createRuntime({
          planner: { name: 'p', next: () => finish('x') },
          journal: seen,
          clock,
          leaseMs: 300,
          onFault: () => {},
        });
      const doomed = mortal(journal, dieAt, true);
      void process(doomed.journal)
        .schedules.put({ ...SCHEDULE, overlap })
        .catch(() => {});
      await quiet();
      clock.advance(1_000);
      await quiet();
      if (doomed.writes() <= dieAt) last = dieAt;
      await process(journal).schedules.put({ ...SCHEDULE, overlap });
      while (clock.now() < from + FIRES * 1_000) {
        clock.advance(250);
        await quiet();
      }
      const runs = await journal.list({ schedule: 's', limit: 200 });
      expect(
        runs.filter(({ status }) => status !== 'finished'),
        `died at write ${dieAt}`,
      ).toEqual([]);
      expect(runs[0]?.schedule?.at, `died at write ${dieAt}`).toBe(from + FIRES * 1_000);
    }
    expect(last).toBeGreaterThanOrEqual(3);
  });
});
