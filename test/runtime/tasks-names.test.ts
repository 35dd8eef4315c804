/** The ids of tasks follow from their owner's: what somebody else has stored under one of them is not touched. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { call, finish, parallel, pause, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { hasEnded, outcomes } from '../kit/run-record.ts';
import { PARENT, plays, spawning, spawns } from '../kit/tasks.ts';
import { start, type World, world } from '../kit/world.ts';

const EVE = { tenant: 'globex', user: 'eve', session: 's', run: 'p.0.0' };

/** Somebody of another tenant has a run by the id that the first task of `p` will have; it waits for an answer. */
async function taken(made: World): Promise<void> {
  const run = await start(made, { identity: EVE, query: 'theirs' });
  expect(await run.result()).toMatchObject({ status: 'paused' });
}

const stores: readonly [string, () => Journal][] = [
  ['memory', () => memoryJournal()],
  ['sqlite', () => sqliteJournal({ path: temporaryFile() })],
];

describe.each(stores)('the id of a task that another run has (%s)', (_, open) => {
  it.each([
    'foreground',
    'background',
  ] as const)('refuses the spawn of a %s task, and the run goes on', async (task) => {
    const made = world({
      planner: plays({ q: script(spawns('child', { task })), theirs: script(pause) }),
      journal: open(),
    });
    await taken(made);
    const before = await made.journal.read(EVE.run);
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const state = await run.state();
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'task_id_taken' } });
    expect(state.tasks).toEqual([]);
    expect(await made.journal.read(EVE.run)).toEqual(before);
    expect(await made.journal.inbox(EVE.run)).toEqual([]);
    await made.runtime.close();
  });

  it('refuses one spawn of a parallel call; its siblings are tasks, and a cancel reaches them alone', async () => {
    const made = world({
      planner: plays({
        q: script(parallel([spawning('child'), spawning('child')]), pause),
        theirs: script(pause),
        child: script(pause),
      }),
      journal: open(),
    });
    await taken(made);
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(outcomes(await run.state())).toEqual(['error', 'value']);
    await run.cancel();
    while (!(await hasEnded(made, 'p.0.1'))) await new Promise((resolve) => setImmediate(resolve));
    expect(await made.journal.get(EVE.run)).toMatchObject({ status: 'paused' });
    expect(await made.journal.inbox(EVE.run)).toEqual([]);
    await made.runtime.close();
  });
});

describe('the id of a task that another run has', () => {
  it('refuses a call of a tool that a run carries out', async () => {
    const lookup = {
      name: 'lookup',
      description: 'd',
      inputSchema: { type: 'object' },
      effect: 'read',
      agent: { name: 'finder', planner: { name: 'finder', next: () => finish('found') }, tools: [] },
    } as const;
    const made = world({
      planner: plays({ q: script(call('lookup')), theirs: script(pause) }),
      tools: [lookup],
    });
    await taken(made);
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'task_id_taken' } });
  });

  it('is not sent a cancel by a journal that holds such a spawn from before', async () => {
    const journal = memoryJournal();
    const made = world({ planner: plays({ q: script(pause), theirs: script(pause) }), journal });
    await taken(made);
    const run = await start(made, { identity: PARENT });
    await run.result();
    // As an earlier version has written it: the spawn stands, and the run of that id is another's.
    const claim = await journal.claim({ owner: 'old', leaseMs: 1_000, run: 'p' });
    if (claim === undefined) throw new Error('The run cannot be claimed.');
    const spawned = {
      kind: 'spawned' as const,
      seq: claim.head + 1,
      at: 1,
      step: 0,
      call: 0,
      task: EVE.run,
      group: 'g',
      taskKind: 'background' as const,
      description: 'd',
      onCancel: 'cascade' as const,
      retained: false,
      reserved: {},
      seal: true,
    };
    await journal.append({ run: 'p', fence: claim.fence, expected: claim.head, entries: [spawned] });
    await journal.release({ run: 'p', fence: claim.fence }, { seenSignals: claim.signals, wakeInMs: null });
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(await journal.get(EVE.run)).toMatchObject({ status: 'paused' });
    expect(await journal.inbox(EVE.run)).toEqual([]);
  });
});

describe('a run that is started under the id of a task', () => {
  it('is refused while the run above it is there, whoever starts or forks it', async () => {
    const made = world({ planner: plays({ q: script(pause, spawns('child')) }) });
    const run = await start(made, { identity: PARENT });
    await run.result();
    for (const id of ['p.1.0', 'p.0.0', 'p.999.12']) {
      for (const identity of [{ ...EVE, run: id }, local('ana', { run: id })]) {
        await expect(start(made, { identity })).rejects.toMatchObject({ code: 'invalid_config' });
      }
      await expect(run.fork({ identity: local('ana', { run: id }) })).rejects.toMatchObject({ code: 'invalid_config' });
      expect(await made.journal.get(id)).toBeUndefined();
    }
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).tasks.map(({ id }) => id)).toEqual(['p.1.0']);
  });

  it('is what it is when no such run is there, or no task ever has the id', async () => {
    const made = world({ planner: plays({ q: script(pause) }) });
    await (await start(made, { identity: PARENT })).result();
    for (const id of ['report.2024.5', 'p.0', 'p.00.1', 'p.0.x', '.0.0']) {
      expect((await start(made, { identity: local('ana', { run: id }), query: 'other' })).id).toBe(id);
    }
  });

  it('goes on when it is that task, and its own session asks for it', async () => {
    const { runtime } = world({ planner: plays({ q: script(spawns('child')), child: script(pause) }) });
    const made = { runtime };
    await (await start(made, { identity: PARENT })).result();
    expect((await start(made, { identity: local('ana', { run: 'p.0.0' }), query: 'child' })).id).toBe('p.0.0');
    await expect(start(made, { identity: EVE })).rejects.toMatchObject({ code: 'scope_mismatch' });
  });
});
