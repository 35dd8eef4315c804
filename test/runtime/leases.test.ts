/** Who drives a run: slots, leases, takeovers, closing, and a store that cannot write for a while. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/core/entry.ts';
import { PilotageError } from '../../src/core/errors.ts';
import { local } from '../../src/core/identity.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import type { Append, Journal } from '../../src/journal/port.ts';
import { sqliteJournal } from '../../src/journal/sqlite.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import {
  aborted,
  advanceUntil,
  call,
  changed,
  cutJournal,
  echo,
  entriesOf,
  finish,
  gate,
  kindsOf,
  make,
  observations,
  outcomes,
  pause,
  quiet,
  script,
  start,
  turn,
  until,
  watched,
  world,
} from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-leases-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const identity = local('ana', { run: 'r' });

function startedEntry(run: string, at: number): Entry {
  return {
    kind: 'started',
    seq: 1,
    at,
    identity: local('ana', { run }),
    query: 'q',
    planner: 'p',
    limits: {},
    scopes: [],
  };
}

/** A tool that waits for its gate, and another that a second process would have. */
function holding() {
  const entered = gate();
  const held = gate();
  let runs = 0;
  const tool = make('hold', async (_, { signal }) => {
    runs += 1;
    entered.open();
    await Promise.race([held.opened, aborted(signal)]);
    return `run ${runs}`;
  });
  return { tool, entered: entered.opened, release: () => held.open(), runs: () => runs };
}

