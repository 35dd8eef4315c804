import { describe, expect, it } from 'vitest';
import type { Continued, Entry } from '#core';
import { foldEntries } from '#state';
import { turn } from '../kit/waiting.ts';
import { checkSessions } from '../simulation/check-session.ts';
import { isBeforeTime } from '../simulation/ended-run.ts';
import { generateScript } from '../simulation/generate.ts';
import { Ledger } from '../simulation/ledger.ts';
import { Machines } from '../simulation/machines.ts';
import { ShownGroups } from '../simulation/planner.ts';
import { SimulatedProcess } from '../simulation/process.ts';
import type { SimulationScript } from '../simulation/script.ts';
import { shrink } from '../simulation/shrink.ts';
import { historyOf, simulate } from '../simulation/simulate.ts';
import { openStorage } from '../simulation/storage.ts';
import { SimulatedTime } from '../simulation/time.ts';
import { Worker } from '../simulation/worker.ts';

describe('the simulation', () => {
  it('gives the same history for the same seed, and another for another', async () => {
    const [first, again, other] = [await historyOf(11), await historyOf(11), await historyOf(12)];
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });

  it('gives back what it took over', async () => {
    const before = [Math.random, Date.now, globalThis.setImmediate, crypto.randomUUID];
    await simulate(3);
    expect([Math.random, Date.now, globalThis.setImmediate, crypto.randomUUID]).toEqual(before);
    expect(Object.hasOwn(crypto, 'randomUUID')).toBe(false);
  });

  it('plays one history at a time', async () => {
    const first = simulate(3);
    await expect(simulate(4)).rejects.toThrow('A history is being played');
    expect((await first).violations).toEqual([]);
  });
});

describe('what the simulation plays', () => {
  it('says so when a run was told of a conversation that is not its own', async () => {
    const ledger = new Ledger(new SimulatedTime(), false);
    const identity = (user: string, run: string) => ({ tenant: 't', user, session: 's', run });
    const started = (user: string, run: string, continues?: Continued): Entry => ({
      kind: 'started',
      seq: 1,
      at: 0,
      identity: identity(user, run),
      query: `asked by ${user}`,
      agent: 'simulated',
      limits: {},
      scopes: [],
      ...(continues === undefined ? {} : { continues }),
    });
    const told: Continued = { runs: [{ run: 'r0', head: 2 }], turns: 2 };
    const finished: Entry = { kind: 'finished', seq: 2, at: 1, reason: 'goal', payload: 'done' };
    const runs = new Map(
      [
        { id: 'r0', entries: [started('ann', 'r0'), finished], landed: [1, 2], endedAt: 2 },
        { id: 'r1', entries: [started('ann', 'r1', told), finished], landed: [3, 4], endedAt: 4 },
        { id: 'r2', entries: [started('bob', 'r2', told), finished], landed: [5, 6], endedAt: 6 },
      ].map((run) => {
        const { entries, landed, endedAt, id } = run;
        const known = ledger.created({ identity: identity('', id), priority: 0, entries }, 1);
        return [id, { ...known, id, landed, endedAt, state: foldEntries(entries) }] as const;
      }),
    );
    checkSessions(runs, { turns: 2 }, ledger, false);
    expect(ledger.violations.map(({ invariant, run }) => [invariant, run])).toEqual([['session', 'r2']]);
  });
});

describe('shrinking', () => {
  it('leaves out what a failure does not need', async () => {
    const seeds = Array.from({ length: 200 }, (_, seed) => generateScript(seed));
    const script = seeds.find(({ acts, roots }) => acts.some(({ type }) => type === 'CANCEL') && roots.length > 1);
    if (script === undefined) throw new Error('no seed has what is needed here');
    const fails = (candidate: SimulationScript): Promise<boolean> =>
      Promise.resolve(candidate.acts.some(({ type }) => type === 'CANCEL'));
    const shortest = await shrink(script, fails);
    expect(shortest.acts.map(({ type }) => type)).toEqual(['CANCEL']);
    expect(shortest).toMatchObject({ faults: [], workers: 1, delays: { chance: 0 } });
    expect(shortest.roots).toHaveLength(1);
    expect(Object.values(shortest.plans)).toEqual([{ moves: [] }]);
  });

  it('tries no more scripts than it may', async () => {
    const tried: SimulationScript[] = [];
    const passes = (candidate: SimulationScript): Promise<boolean> => {
      tried.push(candidate);
      return Promise.resolve(false);
    };
    await shrink(generateScript(5), passes, 3);
    expect(tried).toHaveLength(3);
  });
});

