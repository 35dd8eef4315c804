/** An open journal whose file is taken away, replaced or upgraded beneath it stops writing, and says so. */
import { copyFileSync, linkSync, renameSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Journal, SCHEMA_VERSION } from '#journal';
import { createRuntime } from '#runtime';
import { ana, claimFirst, createClaimed, expectCode, newRun, sequence, step } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, withDatabase } from '../kit/sqlite.ts';
import { turn } from '../kit/waiting.ts';
import { startChild } from './children.ts';

const ENDS = ['', '-wal', '-shm'] as const;

/** A journal's file with one run, that nobody has open. */
async function backup(): Promise<string> {
  const path = temporaryFile();
  const journal = openJournal(path);
  await journal.create(newRun('old'));
  await journal.close();
  return path;
}

function removed(path: string): void {
  for (const end of ENDS) rmSync(`${path}${end}`);
}

/** Until the last look at the file is not fresh any more: one write right after another does not look again. */
function untilStale(): void {
  const from = performance.now();
  while (performance.now() - from < 2);
}

const CHANGES: readonly (readonly [string, (path: string) => void | Promise<void>])[] = [
  ['deleted', removed],
  ['deleted alone, with its log left behind', (path) => rmSync(path)],
  [
    'moved away',
    (path) => {
      for (const end of ENDS) renameSync(`${path}${end}`, `${path}.away${end}`);
    },
  ],
  [
    'replaced by a backup',
    async (path) => {
      const other = await backup();
      removed(path);
      copyFileSync(other, path);
    },
  ],
  ['renamed over', async (path) => renameSync(await backup(), path)],
  ['overwritten in place by a shorter one', (path) => truncateSync(path, 4096)],
  ['robbed of its log', (path) => rmSync(`${path}-wal`)],
];

describe('an open SQLite journal whose file is', () => {
  it.each(CHANGES)('%s acknowledges no write after that, and says so', async (_, change) => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    await journal.append(step(claim, 1));
    withDatabase(path, (db) => db.exec('PRAGMA wal_checkpoint(PASSIVE)'));
    await journal.append(step(claim, 2));
    untilStale();
    await change(path);
    const writes: (() => Promise<unknown>)[] = [
      async () => journal.append(step(claim, 3)),
      () => journal.create(newRun('r2')),
      () => journal.signal('r1', { id: 'c1', type: 'PAUSE' }),
      () => journal.renew([claim], 1_000),
      () => journal.claim({ ...ana, run: 'r1' }),
      () => journal.artifacts.put({ tenant: 'acme', user: 'ana', session: 's1' }, new Uint8Array(3), { mime: 'x/y' }),
      () => journal.list({}),
      () => journal.read('r1'),
    ];
    for (const write of writes) {
      const error = await expectCode(write(), 'journal_replaced');
      expect(error.message).toContain('open the journal again');
    }
  });

  it('robbed of its index is noticed when it looks for work', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    await journal.create(newRun('r1'));
    rmSync(`${path}-shm`);
    await expectCode(claimFirst(journal, ana), 'journal_replaced');
    await expectCode(journal.create(newRun('r2')), 'journal_replaced');
  });

  it('made shorter by VACUUM is the same file, and is written on', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    withDatabase(path, (db) =>
      db.exec('CREATE TABLE more (bytes); INSERT INTO more SELECT randomblob(300000); PRAGMA wal_checkpoint(TRUNCATE)'),
    );
    expect(await claimFirst(journal, ana)).toBeUndefined();
    const before = statSync(path).size;
    withDatabase(path, (db) => db.exec('DROP TABLE more; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'));
    expect(statSync(path).size).toBeLessThan(before - 200_000);
    expect(await claimFirst(journal, ana)).toBeUndefined();
    for (const at of [1, 2]) {
      untilStale();
      await journal.append(step(claim, at));
    }
    expect(await sequence(journal, 'r1')).toEqual([1, 2, 3]);
  });

  it('named by a symbolic link has its log beside the file: that it is gone is noticed', async () => {
    const path = temporaryFile();
    await openJournal(path).close();
    symlinkSync(path, `${path}.link`);
    const journal = openJournal(`${path}.link`);
    const claim = await createClaimed(journal, 'r1');
    untilStale();
    rmSync(`${path}-wal`);
    await expectCode(journal.append(step(claim, 1)), 'journal_replaced');
  });

  it('upgraded by a newer version writes nothing more, and neither reads nor works', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    const claim = await createClaimed(journal, 'r1');
    withDatabase(path, (db) => db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`));
    const error = await expectCode(journal.append(step(claim, 1)), 'journal_newer');
    expect(error.data).toMatchObject({ found: SCHEMA_VERSION + 1, supported: SCHEMA_VERSION });
    await expectCode(claimFirst(journal, ana), 'journal_newer');
    await expectCode(journal.list({}), 'journal_newer');
    withDatabase(path, (db) => {
      expect(db.prepare('SELECT count(*) AS head FROM entries').all()).toEqual([{ head: 1 }]);
    });
  });

  it('upgraded in a way that its statements do not fit any more is not called damaged', async () => {
    const path = temporaryFile();
    const journal = openJournal(path);
    await journal.create(newRun('r1'));
    withDatabase(path, (db) =>
      db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}; ALTER TABLE entries RENAME COLUMN body TO content`),
    );
    await expectCode(journal.read('r1'), 'journal_newer');
  });

  it('deleted is told to those who wait for a run, and to a worker once', async () => {
    const path = temporaryFile();
    const journal = openJournal(path, { watchIntervalMs: 10 });
    await journal.create(newRun('r1'));
    const faults: { code?: string }[] = [];
    const onFault = (error: unknown): void => void faults.push(error as { code?: string });
    const runtime = createRuntime({ planner: { name: 'another', next: () => never }, journal, onFault });
    const waiting = runtime.run('r1').result();
    const told = expectCode(waiting, 'journal_replaced');
    removed(path);
    await told;
    runtime.work();
    await expect.poll(() => faults.length).toBeGreaterThan(0);
    expect(faults).toMatchObject([{ code: 'journal_replaced' }]);
    await runtime.close();
  });

  it('taken from a process that appends: it ends with the error, and all that it acknowledged is in what it had open', async () => {
    const path = temporaryFile();
    const child = startChild('appendForEver', path);
    let acknowledged = 0;
    while (acknowledged < 50) acknowledged = Number(await child.line());
    for (const end of ['', '-wal']) linkSync(`${path}${end}`, `${path}.kept${end}`);
    removed(path);
    for (let line = await child.line(); line !== undefined; line = await child.line()) {
      if (/^\d+$/.test(line)) acknowledged = Number(line);
      else expect(line).toBe('journal_replaced');
    }
    expect(await child.ended).toBe(0);
    const kept = openJournal(`${path}.kept`);
    expect((await kept.read('endless')).length).toBeGreaterThanOrEqual(acknowledged);
  });
});

