/** A run with an entry that cannot stand is read up to there, forked from there, and set right. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Entry, type EntryBody, local, PilotageError } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type Run, type Runtime } from '#runtime';
import { call, pause, script } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { innerState } from '../kit/run-record.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';

const identity = local('ana', { run: 'r' });

interface Poisoned {
  readonly journal: Journal;
  readonly runtime: Runtime;
  readonly run: Run;
  readonly made: string[];
}

function openRuntime(journal: Journal, made: string[] = []): Runtime {
  const pay = make('pay', (args) => made.push(String(args['for'])), { effect: 'once' });
  const calls = ['a', 'b'].map((what) => call('pay', { for: what }));
  const planner = { name: 'p', next: script(...calls, pause, call('pay', { for: 'c' })) };
  const runtime = createRuntime({ planner, tools: [pay], journal, leaseMs: 50, onFault: () => {} });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** A run that pauses after two calls, and what else stands behind that. */
async function paused(journal: Journal, ...behind: readonly EntryBody[]): Promise<Poisoned> {
  const made: string[] = [];
  const runtime = openRuntime(journal, made);
  const run = await runtime.start('q', { identity });
  await run.result();
  if (behind.length === 0) return { journal, runtime, run, made };
  const claim = await journal.claim({ run: 'r', owner: 'test', leaseMs: 1_000 });
  if (claim === undefined) throw new Error('The run has an owner.');
  const entries = behind.map((body, index) => ({ ...body, seq: claim.head + 1 + index, at: 1 }) as Entry);
  await journal.append({ run: 'r', fence: claim.fence, expected: claim.head, entries });
  await journal.release(claim, { seenSignals: claim.signals });
  return { journal, runtime, run, made };
}

const TWICE: EntryBody = { kind: 'call_ended', step: 0, call: 0, outcome: { kind: 'value', value: 1 }, attempts: 1 };
async function eventsUntilError(run: Run): Promise<{ types: string[]; error: string | undefined }> {
  const types: string[] = [];
  try {
    for await (const { type } of run.events()) types.push(type);
    return { types, error: undefined };
  } catch (error) {
    return { types, error: PilotageError.is(error) ? error.code : String(error) };
  }
}