describe('closing', () => {
  it('RL-21 aborts what runs, returns when all is let go of, starts nothing more, and is a no-op the second time', async () => {
    const entered = gate();
    const settled: string[] = [];
    const made = world({
      planner: script(call('hold')),
      tools: [
        make('hold', async (_, { signal, identity: { run } }) => {
          if (run === 'run9') entered.open();
          await aborted(signal).catch(() => {});
          await quiet();
          settled.push(run);
          throw signal.reason;
        }),
      ],
    });
    await Promise.all(Array.from({ length: 10 }, (_, index) => start(made, { identity: local('ana', { run: `run${index}` }) })));
    await entered.opened;
    const closed = made.runtime.close();
    expect(made.runtime.close()).toBe(closed);
    await expect(start(made)).rejects.toMatchObject({ code: 'runtime_closed' });
    expect(() => made.runtime.work()).toThrow(expect.objectContaining({ code: 'runtime_closed' }));
    expect(() => made.runtime.run('run0')).toThrow(expect.objectContaining({ code: 'runtime_closed' }));
    await closed;
    expect(settled).toHaveLength(10);
    expect(made.clock.pending).toBe(0);
    for (const record of await made.journal.list({})) expect(record).not.toHaveProperty('lease');
    await made.runtime.close();
  });

  it('gives runs back so that another process goes on where they were; a call that was cut off runs again there', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { tool, entered, release, runs } = holding();
    const planner = watched(script(call('echo'), call('hold')));
    const first = world({ planner, tools: [echo, tool], journal, clock });
    const run = await start(first, { identity });
    const cut = expect(run.result()).rejects.toMatchObject({ code: 'runtime_closed' });
    await entered;
    await first.runtime.close();
    await cut;
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'moved']);
    release();
    const second = world({ planner, tools: [echo, tool], journal, clock });
    await second.runtime.run('r').resume();
    expect(await second.runtime.run('r').result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(runs()).toBe(2);
    expect(planner.views.map((view) => view.trajectory.count)).toEqual([0, 1, 2]);
  });

  it('keeps results that landed before', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { tool, entered, release, runs } = holding();
    let quickRuns = 0;
    const made = (closing: boolean) =>
      world({
        planner: script({
          kind: 'call_parallel',
          branches: [
            { tool: 'hold', args: {} },
            { tool: 'polite', args: {} },
          ],
        }),
        tools: [
          tool,
          make(
            'polite',
            async (_, { signal }) => {
              quickRuns += 1;
              if (closing) await aborted(signal).catch(() => {});
              return 'done';
            },
            { effect: 'once' },
          ),
        ],
        journal,
        clock,
      });
    const first = made(true);
    await start(first, { identity });
    await entered;
    await until(async () => (await journal.read('r')).some((entry) => entry.kind === 'call_began'));
    await quiet();
    await first.runtime.close();
    release();
    const second = made(false);
    const run = second.runtime.run('r');
    await run.resume();
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value', 'value']);
    expect([runs(), quickRuns]).toEqual([2, 1]);
  });

  it('waits for a run that is being created, and leaves it due', async () => {
    const created = gate();
    const held = gate();
    const base = memoryJournal();
    const journal = changed(base, {
      create: async (run) => {
        created.open();
        await held.opened;
        return base.create(run);
      },
    });
    const planner = watched(script());
    const made = world({ planner, journal });
    const starting = start(made, { identity });
    await created.opened;
    const closed = made.runtime.close();
    await quiet();
    held.open();
    expect((await starting).id).toBe('r');
    await closed;
    expect(planner.views).toEqual([]);
    expect((await base.get('r'))?.lease).toBeUndefined();
    expect((await base.get('r'))?.wakeAt).toBeUndefined();
  });

  it('waits for a claim that is under way, and gives the run back', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    await base.create({ identity, priority: 0, entries: [startedEntry('r', 0)] });
    const reading = gate();
    const held = gate();
    const journal = changed(base, {
      read: async (run, from) => {
        reading.open();
        await held.opened;
        return base.read(run, from);
      },
    });
    const planner = watched(script());
    const made = world({ planner, journal, clock });
    made.runtime.work();
    await reading.opened;
    const closed = made.runtime.close();
    await quiet();
    held.open();
    await closed;
    expect(planner.views).toEqual([]);
    expect((await base.get('r'))?.lease).toBeUndefined();
    expect(made.faults).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('in the middle of a renewal sets no timer for the next', async () => {
    const renewing = gate();
    const held = gate();
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const journal = changed(base, {
      renew: async (leases, leaseMs) => {
        renewing.open();
        await held.opened;
        return base.renew(leases, leaseMs);
      },
    });
    const { tool, entered } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool], journal, clock });
    await start(made);
    await entered;
    clock.advance(2_000);
    await renewing.opened;
    await made.runtime.close();
    held.open();
    await quiet();
    expect(clock.pending).toBe(0);
    expect(made.faults).toEqual([]);
  });

  it('leaves a journal that was passed in open', async () => {
    const made = world({ planner: script() });
    await (await start(made, { identity })).result();
    await made.runtime.close();
    expect((await made.journal.get('r'))?.status).toBe('finished');
  });

  it('can be called from inside a tool', async () => {
    const made = world({
      planner: script(call('quit')),
      tools: [
        make('quit', (_, { signal }) => {
          void made.runtime.close();
          return aborted(signal);
        }),
      ],
    });
    const run = await start(made, { identity });
    await expect(run.result()).rejects.toMatchObject({ code: 'runtime_closed' });
    await made.runtime.close();
    expect((await made.journal.get('r'))?.lease).toBeUndefined();
  });
});

describe('a run id that exists', () => {
  it('is the same run: nothing is stored twice, nothing is asked twice', async () => {
    const planner = watched(script(call('echo')));
    const made = world({ planner, tools: [echo] });
    const [one, two] = await Promise.all([start(made, { identity, query: 'one' }), start(made, { identity, query: 'two' })]);
    expect(await two.result()).toEqual(await one.result());
    const again = await start(made, { identity, query: 'three' });
    expect(await again.result()).toMatchObject({ status: 'finished' });
    expect((await again.state()).query).toBe('one');
    expect(planner.views).toHaveLength(2);
  });

  it.each([1, 1_000])('ID-03 of another tenant, user or session is refused (with %i slots)', async (maxLiveRuns) => {
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool], maxLiveRuns });
    const run = await start(made, { identity });
    await entered;
    for (const part of ['tenant', 'user', 'session'] as const) {
      const other = start(made, { identity: { ...identity, [part]: 'other' } });
      await expect(other).rejects.toMatchObject({ code: 'scope_mismatch' });
    }
    release();
    await run.result();
  });

  it('goes on when nobody drives it', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    await journal.create({ identity, priority: 0, entries: [startedEntry('r', clock.now())] });
    const run = await start(world({ planner: script(), journal, clock }), { identity });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done' });
  });
});