describe('two journals of one process on one file', () => {
  it('see what the other has written, in the same turn of the event loop too', async () => {
    const path = temporaryFile();
    const first = openJournal(path);
    const second = openJournal(path);
    const claim = await createClaimed(first, 'r1');
    await turn();
    for (const at of [1, 2, 3]) {
      expect(await sequence(second, 'r1')).toHaveLength(at);
      await first.append(step(claim, at));
      expect(await sequence(second, 'r1')).toHaveLength(at + 1);
    }
  });

  it('keep the locks: another process that comes and goes does not take the log away', async () => {
    const path = temporaryFile();
    const first = openJournal(path);
    const claim = await createClaimed(first, 'r1');
    const second: Journal = openJournal(path);
    expect(await second.get('r1')).toBeDefined();
    const log = statSync(`${path}-wal`).ino;
    const child = startChild('writeRuns', path);
    expect(await child.ended).toBe(0);
    expect(statSync(`${path}-wal`).ino).toBe(log);
    await first.append(step(claim, 1));
    expect(await sequence(second, 'r1')).toEqual([1, 2]);
    withDatabase(path, (db) => {
      expect(db.prepare('SELECT max(seq) AS head FROM entries WHERE run = 1').get()).toEqual({ head: 2 });
    });
  });
});

const never = new Promise<never>(() => {});

it('a backup beside the log of the file that was there before is damaged, and what is said names the log', async () => {
  const path = temporaryFile();
  const journal = openJournal(path);
  const claim = await createClaimed(journal, 'r1');
  const backup = `${path}.backup`;
  withDatabase(path, (db) => db.exec(`VACUUM INTO '${backup}'`));
  for (let seq = 1; seq <= 400; seq += 1) await journal.append(step(claim, seq));
  withDatabase(path, (db) => db.exec('PRAGMA wal_checkpoint(RESTART)'));
  for (let seq = 401; seq <= 420; seq += 1) await journal.append(step(claim, seq));
  copyFileSync(`${path}-wal`, `${backup}-wal`);
  const opened = async (): Promise<unknown> => openJournal(backup).read('r1');
  const error = await expectCode(opened(), 'journal_corrupt');
  expect(error.message).toContain(`the log ${backup}-wal was of the file before: remove it`);
});
