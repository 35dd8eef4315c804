import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PilotageError } from '#core';
import { openDatabase, SCHEMA_VERSION } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createClaimed, expectCode, newRun, step, stepEntry } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { openJournal, walOf, withDatabase } from '../kit/sqlite.ts';
import { startChild } from './children.ts';

function openingError(path: string): PilotageError {
  try {
    const journal = sqliteJournal({ path });
    void journal.close();
  } catch (error) {
    if (PilotageError.is(error)) return error;
    throw error;
  }
  throw new Error('the journal was opened');
}

/** A closed journal with some runs; everything is in the file itself. */
async function writtenJournal(): Promise<string> {
  const path = temporaryFile();
  const journal = openJournal(path);
  const claim = await createClaimed(journal, 'r1');
  for (let head = 1; head <= 100; head += 1) {
    await journal.append({ ...step(claim, head), entries: [stepEntry(head + 1, 'x'.repeat(500))] });
  }
  await journal.close();
  return path;
}

describe('the file of a SQLite journal', () => {
  it('is made with its folders, in WAL mode, with our application id', async () => {
    const path = join(dirname(temporaryFile()), 'a', 'b', 'journal.db');
    await openJournal(path).create(newRun('r1'));
    withDatabase(path, (db) => {
      expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
      expect(db.prepare('PRAGMA application_id').get()).toEqual({ application_id: 0x70696c6f });
      expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: SCHEMA_VERSION });
    });
  });

  it('is opened while somebody has its write lock, however long, and written when the lock is free', async () => {
    const path = await writtenJournal();
    const stopped = new DatabaseSync(path);
    stopped.exec('BEGIN IMMEDIATE');
    const journal = openJournal(path);
    expect((await journal.get('r1'))?.head).toBe(101);
    stopped.exec('ROLLBACK');
    stopped.close();
    await journal.create(newRun('r2'));
    expect((await journal.get('r2'))?.head).toBe(1);
  });

  it('is opened without a write, and without statements that nobody runs', async () => {
    const path = await writtenJournal();
    const other = openDatabase({ path });
    expect(other.prepare('PRAGMA foreign_keys').get()).toEqual({ foreign_keys: 1 });
    const version = other.prepare('PRAGMA data_version');
    const before = version.get();
    const prepare = vi.spyOn(Object.getPrototypeOf(other), 'prepare');
    onTestFinished(() => prepare.mockRestore());
    const journal = openJournal(path);
    const statements = prepare.mock.calls.length;
    expect(version.get()).toEqual(before);
    expect(walOf(path)).toEqual({ pages: 0, commits: 0 });
    expect(statements).toBeLessThan(8);
    await journal.read('r1');
    expect(prepare.mock.calls.length).toBe(statements + 3);
    other.close();
  });

  it('is refused when a newer version wrote it, with both versions', async () => {
    const path = await writtenJournal();
    withDatabase(path, (db) => db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 3}`));
    const before = readFileSync(path);
    const error = openingError(path);
    expect(error.code).toBe('journal_newer');
    expect(error.data).toMatchObject({ found: SCHEMA_VERSION + 3, supported: SCHEMA_VERSION });
    expect(error.message).toContain(`format ${SCHEMA_VERSION + 3}`);
    expect(error.message).toContain('Upgrade');
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it.each([
    ['garbage', (path: string) => writeFileSync(path, Buffer.alloc(5_000, 0xa5))],
    ['a few letters', (path: string) => writeFileSync(path, 'hello')],
    ['half a journal', (path: string) => truncateSync(path, Math.floor(readFileSync(path).length / 2))],
    ['the header of a journal', (path: string) => truncateSync(path, 100)],
  ])('is refused when it is %s', async (_what, damage) => {
    const path = await writtenJournal();
    damage(path);
    const before = readFileSync(path);
    const error = openingError(path);
    expect(error.code).toBe('journal_corrupt');
    expect(error.message).toContain(path);
    expect(error.message).toContain('backup');
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('names damage that shows only in the middle of reading', async () => {
    const path = await writtenJournal();
    const root = withDatabase(path, (db) =>
      db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'").get(),
    );
    const bytes = readFileSync(path);
    const page = Number(root?.['rootpage']);
    bytes.fill(0xa5, (page - 1) * 4096, page * 4096);
    writeFileSync(path, bytes);
    const error = await expectCode(openJournal(path).read('r1'), 'journal_corrupt');
    expect(error.message).toContain('backup');
  });

  it('is left as it is when it belongs to another application', () => {
    const path = temporaryFile();
    withDatabase(path, (db) => db.exec('CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)'));
    const before = readFileSync(path);
    const error = openingError(path);
    expect(error.code).toBe('invalid_config');
    expect(error.message).toContain('another application');
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(dirname(path))).toEqual(['journal.db']);
  });

  it('cannot be a folder or nothing', () => {
    expect(openingError(dirname(temporaryFile())).code).toBe('invalid_config');
    for (const path of ['', ':memory:', 'memory']) expect(openingError(path).code).toBe('invalid_config');
  });

  // Root may write everything, so that root becomes nobody for the moment of opening.
  const { geteuid, seteuid } = process;
  describe.skipIf(geteuid === undefined || seteuid === undefined)('without the right to write', () => {
    const asNobody = <T>(run: () => T): T => {
      const user = geteuid?.();
      if (user !== 0) return run();
      seteuid?.(65_534);
      try {
        return run();
      } finally {
        seteuid?.(user);
      }
    };

    it('a journal is read only', async () => {
      const path = await writtenJournal();
      chmodSync(dirname(path), 0o755);
      chmodSync(path, 0o444);
      const error = asNobody(() => openingError(path));
      expect(error.code).toBe('journal_read_only');
      expect(error.message).toContain(path);
    });

    it('a folder takes no journal, and no folders', () => {
      const folder = join(dirname(temporaryFile()), 'closed');
      mkdirSync(folder, { mode: 0o555 });
      chmodSync(dirname(folder), 0o755);
      expect(asNobody(() => openingError(join(folder, 'journal.db'))).code).toBe('journal_read_only');
      expect(asNobody(() => openingError(join(folder, 'more', 'journal.db'))).code).toBe('journal_read_only');
      expect(existsSync(join(folder, 'journal.db'))).toBe(false);
    });
  });

  it('is the only reason to load node:sqlite', async () => {
    const child = startChild('tellLoading', temporaryFile());
    expect(JSON.parse((await child.line()) ?? '')).toEqual({ before: false, after: true });
    expect(await child.ended).toBe(0);
  });
});
