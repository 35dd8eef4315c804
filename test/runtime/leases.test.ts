/** Leases: who drives a run, and what becomes of a process that stalls or dies. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { local, type RunView, systemClock } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, ownerName } from '#runtime';
import { VirtualClock } from '#testing';
import { call, finish, pause, script, watched } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { doorUrl } from '../kit/project.ts';
import { entriesOf, kindsOf, observations, startedEntry } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-leases-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const identity = local('ana', { run: 'r' });
/** Says by which name that process would own leases. */
const NAME = `import('${doorUrl('#runtime')}').then(({ ownerName }) => console.log(ownerName()))`;

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

  it('is proved once after a machine has slept, by whose steady clock no time has passed', async () => {
    const clock = { now: () => nowMs, steady: () => 7, after: systemClock.after };
    let nowMs = Date.now();
    let proofs = 0;
    const plain = memoryJournal({ clock });
    const journal = changed(plain, {
      async renew(leases, leaseMs) {
        proofs += 1;
        // Whoever asks for ever does so without a turn for anybody else.
        if (proofs > 10) throw new Error('The lease was asked for again and again.');
        return plain.renew(leases, leaseMs);
      },
    });
    const runtime = createRuntime({
      planner: (view: RunView) => {
        nowMs += 60_000;
        return view.trajectory.count === 0 ? call('put') : finish('done');
      },
      tools: [{ ...make('put', () => 'stored'), effect: 'keyed' }],
      journal,
      clock,
    });
    const run = await runtime.start('q', { identity });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
    expect(proofs).toBe(1);
    await runtime.close();
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
    expect(await kindsOf(journal, run)).toEqual([
      'started',
      'moved',
      'call_ended',
      'moved',
      'call_ended',
      'moved',
      'finished',
    ]);
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
    const { stdout } = spawnSync(process.execPath, ['-e', NAME], { encoding: 'utf8' });
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const owner = stdout.trim();
    await journal.create({ identity, priority: 0, entries: [startedEntry('r', 0)], claim: { owner, leaseMs: 60_000 } });
    const run = world({ planner: script(), journal, clock }).runtime.run('r');
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it.each([
    ['a living process', ownerName()],
    ['a process of which only the number is known', `${encodeURIComponent(hostname())}:${2 ** 22 - 1}:gone`],
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
      await journals[0]?.create({
        identity: local('ana', { run: `r${index}` }),
        priority: 0,
        entries: [startedEntry(`r${index}`, 0)],
      });
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
    await again.approve(undefined, { payload: { by: 'ana' } });
    expect(await again.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await again.state())).toEqual([
      { n: 1 },
      { decision: 'approve', payload: { by: 'ana' } },
      { n: 2 },
    ]);
    expect(planner.views.map((view) => view.trajectory.count)).toEqual([0, 1, 2, 3]);
    await two.runtime.close();
    await second.close();
  });

  it('SP-06 refuses a control for an unknown run, and leaves no rejection behind', async () => {
    const journal = sqliteJournal({ path: join(folder, 'unknown.db') });
    const { runtime } = world({ planner: script(), journal });
    for (const steer of ['PAUSE', 'CANCEL'] as const) {
      await expect(runtime.run('nobody').steer(steer)).rejects.toMatchObject({ code: 'run_not_found' });
    }
    await runtime.close();
    await journal.close();
  });

  it('opens its own file only when it is used, and closes it', async () => {
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