describe('slots', () => {
  it('RL-32 drives at most 10 of 1000 runs at once, and all of them in the end', async () => {
    let live = 0;
    let most = 0;
    const made = world({
      planner: script(call('busy')),
      tools: [
        make('busy', async () => {
          live += 1;
          most = Math.max(most, live);
          await turn();
          live -= 1;
        }),
      ],
      maxLiveRuns: 10,
    });
    const runs = await Promise.all(Array.from({ length: 1_000 }, () => start(made)));
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.every((result) => result.status === 'finished')).toBe(true);
    expect(most).toBe(10);
    expect(made.faults).toEqual([]);
    await until(() => made.clock.pending === 0);
  });

  it('RL-32 holds for runs that are resumed together, too', async () => {
    let live = 0;
    let most = 0;
    const made = world({
      planner: async (run) => {
        if (run.trajectory.count === 0) return pause;
        live += 1;
        most = Math.max(most, live);
        await turn();
        live -= 1;
        return finish();
      },
      maxLiveRuns: 3,
    });
    const runs = await Promise.all(Array.from({ length: 30 }, () => start(made)));
    await Promise.all(runs.map((run) => run.result()));
    await Promise.all(runs.map((run) => run.approve()));
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.every((result) => result.status === 'finished')).toBe(true);
    expect(most).toBe(3);
  });

  it('go to waiting runs by priority, then age', async () => {
    const order: string[] = [];
    const { tool, entered, release } = holding();
    const made = world({
      planner: (run, signal) => {
        order.push(run.query);
        return run.query === 'first' ? script(call('hold'))(run, signal) : finish();
      },
      tools: [tool],
      maxLiveRuns: 1,
    });
    const runs = [await start(made, { query: 'first' })];
    await entered;
    for (const [query, priority] of [['low', -5], ['a', 0], ['high', 9], ['b', 0]] as const) {
      runs.push(await start(made, { query, priority }));
    }
    order.length = 0;
    release();
    await Promise.all(runs.map((run) => run.result()));
    expect(order).toEqual(['first', 'high', 'a', 'b', 'low']);
  });

  it.each([0, -1, 1.5])('refuses %s as maxLiveRuns, and as leaseMs', (value) => {
    for (const option of ['maxLiveRuns', 'leaseMs']) {
      expect(() => world({ planner: script(), [option]: value })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    }
  });

  it.each([0.5, 1_001, Number.NaN])('refuses the priority %s', async (priority) => {
    await expect(start(world({ planner: script() }), { priority })).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

describe('work', () => {
  it('RL-24 starts a run that was stored and never begun, also when its process is dead', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const dying = cutJournal(journal);
    const first = world({ planner: script(), journal: dying.journal, clock });
    const starting = start(first, { identity });
    dying.cut();
    await starting;
    await quiet();
    expect(await journal.read('r')).toHaveLength(1);
    const { runtime, faults } = world({ planner: script(), journal, clock });
    runtime.work();
    await advanceUntil(clock, async () => (await journal.get('r'))?.status === 'finished');
    expect(faults).toEqual([]);
    await runtime.close();
  });

  it('takes due runs by priority, then age, and fills every slot that becomes free at once', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const priorities = [0, 5, -3, 5, 9, 0];
    for (const [index, priority] of priorities.entries()) {
      await journal.create({ identity: local('ana', { run: `r${index}` }), priority, entries: [startedEntry(`r${index}`, 0)] });
    }
    const planner = watched(script());
    const { runtime } = world({ planner, journal, clock, maxLiveRuns: 1 });
    runtime.work();
    // Without moving the clock: it does not wait for the next sweep.
    await until(() => planner.views.length === priorities.length);
    expect(planner.views.map((view) => view.identity.run)).toEqual(['r4', 'r1', 'r3', 'r0', 'r5', 'r2']);
    await runtime.close();
  });

  it('takes nothing more when it is stopped, or replaced', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { runtime } = world({ planner: script(), journal, clock });
    const stopFirst = runtime.work();
    const stop = runtime.work();
    await quiet();
    expect(clock.pending).toBe(1);
    stop();
    stopFirst();
    expect(clock.pending).toBe(0);
    await journal.create({ identity, priority: 0, entries: [startedEntry('r', 0)] });
    clock.advance(60_000);
    await quiet();
    expect((await journal.get('r'))?.head).toBe(1);
  });

  it('goes on after a sweep that failed, and reports it', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let failures = 2;
    const journal = changed(base, {
      claim: (request) => (failures-- > 0 ? Promise.reject(new Error('locked')) : base.claim(request)),
    });
    await base.create({ identity, priority: 0, entries: [startedEntry('r', 0)] });
    const made = world({ planner: script(), journal, clock });
    made.runtime.work();
    await advanceUntil(clock, async () => (await base.get('r'))?.status === 'finished');
    expect(made.faults).toMatchObject([{ message: 'locked' }, { message: 'locked' }]);
    await made.runtime.close();
  });
});

