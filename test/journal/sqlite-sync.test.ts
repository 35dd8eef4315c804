/** What is told of a SQLite journal is on the disk, and the event loop goes on while the disk takes it in. */
import fs from 'node:fs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Journal } from '#journal';
import { createRuntime } from '#runtime';
import { createClaimed, expectCode, newRun, sequence, step } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';
import { quiet, until } from '../kit/waiting.ts';

/**
 * Each sync for which the event loop stands still takes so long: the monotonic clock stands still, but for the disk.
 * @returns a function by which time passes.
 */
function diskOf(syncMs: number): (ms: number) => void {
  let nowMs = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const alone = vi.spyOn(fs, 'fdatasyncSync').mockImplementation(() => {
    nowMs += syncMs;
  });
  onTestFinished(() => {
    clock.mockRestore();
    alone.mockRestore();
  });
  return (ms) => {
    nowMs += ms;
  };
}

/** A disk that is slow, and from `hold` on takes in what was written when the test lets it, unless the event loop stands still for it. */
function slowDisk(): { hold(): void; waiting(): number; done(error?: Error): void } {
  const waiting: ((error: Error | null) => void)[] = [];
  let holds = false;
  diskOf(5);
  const beside = vi.spyOn(fs, 'fdatasync').mockImplementation((_, callback) => {
    if (holds) waiting.push(callback);
    else callback(null);
  });
  onTestFinished(() => {
    beside.mockRestore();
    for (const each of waiting) each(null);
  });
  return {
    hold: () => {
      holds = true;
    },
    waiting: () => waiting.length,
    done: (error) => {
      for (const each of waiting.splice(0)) each(error ?? null);
    },
  };
}

/** How often the disk was waited for, with the event loop standing still and beside it. */
function countSyncs(): () => { readonly alone: number; readonly beside: number } {
  const alone = vi.spyOn(fs, 'fdatasyncSync');
  const beside = vi.spyOn(fs, 'fdatasync');
  onTestFinished(() => {
    alone.mockRestore();
    beside.mockRestore();
  });
  return () => ({ alone: alone.mock.calls.length, beside: beside.mock.calls.length });
}

/** @returns whether it has come. */
function seen(promise: Promise<unknown> | undefined): () => boolean {
  let isOver = false;
  promise?.then(
    () => {
      isOver = true;
    },
    () => {
      isOver = true;
    },
  );
  return () => isOver;
}

async function withRuns(journal: Journal, ...runs: string[]) {
  const claims = [];
  for (const run of runs) claims.push(await createClaimed(journal, run));
  return claims;
}

const broken = (): Error => Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });

