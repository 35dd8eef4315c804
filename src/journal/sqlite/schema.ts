/**
 * Opens the file and brings it to the schema of this version. The file is read before SQLite touches it, so that another
 * application's database is refused untouched.
 */
import { closeSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { PilotageError } from '#core';
import { damaged, idOf, isBusy, isOpenHere, storeError } from './file.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';

const APPLICATION_ID_OFFSET = 68;
const MAGIC = 'SQLite format 3\0';

/**
 * In SQL: the id of the entry of a run, or of the row of a stream, with this number. A number that is given is bound as a float, and a sum with one
 * would be rounded from the key 2,097,152 on.
 */
export const idAt = (key: string, number: string): string => `(${key} << 32) + CAST(${number} AS INTEGER)`;
/** In SQL: the last entry that the log has of the run of a row of `runs`; NULL when it has none. */
export const LAST_ENTRY =
  '(SELECT max(entries.id) FROM entries WHERE entries.id BETWEEN runs.key << 32 AND (runs.key << 32) + 4294967295)';
/** In SQL: how many entries the run of a row of `runs` has, as the log says, but no fewer than it had when its row was written. */
export const HEAD: string = `max(runs.head, coalesce(${LAST_ENTRY} & 4294967295, 0))`;

/** The newest version of the file's schema that this code knows. */
export const SCHEMA_VERSION: number = MIGRATIONS.length;

const OPEN_RETRY_MS = 10;
// A transaction of another process is far shorter than this, and the event loop stands still meanwhile.
const LOCK_WAIT_MS = 10;

export interface OpenOptions {
  readonly path: string;
  /** How long the file may be locked: another process may be opening it too. The event loop stands still for that time. Default 0. */
  readonly waitMs?: number;
}

/** @throws PilotageError `journal_newer`, `journal_corrupt`, `journal_read_only`, `journal_busy` or `invalid_config`. */
export function openDatabase(options: OpenOptions): DatabaseSync {
  return openAnyFormat(options).db;
}

/** For how long another process may have the file. */
const MIGRATE_WAIT_MS = 5_000;

/** Brings the file to the present version. @returns the versions before and after. @throws PilotageError as `openDatabase` does. */
export function migrateFile(path: string): { readonly from: number; readonly to: number } {
  const { db, from } = openAnyFormat({ path, waitMs: MIGRATE_WAIT_MS });
  db.close();
  return { from, to: SCHEMA_VERSION };
}

function openAnyFormat(options: OpenOptions): { readonly db: DatabaseSync; readonly from: number } {
  const { path, waitMs = 0 } = options;
  const { DatabaseSync } = loadSqlite();
  makeFolder(path);
  assertOurs(path, 'a+');
  const deadline = performance.now() + waitMs;
  for (;;) {
    let db: DatabaseSync | undefined;
    try {
      const before = idOf(statSync(path, { throwIfNoEntry: false }));
      db = new DatabaseSync(path);
      const from = prepareDatabase(db, options);
      // Somebody put another file there meanwhile.
      if (before === idOf(statSync(path, { throwIfNoEntry: false }))) return { db, from };
      db.close();
      assertOurs(path, 'a+');
    } catch (error) {
      // Before the file is closed, which takes away a log that lies beside it.
      const failure = storeError(error, path);
      db?.close();
      if (!isBusy(error) || performance.now() > deadline) throw failure;
    }
    // The switch to WAL does not wait for locks by itself.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, OPEN_RETRY_MS);
  }
}

// Loaded here, not imported: older runtimes warn about node:sqlite, and who does not use it shall not be warned.
export function loadSqlite(): typeof import('node:sqlite') {
  const sqlite = process.getBuiltinModule('node:sqlite');
  if (sqlite !== undefined) return sqlite;
  throw new PilotageError(
    'invalid_config',
    'This runtime has no node:sqlite. Use Node 22.18 or later, or give the runtime another journal.',
  );
}

function makeFolder(path: string): void {
  // Who writes `memory` means a journal in memory; a file of that name is './memory'.
  if (path === '' || path === ':memory:' || path === 'memory') {
    throw new PilotageError(
      'invalid_config',
      `A journal needs the path of a file, and was given ${JSON.stringify(path)}. memoryJournal() of pilotage/journal/memory keeps a journal without a file.`,
    );
  }
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (error) {
    throw fileError(error, path);
  }
}

/** Looks at the header only. An empty file becomes a new journal. */
export function assertOurs(path: string, flags: 'a+' | 'r'): void {
  // A journal that is open in this process was checked when it was opened, and only SQLite may close its files.
  if (isOpenHere(path)) return;
  const header = readHeader(path, flags);
  if (header.length === 0) return;
  if (header.subarray(0, MAGIC.length).toString('latin1') !== MAGIC || header.length < 100) {
    throw new PilotageError('journal_corrupt', damaged(path, 'the file is not an SQLite database'), { data: { path } });
  }
  if (header.readUInt32BE(APPLICATION_ID_OFFSET) === APPLICATION_ID) return;
  throw new PilotageError(
    'invalid_config',
    `${path} is a database of another application, and was left as it is. Give the journal a file of its own.`,
    { data: { path } },
  );
}

function readHeader(path: string, flags: 'a+' | 'r'): Buffer {
  const header = Buffer.alloc(100);
  let file: number | undefined;
  try {
    // Makes the file when there is none, and finds out whether it can be written; SQLite would open it for reading only.
    file = openSync(path, flags);
    return header.subarray(0, readSync(file, header, 0, header.length, 0));
  } catch (error) {
    // A folder is wrong for who reads as for who writes, and does not pass.
    const isElsewhere = flags === 'r' && errorCode(error) !== 'EISDIR';
    throw isElsewhere ? unreadable(error, path) : fileError(error, path);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function fileError(cause: unknown, path: string): PilotageError {
  const code = errorCode(cause);
  const [errorName, message] =
    code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
      ? ([
          'journal_read_only',
          `This process has no right to write the journal ${path} (${code}). Give it the right, or use another path.`,
        ] as const)
      : (['invalid_config', `The journal cannot be at ${path} (${code}). Give the path of a file.`] as const);
  return new PilotageError(errorName, message, { cause, data: { path } });
}

function unreadable(cause: unknown, path: string): PilotageError {
  const message = `The journal ${path} cannot be read (${errorCode(cause)}). Give the path of a file that can.`;
  return new PilotageError('journal_unavailable', message, { cause, data: { path } });
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/** @returns the version before. */
function prepareDatabase(db: DatabaseSync, options: OpenOptions): number {
  db.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}; PRAGMA foreign_keys = ON;`);
  const from = migrate(db, options.path);
  // Only now: the first commit must have put the application id into the file itself, not into its WAL.
  const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
  if (mode !== 'wal') {
    throw new PilotageError(
      'invalid_config',
      `The file system of ${options.path} cannot hold a write-ahead log. Put the journal on a local disk.`,
    );
  }
  // Commits are brought onto the disk beside it: see `log-sync.ts`.
  db.exec('PRAGMA synchronous = NORMAL');
  return from;
}

function migrate(db: DatabaseSync, path: string): number {
  if (versionOf(db) === SCHEMA_VERSION) {
    assertWritable(db);
    return SCHEMA_VERSION;
  }
  db.exec('BEGIN IMMEDIATE');
  const version = versionOf(db);
  if (version > SCHEMA_VERSION) throw newer(path, version);
  for (const migration of MIGRATIONS.slice(version)) db.exec(migration);
  if (version < SCHEMA_VERSION) db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  db.exec('COMMIT');
  return version;
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA user_version').get()?.['user_version']);
}

/** Who has the write lock now, a stopped process perhaps, shows that the file can be written, and need not be waited for. */
function assertWritable(db: DatabaseSync): void {
  db.exec('PRAGMA busy_timeout = 0');
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
  db.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`);
}

export function newer(path: string, found: number): PilotageError {
  return new PilotageError(
    'journal_newer',
    `The journal ${path} has format ${found}; this version of Pilotage knows up to ${SCHEMA_VERSION}. Upgrade Pilotage.`,
    { data: { path, found, supported: SCHEMA_VERSION } },
  );
}
