/** SQLite files: opened as journals, looked into, and measured. */
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { onTestFinished } from 'vitest';
import type { Journal } from '#journal';
import { type SqliteJournalOptions, sqliteJournal } from '#journal/sqlite';

export function openJournal(path: string, more: Partial<SqliteJournalOptions> = {}): Journal {
  const journal = sqliteJournal({ path, ...more });
  onTestFinished(() => journal.close());
  return journal;
}

/** Opens the file beside the journal, for one look or one change. */
export function withDatabase<T>(path: string, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

/** Brings a file of the present format back to format 8. */
export function makeOlder(path: string): void {
  withDatabase(path, (db) =>
    db.exec(`
      DROP INDEX runs_live;
      CREATE INDEX runs_root ON runs (root) WHERE root IS NOT NULL;
      CREATE TABLE session_turns (
        scope TEXT NOT NULL, number INTEGER NOT NULL, run TEXT NOT NULL UNIQUE, user TEXT NOT NULL, assistant TEXT,
        at INTEGER NOT NULL, PRIMARY KEY (scope, number)
      ) STRICT, WITHOUT ROWID;
      ALTER TABLE session_summaries ADD COLUMN covers INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE session_summaries DROP COLUMN through;
      ALTER TABLE session_summaries DROP COLUMN without;
      DROP TABLE store_items;
      PRAGMA user_version = 8`),
  );
}

const WAL_HEADER_BYTES = 32;

const FRAME_HEADER_BYTES = 24;

/** Pages and commits in the WAL since it was last reset. See https://sqlite.org/fileformat.html#the_write_ahead_log */
export function walOf(path: string): { pages: number; commits: number } {
  const wal = readFileSync(`${path}-wal`);
  if (wal.length === 0) return { pages: 0, commits: 0 };
  const salt = wal.subarray(16, 24);
  const frameBytes = FRAME_HEADER_BYTES + wal.readUInt32BE(8);
  const found = { pages: 0, commits: 0 };
  for (let at = WAL_HEADER_BYTES; at + frameBytes <= wal.length; at += frameBytes) {
    if (!wal.subarray(at + 8, at + 16).equals(salt)) break;
    found.pages += 1;
    if (wal.readUInt32BE(at + 4) !== 0) found.commits += 1;
  }
  return found;
}

export function resetWal(path: string): void {
  withDatabase(path, (db) => db.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
}