describe('a SQLite journal', () => {
  it('tells of the writes of many runs when the disk has them, and gathers the next ones meanwhile', async () => {
    const journal = openJournal(temporaryFile());
    const disk = slowDisk();
    const claims = await withRuns(journal, 'r1', 'r2', 'r3', 'r4');
    disk.hold();
    const first = claims.slice(0, 2).map((claim) => seen(journal.append(step(claim, 1))));
    await until(() => disk.waiting() === 1);
    const next = claims.slice(2).map((claim) => seen(journal.append(step(claim, 1))));
    await quiet();
    expect([...first, ...next].map((isOver) => isOver())).toEqual([false, false, false, false]);
    disk.done();
    await until(() => first.every((isOver) => isOver()) && disk.waiting() === 1);
    expect(next.map((isOver) => isOver())).toEqual([false, false]);
    disk.done();
    await until(() => next.every((isOver) => isOver()));
  });

  it('tells a reader, in this process or another, what is on the disk', async () => {
    const path = temporaryFile();
    const [journal, other] = [openJournal(path), openJournal(path)];
    const disk = slowDisk();
    const claims = await withRuns(journal, 'r1', 'r2');
    await Promise.all([journal.read('r1'), other.read('r1')]);
    disk.hold();
    const appends = claims.map((claim) => journal.append(step(claim, 1)));
    await until(() => disk.waiting() === 1);
    const reads = [journal, other].flatMap((each) => [each.read('r1'), each.list({})]);
    const areOver = reads.map(seen);
    await quiet();
    // The commit is in the file, and the other connection has seen it.
    expect(disk.waiting()).toBe(2);
    expect(withDatabase(path, (db) => db.prepare('SELECT count(*) AS n FROM entries').get())).toEqual({ n: 4 });
    expect(areOver.map((isOver) => isOver())).toEqual([false, false, false, false]);
    disk.done();
    await Promise.all([...appends, ...reads]);
    expect(await reads[2]).toHaveLength(2);
  });

  it('waits for the disk once for what was read, and again when another process has written', async () => {
    const path = temporaryFile();
    const [journal, other] = [openJournal(path), openJournal(path)];
    const claim = await createClaimed(journal, 'r1');
    await Promise.all([journal.read('r1'), other.read('r1')]);
    const syncs = countSyncs();
    for (let count = 0; count < 3; count += 1) {
      await other.read('r1');
      await journal.read('r1');
    }
    expect(syncs()).toEqual({ alone: 0, beside: 0 });
    await journal.append(step(claim, 1));
    expect(syncs()).toEqual({ alone: 1, beside: 0 });
    for (let count = 0; count < 3; count += 1) {
      await other.read('r1');
      await journal.read('r1');
    }
    expect(syncs()).toEqual({ alone: 1, beside: 1 });
  });

  it('waits once more for what another process has written while the disk was waited for', async () => {
    const path = temporaryFile();
    const [journal, other] = [openJournal(path), openJournal(path)];
    const claim = await createClaimed(journal, 'r1');
    await other.read('r1');
    const disk = slowDisk();
    disk.hold();
    await journal.append(step(claim, 1));
    const first = seen(other.read('r1'));
    await until(() => disk.waiting() === 1);
    await journal.append(step(claim, 2));
    const second = seen(other.read('r1'));
    await quiet();
    disk.done();
    await until(() => first() && disk.waiting() === 1);
    expect(second()).toBe(false);
    disk.done();
    await until(second);
  });

  it('does not go beside the event loop for a disk that is fast', async () => {
    diskOf(0);
    const journal = openJournal(temporaryFile());
    const syncs = countSyncs();
    const claims = await withRuns(journal, 'r1', 'r2');
    await Promise.all(claims.map((claim) => journal.append(step(claim, 1))));
    expect(syncs().beside).toBe(0);
  });

  it.each([
    { what: 'commits once for runs that come one a turn', turnMs: 0.1, least: 1, most: 1 },
    { what: 'commits once for signals that come one a turn', ofRuns: false, turnMs: 0.1, least: 1, most: 1 },
    { what: 'lets no write wait long for those that come after it', turnMs: 3, least: 4, most: 8 },
  ])('$what', async ({ ofRuns = true, turnMs, least, most }) => {
    const pass = diskOf(0);
    const journal = openJournal(temporaryFile());
    const claims = await withRuns(journal, ...Array.from({ length: 20 }, (_, index) => `r${index}`));
    const signal = (key: string) => journal.events.signal({ tenant: 'local', key, id: key, payload: 1, keepMs: 1_000 });
    // The last commit was for one alone.
    await signal('first');
    const syncs = countSyncs();
    const before = syncs();
    const writes: (Promise<unknown> | undefined)[] = [];
    // As a busy server hears of clients: each comes when the event loop has gone round once more.
    for (const claim of claims) {
      writes.push(ofRuns ? journal.append(step(claim, 1)) : signal(claim.run));
      await new Promise((resolve) => setImmediate(resolve));
      pass(turnMs);
    }
    await Promise.all(writes);
    // A disk that takes no time is waited for at once.
    const commits = syncs().alone - before.alone;
    expect(commits).toBeGreaterThanOrEqual(least);
    expect(commits).toBeLessThanOrEqual(most);
  });

  it.each([
    ['that may lose what was written last', { synchronous: 'normal' }],
    ['that is only read', { readOnly: true }],
  ] as const)('%s never waits for the disk', async (_, options) => {
    const path = temporaryFile();
    const claim = await createClaimed(openJournal(path), 'r1');
    const journal = openJournal(path, options);
    const syncs = countSyncs();
    expect(await sequence(journal, 'r1')).toEqual([1]);
    if (!('readOnly' in options)) await journal.append(step(claim, 1));
    expect(syncs()).toEqual({ alone: 0, beside: 0 });
  });

  it('uses neither its file nor what it has read of it after the disk has failed, and says so', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const disk = slowDisk();
    const claims = await withRuns(journal, 'r1', 'r2');
    disk.hold();
    const appends = claims.map((claim) => journal.append(step(claim, 1)));
    await until(() => disk.waiting() === 1);
    const read = journal.read('r1');
    disk.done(broken());
    for (const each of [...appends, read]) {
      const error = await expectCode(each, 'journal_unsynced');
      expect(error.message).toContain('EIO: i/o error');
      expect(error.message).toContain('start the process again');
    }
    await expectCode(journal.read('r1'), 'journal_unsynced');
    await expectCode(journal.create(newRun('r3')), 'journal_unsynced');
    // A new process goes on with what is there.
    vi.mocked(fs.fdatasync).mockRestore();
    expect(await sequence(openJournal(path), 'r1')).toEqual([1, 2]);
  });

  it('that cannot open its log to bring it onto the disk says the same', async () => {
    const journal = openJournal(temporaryFile());
    vi.spyOn(fs, 'openSync').mockImplementation(() => {
      throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
    });
    const error = await expectCode(journal.create(newRun('r1')), 'journal_unsynced');
    expect(error.message).toContain('EMFILE: too many open files');
  });

  it('on whose disk the write of one run alone has failed ends the run with the error', async () => {
    const journal = openJournal(temporaryFile());
    const faults: unknown[] = [];
    const planner = () => {
      vi.spyOn(fs, 'fdatasyncSync').mockImplementation(() => {
        throw broken();
      });
      return { kind: 'finish', reason: 'goal' } as const;
    };
    const runtime = createRuntime({ planner, tools: [], journal, onFault: (error) => void faults.push(error) });
    onTestFinished(() => runtime.close());
    const run = await runtime.start('q');
    await expectCode(run.result(), 'journal_unsynced');
    await expectCode(runtime.start('another'), 'journal_unsynced');
  });
});