describe('leases', () => {
  it('are renewed as long as a call takes, by a timer', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { tool, entered, release, runs } = holding();
    const slow = { ...tool, timeoutMs: 3_600_000 };
    const first = world({ planner: script(call('hold')), tools: [slow], journal, clock });
    const second = world({ planner: script(call('hold')), tools: [slow], journal, clock });
    const run = await start(first, { identity });
    await entered;
    second.runtime.work();
    for (let beat = 0; beat < 60; beat += 1) {
      clock.advance(1_000);
      await quiet();
    }
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(runs()).toBe(1);
    expect([...first.faults, ...second.faults]).toEqual([]);
    await Promise.all([first.runtime.close(), second.runtime.close()]);
  });

  it('a process that stalls is taken over; what it writes then is refused, and it says so', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { tool, entered, release, runs } = holding();
    const planner = script(call('hold'), call('echo'));
    // It cannot renew: as if its timers stood still.
    const stalled = changed(journal, { renew: () => new Promise(() => {}) });
    const first = world({ planner, tools: [tool, echo], journal: stalled, clock });
    const run = await start(first, { identity });
    const zombieResult = run.result();
    await entered;
    const second = world({ planner, tools: [tool, echo], journal, clock });
    second.runtime.work();
    await advanceUntil(clock, () => runs() === 2);
    release();
    expect(await second.runtime.run('r').result()).toMatchObject({ status: 'finished', reason: 'goal' });
    // Its own reader follows the new owner to the end.
    expect(await zombieResult).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(first.faults).toMatchObject([{ code: 'lease_lost', data: { run: 'r' } }]);
    expect(second.faults).toEqual([]);
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'moved', 'call_ended', 'moved', 'finished']);
    expect(await entriesOf(journal, run, 'call_ended')).toHaveLength(2);
    await second.runtime.close();
  });

  it('a process that hears at its next beat that it lost the run stops what runs', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const noticed = gate();
    let runs = 0;
    const entered = gate();
    const tool = make('hold', async (_, { signal }) => {
      runs += 1;
      if (runs > 1) return 'second';
      entered.open();
      await aborted(signal).catch(() => noticed.open());
      throw signal.reason;
    });
    const made = () => world({ planner: script(call('hold')), tools: [tool], journal, clock });
    const first = made();
    await start(first, { identity });
    await entered.opened;
    const owner = (await journal.get('r'))?.lease?.owner ?? '';
    const claim = await journal.claim({ run: 'r', owner: 'other', leaseMs: 10, from: owner });
    expect(claim?.fence).toBe(2);
    clock.advance(2_000);
    await noticed.opened;
    await until(() => first.faults.length === 1);
    expect(first.faults).toMatchObject([{ code: 'lease_lost' }]);
    clock.advance(10_000);
    const run = made().runtime.run('r');
    await run.resume();
    await run.result();
    expect(observations(await run.state())).toEqual(['second']);
  });

  it('of a dead process of this machine are taken over without waiting', async () => {
    const { stdout } = spawnSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' });
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const owner = `${encodeURIComponent(hostname())}:${stdout.trim()}:dead`;
    await journal.create({ identity, priority: 0, entries: [startedEntry('r', 0)], claim: { owner, leaseMs: 60_000 } });
    const run = world({ planner: script(), journal, clock }).runtime.run('r');
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it.each([
    ['a living process', `${encodeURIComponent(hostname())}:${process.pid}:alive`],
    ['another machine', 'elsewhere:1:x'],
    ['nobody we can ask', 'someone'],
  ])('of %s are waited for', async (_, owner) => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    await journal.create({ identity, priority: 0, entries: [startedEntry('r', 0)], claim: { owner, leaseMs: 60_000 } });
    const planner = watched(script());
    const made = world({ planner, journal, clock });
    await made.runtime.run('r').resume();
    made.runtime.work();
    clock.advance(59_000);
    await quiet();
    expect(planner.views).toEqual([]);
    await advanceUntil(clock, async () => (await journal.get('r'))?.status === 'finished');
    await made.runtime.close();
  });

  it('two runtimes that work on one file do every run once', async () => {
    const path = join(folder, 'shared.db');
    const journals = [sqliteJournal({ path }), sqliteJournal({ path })];
    const ran: string[] = [];
    const note = make('note', (_, { identity: { run } }) => ran.push(run), { effect: 'once' });
    for (let index = 0; index < 40; index += 1) {
      await journals[0]?.create({ identity: local('ana', { run: `r${index}` }), priority: 0, entries: [startedEntry(`r${index}`, 0)] });
    }
    const both = journals.map((journal) => {
      const clock = new VirtualClock(Date.now());
      return world({ planner: script(call('note')), tools: [note], journal, clock, maxLiveRuns: 4 });
    });
    for (const { runtime } of both) runtime.work();
    await until(async () => (await journals[0]?.list({ status: ['finished'], limit: 200 }))?.length === 40);
    expect(ran.sort()).toEqual(Array.from({ length: 40 }, (_, index) => `r${index}`).sort());
    for (const { runtime, faults } of both) {
      await runtime.close();
      expect(faults).toEqual([]);
    }
    for (const journal of journals) await journal.close();
  });
});

