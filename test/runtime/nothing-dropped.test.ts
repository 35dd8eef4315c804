/** What was accepted is driven in the end: by this process, by one that can, or somebody is told why not. */
import { describe, expect, it } from 'vitest';
import { type Decision, type Entry, local, PilotageError, type Planner } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { call, finish, pause, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { startedEntry } from '../kit/run-record.ts';
import { echo } from '../kit/tools.ts';
import { advanceUntil, quiet } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const RUNS = Array.from({ length: 10 }, (_, index) => `r${index}`);

/** Runs that wait for the one slot of a process whose store takes no claim while `isFull`. */
async function queued(isFull: () => boolean): Promise<World & { readonly results: Promise<unknown>[] }> {
  const clock = new VirtualClock();
  const base = memoryJournal({ clock });
  const journal = changed(base, {
    claim: (request) =>
      isFull() ? Promise.reject(new PilotageError('journal_full', 'The disk is full.')) : base.claim(request),
  });
  const made = world({ planner: script(call('echo')), tools: [echo], journal, clock, maxLiveRuns: 1 });
  const runs = [];
  for (const run of RUNS) runs.push(await start(made, { identity: local('ana', { run }) }));
  const results = runs.map((run) =>
    run.result().then(
      ({ status }) => status,
      (error) => error.code,
    ),
  );
  return { ...made, results };
}

describe('a run that waits for its turn while the store takes nothing', () => {
  it('is claimed when the store can again: every result comes', async () => {
    let full = true;
    const { results, clock, faults } = await queued(() => full);
    clock.after(3_000, () => {
      full = false;
    });
    let settled = 0;
    for (const result of results) void result.then(() => (settled += 1));
    await advanceUntil(clock, () => settled === RUNS.length);
    expect(await Promise.all(results)).toEqual(RUNS.map(() => 'finished'));
    expect(faults).toEqual([]);
  });

  it('is told of with the error of the store when that stays so, and is driven all the same when it can be', async () => {
    let full = true;
    const { results, clock, journal } = await queued(() => full);
    let settled = 0;
    for (const result of results) void result.then(() => (settled += 1));
    await advanceUntil(clock, () => settled === RUNS.length);
    expect(await Promise.all(results)).toEqual(['finished', ...RUNS.slice(1).map(() => 'journal_full')]);
    expect(clock.now()).toBeLessThan(30_000 + new VirtualClock().now());
    full = false;
    await advanceUntil(clock, async () => (await journal.list({ status: ['finished'] })).length === RUNS.length);
  });

  it('wakes a task whose record could not be read at first', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let failures = 2;
    const journal = changed(base, {
      get: (run) =>
        run.includes('.') && failures-- > 0
          ? Promise.reject(new PilotageError('journal_busy', 'The file is locked.'))
          : base.get(run),
    });
    const spawn = {
      kind: 'spawn_task',
      task: 'foreground',
      spec: { description: 'a task', query: 'sub' },
    } as const;
    const planner: Planner = {
      name: 'p',
      next: (run) => (run.query === 'sub' || run.trajectory.count > 0 ? finish('done') : spawn),
    };
    const made = world({ planner, journal, clock });
    const run = await start(made);
    await advanceUntil(clock, async () => (await base.get(run.id))?.status === 'finished');
    expect(failures).toBeLessThan(0);
  });
});