describe('a worker of the simulation', () => {
  it('that is healed dies of nothing any more: a crash that was on its way comes at once', async () => {
    const time = new SimulatedTime();
    const worker = workerWith([{ kind: 'crash', worker: 0, operation: 0, landed: true, downMs: 50 }], time);
    const before = worker.process;
    expect(before.alive).toBe(true);
    worker.heal();
    const after = worker.process;
    expect([before.alive, after === before, after.alive]).toEqual([false, false, true]);
    const until = time.now() + 1_000;
    while (time.step(until)) await turn();
    expect([worker.process === after, after.alive]).toEqual([true, true]);
  });

  it('has no second process in the place of one that lives, when the one before it dies late', async () => {
    for (let operation = 1; operation < 10; operation += 1) {
      const time = new SimulatedTime();
      const crash = { kind: 'crash', worker: 0, landed: true, downMs: 0 } as const;
      const worker = workerWith(
        [
          { ...crash, operation: 0 },
          { ...crash, operation },
        ],
        time,
      );
      const processes = new Set([worker.process]);
      const until = time.now() + 10_000;
      while (time.step(until)) {
        await turn();
        processes.add(worker.process);
      }
      const living = [...processes].filter(({ alive }) => alive).map(({ name }) => name);
      expect(living, `a crash in operation ${operation}`).toEqual([worker.process.name]);
      worker.process.kill();
    }
  });
});

function workerWith(faults: SimulationScript['faults'], time: SimulatedTime): Worker {
  return new Worker(0, {
    script: { ...generateScript(1), faults, delays: { chance: 1, maxMs: 300 } },
    time,
    ledger: new Ledger(time, false),
    storage: openStorage('memory', 1, time),
    shown: new ShownGroups(),
    machines: new Machines(),
  });
}

describe('whether a time had come', () => {
  const [pauseEnds, landedAt] = [1_000, 1_100];
  const said: Entry = { kind: 'resumed', seq: 2, at: -58_900, token: 't', verdict: 'timeout' };
  const isBefore = (clocksSet: Ledger['clocksSet']): boolean => {
    const ledger = new Ledger(new SimulatedTime(), false);
    ledger.appends.push({ order: 1, at: landedAt, run: 'r', from: 2, to: 3 });
    ledger.clocksSet.push(...clocksSet);
    return isBeforeTime(said, pauseEnds, 'r', ledger);
  };

  it('is known of an entry whose writer had seen the time before somebody set its clock back', () => {
    expect(isBefore([{ at: 1_050, shown: 1_050 }])).toBe(false);
    expect(isBefore([])).toBe(true);
    // The clock had not shown it, or was set when the entry was there.
    expect(isBefore([{ at: 900, shown: 900 }])).toBe(true);
    expect(isBefore([{ at: 1_200, shown: 1_200 }])).toBe(true);
  });
});

describe('simulated time', () => {
  it('goes from timer to timer, those of one moment in the order in which they were set', () => {
    const time = new SimulatedTime(0);
    const fired: string[] = [];
    for (const [name, ms] of [
      ['c', 30],
      ['a', 10],
      ['b', 10],
      ['d', 40],
    ] as const) {
      time.after(ms, () => fired.push(`${name}${time.now()}`));
    }
    time.after(20, () => fired.push('never'))();
    while (time.step(35));
    expect(fired).toEqual(['a10', 'b10', 'c30']);
    expect(time.now()).toBe(35);
  });

  it('brings a stalled process its timers late, and a dead one none', () => {
    const time = new SimulatedTime(0);
    const fired: string[] = [];
    const [stalled, dead] = [new SimulatedProcess('stalled', time), new SimulatedProcess('dead', time)];
    for (const process of [stalled, dead]) process.clock.after(10, () => fired.push(`${process.name}${time.now()}`));
    stalled.stall(100);
    dead.kill();
    while (time.step(1_000));
    expect(fired).toEqual(['stalled100']);
  });
});