describe.each([
  ['memory', () => memoryJournal()],
  ['SQLite', () => openJournal(temporaryFile())],
])('a run with an entry that the fold refuses, in %s', (_, open) => {
  it('is read up to there, with the problem, and forked from there', async () => {
    const { run, runtime } = await paused(open(), TWICE);
    const { types, error } = await eventsUntilError(run);
    expect(types.filter((type) => type === 'planner.decision')).toHaveLength(3);
    expect(error).toBe('journal_corrupt');
    await expect(run.result()).rejects.toMatchObject({ code: 'journal_corrupt' });
    const fork = await run.fork({ step: 2, effects: 'held' });
    expect((await fork.result()).status).toBe('paused');
    expect((await runtime.list()).map((record) => record.identity.run)).toContain('r');
  });

  it('is set right: what was wrong is kept and recorded, and the run goes on when somebody resumes it', async () => {
    const { run, journal, made } = await paused(open(), TWICE);
    const before = await journal.examine('r');
    const found = await run.diagnose();
    expect(found).toMatchObject({ run: 'r', goodUpTo: before.head - 1, head: before.head, lostCalls: [], begun: [] });
    expect(found?.refused).toMatchObject([{ seq: before.head, problem: { code: 'journal_corrupt' }, entry: TWICE }]);
    expect(await journal.examine('r')).toEqual(before);

    expect(await run.repair({ by: 'olga', reason: 'a bug' })).toEqual(found);
    expect(await run.diagnose()).toBeUndefined();
    expect(await run.repair({ by: 'olga' })).toBeUndefined();
    const [repaired, stop] = (await journal.read('r')).slice(-2);
    expect(repaired).toMatchObject({ kind: 'repaired', seq: before.head, by: 'olga', reason: 'a bug' });
    expect(stop).toMatchObject({ kind: 'paused', payload: { by: 'repair', setAside: 1 } });
    if (repaired?.kind !== 'repaired') throw new Error('It is not there.');
    const kept = await journal.artifacts.get(identity, repaired.kept.artifactRef);
    const line = JSON.parse(new TextDecoder().decode(kept?.bytes));
    expect(line).toEqual({ seq: before.head, text: before.entries.at(-1)?.text });
    expect((await collect(run)).map(({ type }) => type)).toContain('run.repaired');

    const { pauses } = await run.state();
    for (const { token } of pauses) await run.resume({ token });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual(['a', 'b', 'c']);
  });

  it('keeps what stands behind it and still follows, and never gets shorter', async () => {
    const note: EntryBody = { kind: 'no_progress', step: 2, period: 1, times: 3 };
    const { run, journal } = await paused(open(), TWICE, note);
    const { head } = await journal.examine('r');
    await run.repair({ by: 'olga' });
    expect((await journal.read('r')).slice(-3).map(({ kind, seq }) => [kind, seq])).toEqual([
      ['repaired', head - 1],
      ['no_progress', head],
      ['paused', head + 1],
    ]);
  });

  it('says which calls were made by steps that cannot be kept, and holds calls that may have been made', async () => {
    const lost: EntryBody = { kind: 'call_ended', step: 7, call: 0, outcome: { kind: 'value', value: 1 }, attempts: 1 };
    const { run } = await paused(open(), { kind: 'call_began', step: 7, call: 0 }, lost);
    expect(await run.diagnose()).toMatchObject({ lostCalls: [{ step: 7, call: 0 }] });
    await run.repair({ by: 'olga' });
    expect((await run.state()).pauses.at(-1)?.payload).toMatchObject({ lostCalls: [{ step: 7, call: 0 }] });
  });

  it('is not set right without a name, nor while a process has it', async () => {
    const { run, journal } = await paused(open(), TWICE);
    await expect(run.repair({ by: ' ' })).rejects.toMatchObject({ code: 'invalid_config' });
    const before = await journal.examine('r');
    await journal.claim({ run: 'r', owner: 'somebody', leaseMs: 60_000 });
    await expect(run.repair({ by: 'olga' })).rejects.toMatchObject({ code: 'journal_conflict' });
    expect(await journal.examine('r')).toEqual(before);
  });

  it('is set right when whoever has picked it up gives it back', async () => {
    const { run, journal } = await paused(open(), TWICE);
    const claim = await journal.claim({ run: 'r', owner: 'somebody', leaseMs: 60_000 });
    const refused = vi.spyOn(journal, 'repair');
    const repaired = run.repair({ by: 'olga' });
    await vi.waitUntil(() => refused.mock.settledResults[0]?.type === 'rejected');
    await journal.release({ run: 'r', fence: claim?.fence ?? 0 }, { seenSignals: 0 });
    expect((await repaired)?.refused).toHaveLength(1);
    expect(await run.diagnose()).toBeUndefined();
  });

  it('counts the messages that were taken by what was set aside: it parks, and takes no part in a hot loop', async () => {
    const journal = open();
    const first = await paused(journal);
    await first.runtime.close();
    await journal.signal('r', { id: 'c1', type: 'PAUSE' });
    const claim = await journal.claim({ run: 'r', owner: 'test', leaseMs: 1_000 });
    if (claim === undefined) throw new Error('The run has an owner.');
    const entries = [{ ...TWICE, seq: claim.head + 1, at: 1 } as Entry];
    await journal.append({ run: 'r', fence: claim.fence, expected: claim.head, entries, takes: ['c1'] });
    await journal.release(claim, { seenSignals: claim.signals });
    const runtime = openRuntime(journal);
    await runtime.run('r').repair({ by: 'olga' });
    expect((await journal.read('r')).at(-2)).toMatchObject({ kind: 'repaired', taken: 1 });
    runtime.work();
    await until(async () => (await journal.get('r'))?.wakeAt === null);
    expect(await journal.get('r')).toMatchObject({ status: 'paused' });
    await runtime.close();
  });
});

