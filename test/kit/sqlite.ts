/** SQLite files: opened as journals, looked into, and measured. */
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { onTestFinished } from 'vitest';
import { endSharedReads, type Journal, MIGRATIONS } from '#journal';
import { type SqliteJournalOptions, sqliteJournal } from '#journal/sqlite';

export function openJournal(path: string, more: Partial<SqliteJournalOptions> = {}): Journal {
  const journal = sqliteJournal({ path, ...more });
  onTestFinished(() => journal.close());
  return journal;
}

/** Opens the file beside the journal, for one look or one change, as another process does between two turns of the event loop. */
export function withDatabase<T>(path: string, use: (db: DatabaseSync) => T): T {
  endSharedReads();
  const db = new DatabaseSync(path);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

/** Brings a file of the present format back to format 8. */
export function makeOlder(path: string): void {
  const older = `${path}-older`;
  withDatabase(older, (db) => {
    for (const migration of MIGRATIONS.slice(0, OLDER)) db.exec(migration);
    db.exec(`PRAGMA user_version = ${OLDER}; ATTACH '${path}' AS today`);
    const tables = db.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table'").all();
    for (const { name } of tables) {
      const columnsIn = (schema: string): unknown[] =>
        db
          .prepare(`SELECT name FROM pragma_table_info('${name}', '${schema}')`)
          .all()
          .map((column) => column['name']);
      const both = columnsIn('main').filter((column) => columnsIn('today').includes(column));
      if (both.length > 0) db.exec(`INSERT INTO main.${name} (${both}) SELECT ${both} FROM today.${name}`);
    }
    db.exec('DETACH today; PRAGMA journal_mode = WAL');
  });
  for (const rest of ['-wal', '-shm']) rmSync(`${path}${rest}`, { force: true });
  renameSync(older, path);
}

const OLDER = 8;

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
