/** The content of one person is erased everywhere, and what is left of their runs still folds. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Entry, type EntryKind, local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type Run, type Runtime } from '#runtime';
import { foldEntries, type RunState } from '#state';
import { VirtualClock } from '#testing';
import { call, finish, named, parallel, pause, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { pausesOf } from '../kit/run-record.ts';
import { openJournal, resetWal, walOf, withDatabase } from '../kit/sqlite.ts';
import { holding, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';

const SECRET = 'xyzzy';
const owner = { tenant: 'local', user: 'ann' };

const tools = [
  make('keep', async (_, { store, saveArtifact }) => {
    await store.put(['notes'], SECRET, { SECRET });
    await store.search([], SECRET);
    await saveArtifact(SECRET, { mime: 'text/plain', fileName: SECRET });
    return `${SECRET} `.repeat(8_000);
  }),
  make('fails', () => {
    throw new Error(SECRET);
  }),
  make('asks', () => SECRET, { needsApproval: { reason: SECRET } }),
];

function runtimeOn(journal: Journal, planner: ReturnType<typeof script>, more: object = {}): Runtime {
  const runtime = createRuntime({ planner, tools, journal, ...more });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** What a run is beside its content. */
function shapeOf({ steps, totals, ending, head, identity, tasks, startedAt, updatedAt }: RunState): unknown {
  const calls = steps.map((step) => [
    step.index,
    step.decision.kind,
    step.startedAt,
    step.endedAt,
    step.calls.map(({ outcome, attempts, seq, startedAt: began, endedAt }) => [
      outcome.kind,
      'error' in outcome ? outcome.error.code : undefined,
      attempts,
      seq,
      began,
      endedAt,
    ]),
  ]);
  const ids = tasks.map(({ id, end }) => [id, end?.status]);
  const end = ending?.kind === 'finished' ? ending.reason : ending?.error.code;
  return { calls, totals, end, head, identity, ids, startedAt, updatedAt };
}

const withoutTime = (entries: readonly Entry[]): [EntryKind, number, number][] =>
  entries.map(({ kind, seq, at }) => [kind, seq, at]);

