/**
 * Whether an open connection may go on writing: the file that it has open is still the one that its path names, with the
 * write-ahead log and the index beside it that the connection uses, and of the format that this code writes.
 *
 * SQLite holds its own descriptors of all three as long as the connection is open, so that no other file can get the same
 * number meanwhile. Files that were overwritten in place, byte for byte, cannot be told from outside, but for those that shrank.
 */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { describeThrown, PilotageError } from '#core';
import { idOf, noteOpen, realPath, storeError } from './file.ts';
import { newer, SCHEMA_VERSION } from './schema.ts';
import { type PreparedStatement, prepared } from './statements.ts';

/**
 * So fresh a look is not repeated. Who commits one write after another would pay for each with a third of its CPU; and what was
 * acknowledged a millisecond before the file went is as lost as what came a millisecond after.
 */
const FRESH_MS = 1;

interface Seen {
  readonly path: string;
  /** Device and number; `undefined`: it is not there yet. */
  id: string | undefined;
  sizeBytes: number;
}

export class SqliteGuard {
  readonly #path: string;
  readonly #version: StatementSync;
  readonly #length: PreparedStatement;
  readonly #main: Seen;
  readonly #log: Seen;
  readonly #index: Seen;
  #gone: PilotageError | undefined;
  readonly #noteClosed: () => void;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(db: DatabaseSync, path: string) {
    this.#path = path;
    const absolute = resolve(path);
    this.#version = db.prepare('PRAGMA user_version');
    this.#length = prepared(db)('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size');
    this.#main = { path: absolute, id: undefined, sizeBytes: 0 };
    const real = realPath(absolute);
    this.#log = { path: `${real}-wal`, id: undefined, sizeBytes: 0 };
    this.#index = { path: `${real}-shm`, id: undefined, sizeBytes: 0 };
    this.look();
    this.#noteClosed = this.#main.id === undefined ? () => {} : noteOpen(this.#main.id);
  }

  /** Where the write-ahead log is. */
  get logPath(): string {
    return this.#log.path;
  }

  /**
   * The disk has not taken in what was committed. What Linux has not written once it may take for written the next time, so that nothing that is said of
   * this file after it can be relied on (https://lwn.net/Articles/752063/).
   * @throws PilotageError `journal_unsynced`.
   */
  readonly unsynced = (cause: unknown): never => {
    this.#gone ??= new PilotageError(
      'journal_unsynced',
      `The disk of the journal ${this.#path} has failed (${describeThrown(cause)}): whether it has what was written last cannot be known. This process writes nothing more to it. Check the disk; then start the process again, which reads what is there.`,
      { cause, data: { path: this.#path } },
    );
    throw this.#gone;
  };

  /** The connection was closed. */
  close(): void {
    this.#noteClosed();
  }

  /** @throws PilotageError `journal_replaced`, `journal_newer` or `journal_unsynced`, once that was seen. */
  assertUsable(): void {
    if (this.#gone !== undefined) throw this.#gone;
  }

  /**
   * Inside the write transaction, before its first change: nobody else can change the format until it ends.
   * @throws PilotageError `journal_replaced` or `journal_newer`: nothing is to be written.
   */
  beforeWrite(): void {
    this.assertUsable();
    if (!this.#isFresh()) this.#compare(this.#main);
    this.#compareFormat();
    this.assertUsable();
  }

  /**
   * After the commit is on the disk, and before anybody is told of it: a millisecond before what is acknowledged, or later, the path still named
   * the file that it is in.
   * @throws PilotageError `journal_replaced`.
   */
  afterCommit(): void {
    if (this.#isFresh()) return;
    this.#lookedAt = performance.now();
    this.#compare(this.#main);
    this.#compare(this.#log);
    // The file is made with the first read or write, and is checked with everything else after that.
    if (this.#index.id === undefined) this.#compare(this.#index);
    this.assertUsable();
  }

  /** Looks at everything. @returns why the connection cannot be used any more. */
  look(): PilotageError | undefined {
    if (this.#gone !== undefined) return this.#gone;
    for (const seen of [this.#main, this.#log, this.#index]) this.#compare(seen);
    try {
      this.#compareFormat();
    } catch {
      // The next read or write gets the error.
    }
    return this.#gone;
  }

  /** The error of a statement: that the file is another one now explains any. */
  explain(error: unknown): PilotageError {
    return PilotageError.is(error) ? error : (this.look() ?? storeError(error, this.#path));
  }

  #isFresh(): boolean {
    return performance.now() - this.#lookedAt < FRESH_MS;
  }

  #compare(seen: Seen): void {
    const stats = statSync(seen.path, { throwIfNoEntry: false });
    const id = idOf(stats);
    if (seen.id === undefined) seen.id = id;
    if (seen.id !== id) {
      this.#lost(`${seen.path} was ${id === undefined ? 'deleted or moved away' : 'replaced by another file'}`);
    } else if (stats !== undefined && seen === this.#main) {
      // VACUUM makes it shorter, and SQLite knows how long it is then; otherwise another one was copied over it.
      if (stats.size < seen.sizeBytes && stats.size < this.#lengthBytes())
        this.#lost(`${seen.path} was overwritten in place`);
      seen.sizeBytes = stats.size;
    }
  }

  /** The length of the database in bytes, as SQLite reads it. */
  #lengthBytes(): number {
    try {
      return Number(this.#length().get()?.['bytes']);
    } catch {
      return Number.POSITIVE_INFINITY;
    }
  }

  #compareFormat(): void {
    const found = Number(this.#version.get()?.['user_version']);
    if (found > SCHEMA_VERSION) this.#gone ??= newer(this.#path, found);
    else if (found < SCHEMA_VERSION) this.#lost(`the file has the older format ${found} now`);
  }

  #lost(what: string): void {
    this.#gone ??= new PilotageError(
      'journal_replaced',
      `The journal ${this.#path} is not the file any more that this process has open: ${what}. This process writes nothing more to it; open the journal again.`,
      { data: { path: this.#path } },
    );
  }
}
