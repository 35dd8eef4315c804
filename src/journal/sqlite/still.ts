/**
 * Opens the file for looking, so that nothing of it or beside it changes. How depends on what is there:
 * - log and index: others may write; SQLite reads with them, through the index that they share.
 * - no log, or an empty one: all is in the file itself, which SQLite takes for one that does not change.
 * - a log whose index is not there, or cannot be used: its owner has died, or it was copied. Both are put together in memory, or,
 *   where they are large or Node cannot, copied elsewhere; where there is no room, they are read without what is only in the log.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, type Stats, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { PilotageError } from '#core';
import { realPath, storeError } from './file.ts';
import { assertOurs, loadSqlite, newer, SCHEMA_VERSION } from './schema.ts';

export interface Still {
  readonly db: DatabaseSync;
  /** Others may write, and what they write is seen. */
  readonly isShared: boolean;
  /** The last commits are only in a log that could not be read. */
  readonly isBehind: boolean;
  /** After the connection was closed. */
  dispose(): void;
}

/** What stands at the path, so that a change of it shows. */
export function footprintOf(path: string): string {
  return [path, `${realPath(path)}-wal`].map((each) => markOf(statSync(each, { throwIfNoEntry: false }))).join(' ');
}

function markOf(stats: Stats | undefined): string {
  return stats === undefined ? '-' : [stats.dev, stats.ino, stats.size, stats.mtimeMs].join(':');
}

/**
 * @throws PilotageError `journal_unavailable` when there is nothing, `journal_older`, `journal_newer`, `journal_corrupt`, or
 * `invalid_config`.
 */
export function openStill(named: string): Still {
  const path = realPath(named);
  if (sizeOf(path) === 0) {
    throw new PilotageError(
      'journal_unavailable',
      `There is no journal ${path}. Start a run first, or give its path.`,
      {
        data: { path },
      },
    );
  }
  assertOurs(path, 'r');
  if (existsSync(`${path}-wal`) && existsSync(`${path}-shm`)) {
    try {
      return asItIs(path, new (loadSqlite().DatabaseSync)(path, { readOnly: true }), { isShared: true });
    } catch (error) {
      if (PilotageError.is(error)) throw error;
      // The index cannot be used without a right to write it, and nobody is there who has one.
      return copied(path);
    }
  }
  return sizeOf(`${path}-wal`) === 0 ? unchanging(path, false) : copied(path);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function unchanging(path: string, isBehind: boolean): Still {
  const url = pathToFileURL(path);
  url.search = '?immutable=1';
  const { DatabaseSync } = loadSqlite();
  return typed(path, () => asItIs(path, new DatabaseSync(url, { readOnly: true }), { isBehind }));
}

/** More is copied to a file. */
const MOST_IN_MEMORY_BYTES = 256 * 1_048_576;

function together(path: string): Still | undefined {
  if (sizeOf(path) + sizeOf(`${path}-wal`) > MOST_IN_MEMORY_BYTES) return undefined;
  const { DatabaseSync } = loadSqlite();
  const db = new DatabaseSync(':memory:');
  // `deserialize` exists since Node 24.
  if (!('deserialize' in db) || typeof db.deserialize !== 'function') {
    db.close();
    return undefined;
  }
  const image = withLog(readFileSync(path), readFileSync(`${path}-wal`));
  return typed(path, () => {
    db.deserialize(image);
    return asItIs(path, db, {});
  });
}

function copied(path: string): Still {
  const inMemory = together(path);
  if (inMemory !== undefined) return inMemory;
  const folder = copyOf(path);
  if (folder === undefined) return unchanging(path, true);
  const dispose = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const { DatabaseSync } = loadSqlite();
    return typed(path, () => asItIs(path, new DatabaseSync(join(folder, 'journal.db')), { dispose }));
  } catch (error) {
    dispose();
    throw error;
  }
}

function copyOf(path: string): string | undefined {
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), 'pilotage-'));
    for (const end of ['', '-wal']) copyFileSync(`${path}${end}`, join(folder, `journal.db${end}`));
    return folder;
  } catch {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    return undefined;
  }
}

function typed<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    throw storeError(error, path);
  }
}

interface Manner {
  readonly isShared?: boolean;
  readonly isBehind?: boolean;
  readonly dispose?: () => void;
}