describe('a store that cannot write now', () => {
  /** Refuses the first `times` appends that `holds` for. */
  function refusing(base: Journal, times: number, holds: (append: Append) => boolean, landed = false): Journal {
    let left = times;
    return changed(base, {
      append: async (request) => {
        if (left === 0 || !holds(request)) return base.append(request);
        left -= 1;
        if (landed) await base.append(request);
        throw new PilotageError('journal_busy', 'The file is locked.');
      },
    });
  }
  const ends = ({ entries }: Append): boolean => entries[0]?.kind === 'call_ended';

  it('keeps the result, and appends it later: the call runs once', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const { tool, release, runs } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [tool], journal: refusing(base, 4, ends), clock });
    const run = await start(made);
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(runs()).toBe(1);
    expect(observations(await run.state())).toEqual(['run 1']);
    expect(made.faults).toEqual([]);
  });

  it('RL-31 writes the ending later', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const planner = watched(script());
    const journal = refusing(base, 5, ({ entries }) => entries.at(-1)?.kind === 'finished');
    const run = await start(world({ planner, journal, clock }));
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ payload: 'done' });
    expect(planner.views).toHaveLength(1);
  });

  it('takes an append that landed although it was said to have failed for what it is', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const { tool, release, runs } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [tool], journal: refusing(base, 1, ends, true), clock });
    const run = await start(made);
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(runs()).toBe(1);
    expect(await kindsOf(base, run)).toEqual(['started', 'moved', 'call_ended', 'moved', 'finished']);
    expect(made.faults).toEqual([]);
  });

  it('RL-31 lets go after some tries with the store’s own error; resuming goes on from what is written', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const { tool, release, runs } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [tool], journal: refusing(base, 6, ends), clock });
    const run = await start(made);
    const broken = expect(run.result()).rejects.toMatchObject({ code: 'journal_busy' });
    await advanceUntil(clock, async () => (await base.get(run.id))?.lease === undefined);
    await broken;
    await until(() => clock.pending === 0);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(runs()).toBe(2);
    expect(observations(await run.state())).toEqual(['run 2']);
  });

  it('is tried again by a worker after a while, not in a hot loop', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let tries = 0;
    const journal = changed(base, {
      append: (request) => {
        tries += 1;
        return tries <= 3 ? Promise.reject(new Error('bad disk')) : base.append(request);
      },
    });
    const made = world({ planner: script(), journal, clock });
    const run = await start(made, { identity });
    made.runtime.work();
    await until(() => made.faults.length > 0);
    await quiet();
    expect(tries).toBe(1);
    const before = clock.now();
    await advanceUntil(clock, async () => (await base.get('r'))?.status === 'finished');
    expect(clock.now() - before).toBeGreaterThanOrEqual(10_000);
    expect(made.faults).toHaveLength(3);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    await made.runtime.close();
  });

  it('tells of a renewal that failed, and the run goes on', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let failures = 1;
    const journal = changed(base, {
      renew: (leases, leaseMs) =>
        failures-- > 0 ? Promise.reject(new Error('locked')) : base.renew(leases, leaseMs),
    });
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool], journal, clock });
    const run = await start(made);
    await entered;
    for (let beat = 0; beat < 8; beat += 1) {
      clock.advance(1_000);
      await quiet();
    }
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made.faults).toMatchObject([{ message: 'locked' }]);
  });

  it('is a failure that readers get when the journal itself is broken', async () => {
    const made = world({ planner: script() });
    made.journal.append = () => Promise.reject(new PilotageError('journal_corrupt', 'The file is no journal.'));
    const run = await start(made);
    await expect(run.result()).rejects.toMatchObject({ code: 'journal_corrupt' });
    await made.runtime.close();
    expect(made.clock.pending).toBe(0);
  });
});