describe('a run that the code of one process cannot carry out', () => {
  const version = (of: string, journal: Journal, clock: VirtualClock): World =>
    world({ planner: { name: 'p', version: of, next: script(call('echo')) }, tools: [echo], journal, clock });

  /** Runs of version 1 that nobody drives. */
  async function stored(count: number): Promise<{ journal: Journal; clock: VirtualClock; ids: string[] }> {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const create: Journal['create'] = ({ claim: _, ...run }) => journal.create(run);
    const starter = version('1', changed(journal, { create, claim: async () => undefined }), clock);
    const ids = Array.from({ length: count }, (_, index) => `r${index}`);
    for (const run of ids) await start(starter, { identity: local('ana', { run }) });
    await starter.runtime.close();
    return { journal, clock, ids };
  }

  it('is let go of for those that can: 100 of 100 runs end beside workers of both versions', async () => {
    const { journal, clock, ids } = await stored(100);
    let refusals = 0;
    const counting = changed(journal, {
      release: (lease, park) => {
        if (park.problem !== undefined) refusals += 1;
        return journal.release(lease, park);
      },
    });
    const others = [version('2', counting, clock), version('2', counting, clock)];
    for (const { runtime } of others) runtime.work();
    await quiet();
    const fitting = version('1', journal, clock);
    fitting.runtime.work();
    await advanceUntil(
      clock,
      async () => (await journal.list({ status: ['finished'], limit: 200 })).length === ids.length,
    );
    // Each of the two looked at each run once at most: nobody takes turns.
    expect(refusals).toBeLessThanOrEqual(2 * ids.length);
    for (const { faults } of [...others, fitting]) expect(faults).toEqual([]);
    for (const id of ids) expect(await journal.get(id)).not.toHaveProperty('problem');
    for (const { runtime } of [...others, fitting]) await runtime.close();
  });

  it('is told of with the typed error to whoever waits for it here, when nobody can', async () => {
    const { journal, clock } = await stored(1);
    const other = version('2', journal, clock);
    other.runtime.work();
    const result = other.runtime.run('r0').result();
    const told = expect(result).rejects.toMatchObject({ code: 'run_changed' });
    await advanceUntil(clock, () => other.faults.length > 0);
    await told;
    expect(other.faults).toMatchObject([{ code: 'run_changed' }]);
    expect(await other.runtime.list()).toMatchObject([{ problem: { code: 'run_changed' } }]);
    await other.runtime.close();
  });

  it('settles the result of a run that was started here before, under other code', async () => {
    const { journal, clock } = await stored(1);
    const other = version('2', journal, clock);
    const run = await start(other, { identity: local('ana', { run: 'r0' }) });
    const told = expect(run.result()).rejects.toMatchObject({ code: 'run_changed' });
    await advanceUntil(clock, () => other.faults.length > 0);
    await told;
  });

  it('of which an entry is of a newer version waits for that version', async () => {
    const { journal, clock } = await stored(1);
    const unknown = new PilotageError('journal_entry_unknown', 'Entry 1 is of the unknown kind "later".');
    const unread = changed(journal, {
      read: () => Promise.reject(unknown),
      claimDue: async (request) => (await journal.claimDue(request)).map(({ claim, tenant }) => ({ claim, tenant })),
    });
    const old = version('1', unread, clock);
    old.runtime.work();
    const isLeft = async (): Promise<boolean> => (await journal.get('r0'))?.problem?.code === 'journal_entry_unknown';
    await advanceUntil(clock, isLeft);
    const newer = version('1', journal, clock);
    newer.runtime.work();
    await advanceUntil(clock, async () => (await journal.get('r0'))?.status === 'finished');
    expect(old.faults).toEqual([]);
    for (const { runtime } of [old, newer]) await runtime.close();
  });

  it('keeps the time at which it wakes by itself, and its status', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const next = script({ ...pause, expiresInMs: 60_000 } as Decision);
    const first = world({ planner: { name: 'p', version: '1', next }, tools: [echo], journal, clock });
    const identity = local('ana', { run: 'r0' });
    await (await start(first, { identity })).result();
    await first.runtime.close();
    const before = await journal.get('r0');
    expect(before?.wakeAt).toBeTypeOf('number');
    const other = version('2', journal, clock);
    await start(other, { identity });
    const isLeft = async (): Promise<boolean> => (await journal.get('r0'))?.problem !== undefined;
    await advanceUntil(clock, isLeft);
    expect(await journal.get('r0')).toMatchObject({ ...before, problem: { code: 'run_changed' } });
    await other.runtime.close();
  });

  it('keeps nobody from the runs behind it', async () => {
    const { journal, clock, ids } = await stored(40);
    const other = version('2', journal, clock);
    const entry = { ...startedEntry('mine', 0), agent: 'p' } as Entry;
    await journal.create({ identity: local('ana', { run: 'mine' }), priority: -1, entries: [entry] });
    other.runtime.work();
    const begun = clock.now();
    await advanceUntil(clock, async () => (await journal.get('mine'))?.status === 'finished');
    expect(clock.now() - begun).toBeLessThan(1_000);
    expect(ids).toHaveLength(40);
    await other.runtime.close();
  });
});
