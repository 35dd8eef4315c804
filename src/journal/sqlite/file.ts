/** The file of a journal: the result codes of SQLite as errors of ours, and which files this process has open. */
import { readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { basename } from 'node:path';
import { type ErrorCode, PilotageError } from '#core';

// https://sqlite.org/rescode.html; the low byte of an extended code is the primary one.
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;
const GENERIC = 1;
const TOOBIG = 18;
const CONSTRAINT = 19;
const MISMATCH = 20;

/** SQLite's primary result code, when `thrown` comes from it. */
function resultCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !('errcode' in thrown) || typeof thrown.errcode !== 'number') return undefined;
  return thrown.errcode & 0xff;
}

export function isBusy(thrown: unknown): boolean {
  const code = resultCode(thrown);
  return code === BUSY || code === LOCKED;
}

/** The statement was at fault, or our own code was, and not the file: other writes would be taken. */
export function concernsOneWrite(thrown: unknown): boolean {
  const code = resultCode(thrown);
  return code === undefined || code === CONSTRAINT || code === TOOBIG || code === MISMATCH;
}

/** Typed errors pass through; others become one that names the file. Nothing was written when SQLite threw. */
export function storeError(thrown: unknown, path: string): PilotageError {
  if (PilotageError.is(thrown)) return thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  const [code, message] = describe(resultCode(thrown), path, why);
  return new PilotageError(code, message, { cause: thrown, data: { path } });
}

function describe(code: number | undefined, path: string, why: string): readonly [ErrorCode, string] {
  switch (code) {
    case BUSY:
    case LOCKED:
      return [
        'journal_busy',
        `${holderOf(path)} holds the journal ${path}. Nothing was written. Try again when it is done; let it go on, or end it, if it is stopped.`,
      ];
    case READONLY:
      return [
        'journal_read_only',
        `The journal ${path} cannot be written. Give this process the right to write the file and its folder.`,
      ];
    case CORRUPT:
    case NOTADB:
    case GENERIC:
    case CONSTRAINT:
      return ['journal_corrupt', damaged(path, why)];
    case FULL:
      return ['journal_full', `The disk of the journal ${path} is full. Nothing was written; make room and try again.`];
    case CANTOPEN:
      return [
        'journal_unavailable',
        `The journal ${path} cannot be opened (${why}). Check that its folder exists and can be written.`,
      ];
    default:
      return ['journal_unavailable', `The journal ${path} failed (${why}). Nothing was written; check the disk.`];
  }
}

/** Where SQLite locks what is to be written: one byte of the index beside a log, some of the file itself without one. */
const INDEX_WRITE_BYTE = 120;
const FILE_LOCKS_FROM = 0x40000000;

/** Who has the write lock, as Linux tells of processes that this one can see. */
function holderOf(named: string): string {
  const path = realPath(named);
  const [file, index] = [path, `${path}-shm`].map((each) => statSync(each, { throwIfNoEntry: false })?.ino);
  for (const line of linesOf('/proc/locks')) {
    const [, pid = '', inode = '', from = ''] = /\bWRITE (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) (\d+) /.exec(line) ?? [];
    const isOfIndex = Number(inode) === index && Number(from) === INDEX_WRITE_BYTE;
    const isOfFile = Number(inode) === file && Number(from) >= FILE_LOCKS_FROM;
    if ((isOfIndex || isOfFile) && Number(pid) > 0 && Number(pid) !== process.pid) return `Another process (${pid})`;
  }
  return 'Another process';
}

function linesOf(path: string): readonly string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return [];
  }
}

export function damaged(path: string, why: string): string {
  const log = `${realPath(path)}-wal`;
  const hasLog = (statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0;
  // SQLite reads any log that lies beside a file as its own.
  const whatToDo = hasLog
    ? ` If it is a backup that was put there, the log ${log} was of the file before: remove it and ${basename(log, '-wal')}-shm, if they are still there, and put the backup there once more. Otherwise restore`
    : ' Restore';
  return `The journal ${path} is damaged (${why}).${whatToDo} it from a backup, or move it away to begin a new one.`;
}

// Which files this process has open through SQLite. To close any other descriptor of such a file takes away the locks
// that SQLite has on it
// (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_): another
// process would take itself for the last one, and delete the log that this one still writes.

const open = new Map<string, number>();

/** What tells a file from every other as long as somebody has it open. */
export function idOf(stats: Pick<Stats, 'dev' | 'ino'> | undefined): string | undefined {
  return stats && `${stats.dev}:${stats.ino}`;
}

/** @returns how to say that it was closed. */
export function noteOpen(id: string): () => void {
  open.set(id, (open.get(id) ?? 0) + 1);
  return () => {
    const left = (open.get(id) ?? 1) - 1;
    if (left === 0) open.delete(id);
    else open.set(id, left);
  };
}

export function isOpenHere(path: string): boolean {
  const id = idOf(statSync(path, { throwIfNoEntry: false }));
  return id !== undefined && open.has(id);
}

/** Where the file is that the path names: SQLite keeps the log and the index there, not beside a symbolic link to it. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
