import { describe, expect, it, vi } from 'vitest';
import { SCHEMA_VERSION } from '#journal';
import { createRuntime } from '#pilotage';
import { createClaimed, expectCode, identity, newRun, sequence, step, stepEntry } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { makeOlder, openJournal, withDatabase } from '../kit/sqlite.ts';
import { startChild } from './children.ts';

const counted = (length: number): number[] => Array.from({ length }, (_, index) => index + 1);

/** With the run `r1`, of the format before the last change of an index. */
async function olderFile(): Promise<string> {
  const path = temporaryFile();
  const journal = openJournal(path);
  await journal.create(newRun('r1'));
  await journal.close();
  makeOlder(path);
  return path;
}

describe('several processes on one SQLite journal', () => {
  it('open a new file at the same time, and lose nothing that either appends', async () => {
    const path = temporaryFile();
    const children = [startChild('writeRuns', path), startChild('writeRuns', path), startChild('writeRuns', path)];
    const started = await Promise.race(children.map((child) => child.line()));
    expect(started).toBe('opening');
    const journal = openJournal(path);
    const claims = await Promise.all(counted(10).map((index) => createClaimed(journal, `parent${index}`)));
    await Promise.all(
      claims.map(async (claim) => {
        for (let head = 1; head <= 20; head += 1) await journal.append(step(claim, head));
      }),
    );
    for (const child of children) expect(await child.ended).toBe(0);
    const runs = await journal.list({ limit: 200 });
    expect(runs.length).toBe(40);
    for (const { identity } of runs) expect(await sequence(journal, identity.run)).toEqual(counted(21));
  });

  it('wait for each other: a short lock delays an append', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    let settled = false;
    const append = Promise.resolve(journal.append(step(claim, 1))).then(() => {
      settled = true;
    });
    // Reads go on, and the append waits.
    expect(await sequence(journal, 'r1')).toEqual([1]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(settled).toBe(false);
    child.process.stdin?.write('go\n');
    await append;
    expect(await sequence(journal, 'r1')).toEqual([1, 2]);
  });

  it('give up on a lock that is held too long, and the same append succeeds later', async () => {
    const path = temporaryFile();
    const journal = openJournal(path, { busyTimeoutMs: 100 });
    const claim = await createClaimed(journal, 'r1');
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    const refused = [journal.append(step(claim, 1)), journal.create(newRun('r2'))];
    for (const write of refused) {
      const error = await expectCode(write, 'journal_busy');
      expect(error.message).toContain('Another process');
    }
    child.process.stdin?.write('go\n');
    expect(await child.line()).toBe('free');
    await journal.append(step(claim, 1));
    expect(await sequence(journal, 'r1')).toEqual([1, 2]);
    expect(await journal.get('r2')).toBe(undefined);
  });

  it('wait for the lock that a file needs which is to be made, or brought to the present format, and try again with every operation', async () => {
    for (const path of [temporaryFile(), await olderFile()]) {
      const child = startChild('holdLock', path);
      expect(await child.line()).toBe('held');
      const journal = openJournal(path, { busyTimeoutMs: 50, watchIntervalMs: 10 });
      let wakes = 0;
      const stop = journal.watch('r2', () => {
        wakes += 1;
      });
      const error = await expectCode(journal.get('r1'), 'journal_busy');
      expect(error.message).toContain(`Another process (${child.process.pid}) holds the journal ${path}.`);
      await expectCode(journal.artifacts.list(identity('r1'), 1), 'journal_busy');
      child.process.stdin?.write('go\n');
      expect(await child.line()).toBe('free');
      await journal.create(newRun('r2'));
      expect((await journal.get('r2'))?.head).toBe(1);
      expect(wakes).toBeGreaterThan(0);
      stop();
      await journal.close();
      await expectCode(journal.get('r2'), 'journal_closed');
      expect(withDatabase(path, (db) => db.prepare('PRAGMA user_version').get())).toEqual({
        user_version: SCHEMA_VERSION,
      });
    }
  });

  it('a worker on a file that somebody holds before it is brought to the present format says so, and goes on when it is free', async () => {
    const path = await olderFile();
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    const faults: unknown[] = [];
    const runtime = createRuntime({
      planner: { name: 'finish', next: () => ({ kind: 'finish', reason: 'goal' }) },
      journal: openJournal(path, { busyTimeoutMs: 50 }),
      onFault: (error) => faults.push(error),
    });
    runtime.work();
    await vi.waitUntil(() => faults.length > 0);
    expect(faults).toMatchObject([{ code: 'journal_busy' }]);
    child.process.stdin?.write('go\n');
    expect(await runtime.run('r1').result()).toMatchObject({ status: 'finished' });
    expect(faults).toHaveLength(1);
    await runtime.close();
  });

  it('a journal that is closed while it waits for its file opens nothing more', async () => {
    const path = await olderFile();
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    const journal = openJournal(path);
    const waiting = expectCode(journal.get('r1'), 'journal_closed');
    await journal.close();
    await waiting;
    child.process.stdin?.write('go\n');
    expect(await child.line()).toBe('free');
    expect(withDatabase(path, (db) => db.prepare('PRAGMA user_version').get())).toEqual({ user_version: 8 });
  });

  it('close: what waits for a lock is written first', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    const child = startChild('holdLock', path);
    expect(await child.line()).toBe('held');
    const append = journal.append(step(claim, 1));
    const closing = journal.close();
    child.process.stdin?.write('go\n');
    await Promise.all([append, closing]);
    expect(await sequence(openJournal(path), 'r1')).toEqual([1, 2]);
  });

  it('may be killed: everything that was acknowledged is there', async () => {
    const path = temporaryFile();
    const child = startChild('appendForEver', path);
    let acknowledged = 0;
    while (acknowledged < 200) acknowledged = Number(await child.line());
    child.process.kill('SIGKILL');
    for (let line = await child.line(); line !== undefined; line = await child.line()) {
      // The last line may be cut.
      acknowledged = Math.max(acknowledged, Number(line));
    }
    expect(await child.ended).toBe('SIGKILL');
    const journal = openJournal(path);
    const entries = await journal.read('endless');
    expect(entries.length).toBeGreaterThanOrEqual(acknowledged);
    expect(entries.slice(1)).toEqual(counted(entries.length - 1).map((index) => stepEntry(index + 1)));
    const claim = await journal.claim({ run: 'endless', owner: 'heir', leaseMs: 1_000, from: 'child' });
    expect(claim).toEqual({
      run: 'endless',
      fence: 2,
      head: entries.length,
      signals: 0,
      before: { status: 'running', wakeAt: 0 },
    });
  });
});