function asItIs(
  path: string,
  db: DatabaseSync,
  { isShared = false, isBehind = false, dispose = () => {} }: Manner,
): Still {
  try {
    db.exec('PRAGMA busy_timeout = 1000; PRAGMA query_only = ON');
    assertFormat(path, Number(db.prepare('PRAGMA user_version').get()?.['user_version']), isBehind);
  } catch (error) {
    db.close();
    throw error;
  }
  return { db, isShared, isBehind, dispose };
}

function assertFormat(path: string, found: number, isBehind: boolean): void {
  if (found === SCHEMA_VERSION) return;
  if (found > SCHEMA_VERSION) throw newer(path, found);
  const what = isBehind
    ? `The log of the journal ${path} cannot be read here, and without it there is nothing to see.`
    : `The journal ${path} has the older format ${found}; reading alone does not bring it to ${SCHEMA_VERSION}.`;
  throw new PilotageError(
    'journal_older',
    `${what} Run \`pilotage migrate\` once, or open it with sqliteJournal({ path }), or do so with a copy.`,
    { data: { path, found, supported: SCHEMA_VERSION } },
  );
}

// Reads a write-ahead log without SQLite, where SQLite would have to write to do so.
// https://sqlite.org/fileformat2.html#walformat

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;
/** Where the file says that it is in WAL mode, by two bytes of 2; 1 stands for a file without a log. */
const MODE_OFFSET = 18;

/** The database as a reader of the file and its log sees it: every commit that is whole in the log, and nothing after. */
function withLog(file: Uint8Array, log: Buffer): Uint8Array {
  const { pages, pageBytes, size } = committed(log);
  const image = new Uint8Array(size === 0 ? file.length : size * pageBytes);
  image.set(file.subarray(0, image.length));
  for (const [number, page] of pages) {
    const at = (number - 1) * pageBytes;
    if (at < image.length) image.set(page, at);
  }
  image.fill(1, MODE_OFFSET, MODE_OFFSET + 2);
  return image;
}

interface Committed {
  /** By their numbers, from 1. */
  readonly pages: ReadonlyMap<number, Uint8Array>;
  readonly pageBytes: number;
  /** In pages. 0: the log has no commit. */
  readonly size: number;
}

function committed(log: Buffer): Committed {
  const pages = new Map<number, Uint8Array>();
  let size = 0;
  if (log.length < HEADER_BYTES) return { pages, pageBytes: 0, size };
  const magic = log.readUInt32BE(0);
  const pageBytes = log.readUInt32BE(8);
  const sum = new Checksum((magic & 1) === 1);
  sum.add(log.subarray(0, 24));
  if ((magic & ~1) >>> 0 !== MAGIC || !sum.is(log, 24)) return { pages, pageBytes, size };
  const salt = log.subarray(16, 24);
  let open = new Map<number, Uint8Array>();
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  for (let at = HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes) {
    const page = log.subarray(at + FRAME_HEADER_BYTES, at + frameBytes);
    sum.add(log.subarray(at, at + 8));
    sum.add(page);
    // What follows is left from before the log was begun anew, or was cut off while it was written.
    if (!log.subarray(at + 8, at + 16).equals(salt) || !sum.is(log, at + 16)) break;
    open.set(log.readUInt32BE(at), page);
    const sizeAfter = log.readUInt32BE(at + 4);
    if (sizeAfter === 0) continue;
    size = sizeAfter;
    for (const [number, written] of open) pages.set(number, written);
    open = new Map();
  }
  return { pages, pageBytes, size };
}

/** SQLite's own, over everything that was added. */
class Checksum {
  readonly #isBigEndian: boolean;
  #first = 0;
  #second = 0;

  constructor(isBigEndian: boolean) {
    this.#isBigEndian = isBigEndian;
  }

  add(bytes: Buffer): void {
    const read = (at: number): number => (this.#isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at));
    for (let at = 0; at + 8 <= bytes.length; at += 8) {
      this.#first = (this.#first + read(at) + this.#second) >>> 0;
      this.#second = (this.#second + read(at + 4) + this.#first) >>> 0;
    }
  }

  /** Stored at that place. */
  is(log: Buffer, at: number): boolean {
    return log.readUInt32BE(at) === this.#first && log.readUInt32BE(at + 4) === this.#second;
  }
}