describe('a stored run that is damaged', () => {
  const DAMAGES: readonly (readonly [string, string])[] = [
    ['an entry that is no JSON', "UPDATE entries SET body = '{' WHERE seq = 3"],
    ['an entry of an unknown kind', `UPDATE entries SET body = '{"v":1,"kind":"later","at":1}' WHERE seq = 3`],
    ['an entry of an odd shape', `UPDATE entries SET body = '{"v":1,"kind":"call_ended","at":1}' WHERE seq = 3`],
    ['a hole', 'DELETE FROM entries WHERE seq = 3'],
  ];
  it.each(DAMAGES)('%s: it is listed, read as far as it goes, and set right', async (_, damage) => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run, runtime } = await paused(journal);
    withDatabase(path, (db) => db.exec(damage));
    expect(await runtime.list()).toHaveLength(1);
    const { types, error } = await eventsUntilError(run);
    expect(types[0]).toBe('run.started');
    expect(error).toMatch(/^journal_/);
    const found = await run.diagnose();
    expect(found?.goodUpTo).toBe(2);
    expect(found?.refused[0]?.seq).toBe(3);
    await run.repair({ by: 'olga' });
    expect(await run.diagnose()).toBeUndefined();
  });

  it('an entry of the open step that cannot be read: its call is in doubt, and is not made again unasked', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run, made } = await paused(journal);
    // The end of the second call, and all that followed, are as if the disk had lost them but for one row.
    withDatabase(path, (db) => {
      db.exec("UPDATE entries SET body = '{' WHERE seq > 5");
    });
    const kinds = (await journal.examine('r')).entries.slice(0, 5).map(({ text }) => JSON.parse(text).kind);
    expect(kinds.filter((kind) => kind === 'moved')).toHaveLength(2);
    const found = await run.diagnose();
    await run.repair({ by: 'olga' });
    const { open, pauses } = await innerState(journal, run);
    expect(open?.began.map((begun) => begun.call)).toEqual([0]);
    expect(found?.goodUpTo).toBe(5);
    for (const { token } of pauses) await run.resume({ token });
    const result = await run.result();
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    expect(made).toEqual(['a', 'b']);
  });

  it("a pause that cannot be read: the answer to the repair's is its answer, and the run goes on", async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run, made } = await paused(journal);
    const { head } = await journal.examine('r');
    withDatabase(path, (db) => db.exec(`UPDATE entries SET body = '{' WHERE seq = ${head}`));
    await run.repair({ by: 'olga' });
    const [open] = (await run.state()).pauses;
    await run.resume({ token: String(open?.token) });
    expect((await run.result()).status).toBe('finished');
    expect(made).toEqual(['a', 'b', 'c']);
  });

  it('the pause and the diagnosis name the entries that cannot be read: what was called in them may be called again', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run } = await paused(journal);
    // The first step, with its call: nobody knows of it any more.
    withDatabase(path, (db) => db.exec("UPDATE entries SET body = '{' WHERE seq BETWEEN 2 AND 4"));
    expect(await run.diagnose()).toMatchObject({ unreadable: [2, 3, 4] });
    await run.repair({ by: 'olga' });
    const payloads = (await run.state()).pauses.map(({ payload }) => payload);
    expect(payloads).toContainEqual(
      expect.objectContaining({ unreadable: [2, 3, 4], warning: expect.stringContaining('would be made again') }),
    );
  });

  it('an entry that is nested 100,000 deep is one that cannot be read', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run } = await paused(journal);
    const deep = `{"v":1,"kind":"no_progress","step":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    withDatabase(path, (db) => db.prepare('UPDATE entries SET body = ? WHERE seq = 3').run(deep));
    await expect(journal.read('r')).rejects.toMatchObject({ code: 'journal_corrupt' });
    expect(await run.diagnose()).toMatchObject({ refused: [{ seq: 3, problem: { code: 'journal_corrupt' } }] });
    await run.repair({ by: 'olga' });
    expect(await run.diagnose()).toBeUndefined();
  });

  it('a row that says that there are fewer entries than there are is of an earlier time', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run } = await paused(journal);
    const before = await journal.read('r');
    withDatabase(path, (db) => db.exec('UPDATE runs SET head = 2'));
    expect(await journal.read('r')).toEqual(before);
    expect(await run.diagnose()).toBeUndefined();
  });

  it('a row that says more entries than there are is read as corrupt, and all that are there are kept', async () => {
    const head = 1e12;
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run } = await paused(journal);
    const { entries } = await journal.examine('r');
    withDatabase(path, (db) => db.prepare('UPDATE runs SET head = ?').run(head));
    await expect(openRuntime(journal).run('r').result()).rejects.toMatchObject({ code: 'journal_corrupt' });
    // Whoever went through all that it says would never come to an end.
    const found = await run.diagnose();
    expect(found?.refused.at(-1)?.problem.message).toContain(`counts ${head} entries`);
    await run.repair({ by: 'olga' });
    expect(await run.diagnose()).toBeUndefined();
    expect((await journal.examine('r')).entries.slice(0, entries.length)).toEqual(entries);
  });

  it('a message that is no JSON is set aside, and the run goes on', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run, runtime } = await paused(journal);
    await runtime.close();
    await journal.signal('r', { id: 'm1', type: 'PAUSE' });
    withDatabase(path, (db) => db.exec("UPDATE controls SET body = '{' WHERE id = 'm1'"));
    const next = openRuntime(journal);
    expect(run.id).toBe('r');
    expect(await next.run('r').diagnose()).toMatchObject({ refused: [], messages: [{ id: 'm1', text: '{' }] });
    await next.run('r').repair({ by: 'olga' });
    expect(await journal.inbox('r')).toEqual([]);
    next.work();
    await until(async () => (await journal.get('r'))?.wakeAt === null);
  });

  it('without a beginning cannot be set right, and says so', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const { run } = await paused(journal);
    withDatabase(path, (db) => db.exec("UPDATE entries SET body = '{' WHERE seq = 1"));
    expect(await run.diagnose()).toMatchObject({ goodUpTo: 0 });
    await expect(run.repair({ by: 'olga' })).rejects.toMatchObject({ code: 'journal_corrupt' });
  });
});