describe.each(['memory', 'SQLite'])('the content of a person, on a journal in %s', (kind) => {
  it('is gone from runs, tasks, artifacts and memory, and the runs fold to the same shape', async () => {
    const path = temporaryFile();
    const journal = kind === 'memory' ? memoryJournal() : openJournal(path);
    const spawn = {
      kind: 'spawn_task',
      task: 'foreground',
      spec: { query: SECRET, description: SECRET, retainTurn: true },
    } as const;
    const runtime = runtimeOn(journal, (run, signal) =>
      run.query === 'of ben'
        ? finish('kept')
        : run.task === undefined
          ? script(
              call('keep', { secret: SECRET, more: [SECRET] }),
              parallel([...named('fails', 'keep')]),
              spawn,
              call('asks', { SECRET }),
              pause,
              finish({ SECRET }),
            )(run, signal)
          : finish(SECRET),
    );
    const identity = local('ann');
    const run = await runtime.start(SECRET, {
      identity,
      context: { externalMemory: SECRET, meta: { SECRET }, skills: [{ name: 's', title: SECRET }] },
      inputs: [{ bytes: Buffer.from(SECRET), mime: 'text/plain', fileName: SECRET }],
      history: [{ role: 'user', text: SECRET }],
    });
    await run.result();
    const [asked] = await pausesOf(run);
    await run.approve(asked?.token ?? '', { args: { SECRET } });
    await until(async () => (await run.state()).steps.length === 4);
    await run.steer({ type: 'INJECT_CONTEXT', payload: { note: SECRET } } as never).catch(() => {});
    await run.resume({ payload: { message: SECRET } });
    await run.result();
    const failed = await runtime.start(`${SECRET} fails`, { identity: local('ann') });
    await failed.cancel({ reason: SECRET }).catch(() => {});
    await runtime.store.of(owner).put(['x'], 'k', SECRET);
    // Somebody else of the same tenant is not touched.
    const ben = await runtime.start('of ben', { identity: local('ben') });
    await ben.result();
    await until(
      async () => (await journal.list({ ...owner, status: ['paused', 'running', 'pending', 'waiting'] })).length < 2,
    );

    const before = await journal.list(owner);
    const shapes = new Map<string, [unknown, unknown]>();
    for (const {
      identity: { run: id },
      status,
    } of before) {
      const entries = await journal.read(id);
      if (status === 'finished') shapes.set(id, [shapeOf(foldEntries(entries)), withoutTime(entries)]);
    }
    expect(JSON.stringify(await journal.read(run.id))).toContain(SECRET);
    const erased = await runtime.erase(owner);
    expect(erased).toMatchObject({ runs: before.length, items: 2, left: [] });
    expect(erased.artifacts).toBeGreaterThan(1);

    const after = await journal.list(owner);
    expect(after.map((record) => [record.identity.run, typeof record.erased, record.query])).toEqual(
      before.map((record) => [record.identity.run, 'number', '']),
    );
    for (const record of after) {
      const entries = await journal.read(record.identity.run);
      expect(JSON.stringify([record, entries, await journal.inbox(record.identity.run)])).not.toContain(SECRET);
      const shape = shapes.get(record.identity.run);
      if (shape !== undefined) expect([shapeOf(foldEntries(entries)), withoutTime(entries)]).toEqual(shape);
      expect(['finished', 'failed', 'cancelled']).toContain(record.status);
    }
    expect(await journal.artifacts.list(identity, 10)).toEqual({ rows: [], total: 0 });
    expect(await journal.store.list({ namespace: [], limit: 10 })).toEqual([]);
    if (kind === 'SQLite') expect(dumpOf(path)).not.toContain(SECRET);
    expect((await journal.get(ben.id))?.query).toBe('of ben');
    expect((await run.result()).status).toBe('finished');
    // It is done already.
    expect(await runtime.erase(owner)).toEqual({ runs: 0, artifacts: 0, items: 0, schedules: 0, left: [] });
  });

  it('ends a run that waits, and one that this process drives', async () => {
    const journal = kind === 'memory' ? memoryJournal() : openJournal(temporaryFile());
    const { tool, entered } = holding();
    const runtime = runtimeOn(
      journal,
      (run, signal) => (run.query === 'waits' ? pause : script(call('hold'))(run, signal)),
      {
        tools: [tool],
      },
    );
    const waiting = await runtime.start('waits', { identity: local('ann') });
    await waiting.result();
    const busy = await runtime.start('busy', { identity: local('ann') });
    await entered;
    expect(await runtime.erase(owner)).toMatchObject({ runs: 2, left: [] });
    const statuses = async (run: Run) => [(await journal.get(run.id))?.status, (await run.result()).status];
    expect(await statuses(waiting)).toEqual(['cancelled', 'finished']);
    expect(await statuses(busy)).toEqual(['cancelled', 'finished']);
    const events = [];
    for await (const event of waiting.events()) events.push(event.type);
    expect(events.slice(0, 2)).toEqual(['run.started', 'run.erased']);
  });

  it('takes the schedules of the person along, which would start runs of theirs again, and those of nobody else', async () => {
    const clock = new VirtualClock();
    const journal = kind === 'memory' ? memoryJournal({ clock }) : openJournal(temporaryFile(), { clock });
    const runtime = runtimeOn(journal, script(), { clock });
    for (const user of ['ann', 'bob'])
      await runtime.schedules.put({ id: `of-${user}`, everyMs: 60_000, query: SECRET, identity: { ...owner, user } });
    await runtime.schedules.put({ id: 'elsewhere', everyMs: 60_000, query: 'q', identity: { ...owner, tenant: 't' } });
    expect(await runtime.erase(owner)).toMatchObject({ schedules: 1, left: [] });
    expect(await runtime.schedules.get('of-ann')).toBeUndefined();
    expect(await runtime.schedules.get('of-bob')).toBeDefined();
    expect(await runtime.schedules.get('elsewhere', { tenant: 't' })).toBeDefined();
  });

  it('leaves a run that another process has, with its artifacts, until it is erased again', async () => {
    const clock = new VirtualClock();
    const journal = kind === 'memory' ? memoryJournal({ clock }) : openJournal(temporaryFile(), { clock });
    const runtime = runtimeOn(journal, script(call('keep')), { clock });
    await (await runtime.start('q', { identity: local('ann') })).result();
    const held = local('ann');
    const entry: Entry = {
      kind: 'started',
      seq: 1,
      at: 1,
      identity: held,
      query: SECRET,
      agent: 'other',
      limits: {},
      scopes: [],
    };
    await journal.create({ identity: held, priority: 0, entries: [entry], claim: { owner: 'other', leaseMs: 1_000 } });
    const first = await runtime.erase(owner);
    expect(first).toMatchObject({
      runs: 1,
      artifacts: 0,
      left: [{ run: held.run, error: { code: 'journal_conflict' } }],
    });
    expect((await journal.read(held.run))[0]).toMatchObject({ query: SECRET });
    // It was told.
    expect(await journal.inbox(held.run)).toMatchObject([{ message: { type: 'CANCEL' } }]);
    clock.advance(1_001);
    const second = await runtime.erase(owner);
    expect(second).toMatchObject({ runs: 1, left: [] });
    expect(second.artifacts).toBeGreaterThan(0);
    expect(await journal.get(held.run)).toMatchObject({ status: 'cancelled', query: '' });
  });

  it('does not come back: an erased run is not resumed, and tells later runs of its session nothing', async () => {
    const journal = kind === 'memory' ? memoryJournal() : openJournal(temporaryFile());
    const views: { history: readonly unknown[] }[] = [];
    const planner = Object.assign((run: { query: string; history: readonly unknown[] }) => {
      views.push(run);
      if (run.query === 'breaks') throw new Error(SECRET);
      return finish('said');
    });
    const runtime = createRuntime({ planner, journal, memory: { strategy: 'window' } });
    onTestFinished(() => runtime.close());
    await (await runtime.start('one', { identity: local('ann') })).result();
    const broken = await runtime.start('breaks', { identity: local('ann') });
    await broken.result();
    await runtime.erase(owner);
    await expect(broken.resume()).rejects.toMatchObject({ code: 'run_ended' });
    const last = await runtime.start('two', { identity: local('ann') });
    await last.result();
    expect(views.at(-1)?.history).toEqual([]);
    await expect(runtime.erase({ tenant: 'local', user: '' })).rejects.toMatchObject({ code: 'identity_required' });
  });
});

it('erases many runs that have ended in a few commits', async () => {
  const path = temporaryFile();
  const runtime = runtimeOn(openJournal(path), script());
  const runs = Array.from({ length: 64 }, () => runtime.start(SECRET, { identity: local('ann'), conversation: false }));
  for (const run of await Promise.all(runs)) await run.result();
  resetWal(path);
  expect(await runtime.erase(owner)).toMatchObject({ runs: 64, left: [] });
  expect(walOf(path).commits).toBeLessThan(20);
  expect(dumpOf(path)).not.toContain(SECRET);
});

/** Everything that stands in the tables of the file. */
function dumpOf(path: string): string {
  return withDatabase(path, (db) => {
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    const rows = tables.map(({ name }) => db.prepare(`SELECT * FROM "${String(name)}"`).all());
    const text = (_: string, value: unknown): unknown =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;
    return JSON.stringify(rows, text);
  });
}
