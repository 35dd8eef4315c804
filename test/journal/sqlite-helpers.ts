/** Shared by the tests of the SQLite journal: temporary folders, raw databases, child processes, a look into the WAL. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Journal } from '../../src/journal/port.ts';
import { type SqliteJournalOptions, sqliteJournal } from '../../src/journal/sqlite.ts';

export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'journal.db');
}

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

export interface Child {
  readonly process: ChildProcess;
  /** The next line that the child prints; undefined when it has ended. */
  line(): Promise<string | undefined>;
  /** Resolves with the exit code, or the name of the signal. */
  readonly ended: Promise<number | string>;
}

/** Runs a mode of `sqlite-child.ts` in a process of its own. */
export function startChild(mode: string, path: string): Child {
  const script = fileURLToPath(new URL('sqlite-child.ts', import.meta.url));
  const child = spawn(process.execPath, [script, mode, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  return {
    process: child,
    ended,
    line: async () => {
      const next = await lines.next();
      return next.done === true ? undefined : next.value;
    },
  };
}