describe('on a file', () => {
  it('SP-30, SP-39 a paused run goes on in another runtime with its whole history and the answer’s payload', async () => {
    const path = join(folder, 'paused.db');
    const planner = watched(script(call('echo', { n: 1 }), pause, call('echo', { n: 2 })));
    const first = sqliteJournal({ path });
    const clock = new VirtualClock(Date.now());
    const one = world({ planner, tools: [echo], journal: first, clock });
    const run = await start(one, { identity });
    const paused = await run.result();
    await one.runtime.close();
    await first.close();
    const second = sqliteJournal({ path });
    const two = world({ planner, tools: [echo], journal: second, clock });
    const again = two.runtime.run('r');
    expect(await again.result()).toEqual(paused);
    await again.approve({ payload: { by: 'ana' } });
    expect(await again.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await again.state())).toEqual([{ n: 1 }, { decision: 'approve', payload: { by: 'ana' } }, { n: 2 }]);
    expect(planner.views.map((view) => view.trajectory.count)).toEqual([0, 1, 2, 3]);
    await two.runtime.close();
    await second.close();
  });

  it('opens its own file only when it is used, and closes it', async () => {
    const { createRuntime } = await import('../../src/runtime/runtime.ts');
    const { existsSync } = await import('node:fs');
    const before = process.cwd();
    process.chdir(folder);
    try {
      const unused = createRuntime({ planner: script() });
      await unused.close();
      expect(existsSync('.pilotage')).toBe(false);
      const runtime = createRuntime({ planner: script() });
      const run = await runtime.start('q', { identity });
      expect(await run.result()).toMatchObject({ status: 'finished' });
      await runtime.close();
      expect(existsSync('.pilotage/pilotage.db')).toBe(true);
      expect(existsSync('.pilotage/pilotage.db-wal')).toBe(false);
    } finally {
      process.chdir(before);
    }
  });
});
