/**
 * One transaction for all the writes that are ready in the same turn of the event loop. A write that is refused fails
 * alone, and so does one that the file does not take: the others are made without it. When the disk or the lock fails, all
 * of them are rolled back and rejected. While the disk takes a commit in, the event loop goes on, and the next one is gathered.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { PilotageError } from '#core';
import { journalClosed } from '../rules.ts';
import { concernsOneWrite, isBusy } from './file.ts';
import type { SqliteGuard } from './guard.ts';
import type { LogSync } from './log-sync.ts';
import { endSharedReads } from './shared-read.ts';

/** So that a burst does not hold the event loop for long. */
const MAX_WRITES_PER_COMMIT = 1_024;
const BUSY_RETRY_MS = 20;
/** Writes that keep coming are waited for as long as so many commits take, and at least so long. */
const COMMITS_OF_WAIT = 4;
const LEAST_WAIT_MS = 10;

interface Write {
  /** Runs inside the transaction. Throws a `PilotageError` only before it has changed anything. */
  readonly run: () => unknown;
  /** The run that it is for, if it is for one. */
  readonly of: string | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** When it first found the file locked, by the machine's monotonic clock. */
  lockedSinceMs?: number;
}

export class GroupWriter {
  readonly #db: DatabaseSync;
  readonly #guard: SqliteGuard;
  readonly #sync: LogSync | undefined;
  readonly #busyTimeoutMs: number;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #queue: Write[] = [];
  #scheduled = false;
  /** How many writes the last commit held, and of which run it was when it held one. */
  #lastWrites = 0;
  #lastOf: string | undefined;
  /** How long the last commit took, until it was on the disk. */
  #lastCommitMs = 0;
  /** How many writes were ready at the last look, none before the first look, and since when writes are gathered. */
  #gathered = 0;
  #gatheredSinceMs = 0;
  /** The next commit is for one run that has no others beside it. */
  #isAlone = true;
  /** The write that runs. */
  #running: Write | undefined;
  #closed = false;
  #onIdle: (() => void) | undefined;

  /** @param sync brings commits onto the disk. Absent: they need not be there before anybody is told. */
  constructor(db: DatabaseSync, guard: SqliteGuard, sync: LogSync | undefined, busyTimeoutMs: number) {
    this.#db = db;
    this.#guard = guard;
    this.#sync = sync;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
  }

  /** Resolves when what `run` wrote is durable. `run` may be tried several times. @param of the run that it is for. */
  write<T>(run: () => T, of?: string): Promise<T> {
    if (this.#closed) return Promise.reject(journalClosed());
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, of, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule(of);
    });
  }

  /** Takes no more writes, and resolves when those before have settled. */
  close(): Promise<void> {
    this.#closed = true;
    if (!this.#scheduled) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #schedule(of: string | undefined): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // One run alone, which goes on when it is told, need not wait for others. What comes from several may have more behind it.
    this.#isAlone = of !== undefined && of === this.#lastOf && this.#lastWrites <= 1;
    if (this.#isAlone) queueMicrotask(this.#flush);
    else {
      // The first look is in the same turn as the write, in which nobody else was heard.
      this.#gathered = 0;
      this.#gatheredSinceMs = performance.now();
      setImmediate(this.#gather);
    }
  }

  /**
   * Commits when a whole turn of the event loop has brought no more writes, or they were waited for long enough. A busy server is given one new
   * connection a turn: with a commit for each, a burst of clients is let in more slowly than they come.
   */
  readonly #gather = (): void => {
    const { length } = this.#queue;
    const waitedMs = performance.now() - this.#gatheredSinceMs;
    if (length === this.#gathered || waitedMs >= Math.max(LEAST_WAIT_MS, COMMITS_OF_WAIT * this.#lastCommitMs))
      this.#flush();
    else {
      this.#gathered = length;
      setImmediate(this.#gather);
    }
  };

  readonly #flush = (): void => {
    const batch = this.#queue.splice(0, MAX_WRITES_PER_COMMIT);
    this.#lastWrites = batch.length;
    this.#lastOf = batch[0]?.of;
    const beganAt = performance.now();
    try {
      const settle = this.#transact(batch);
      const sync = this.#sync;
      if (sync?.isQuick || (this.#isAlone && batch.length === 1)) sync?.now();
      const synced = sync?.soon();
      if (synced === undefined) this.#settle(settle, beganAt);
      else synced.then(() => this.#settle(settle, beganAt)).catch((error) => this.#fail(batch, error));
    } catch (error) {
      if (isBusy(error)) this.#waitForLock(batch, error);
      else this.#fail(batch, error);
    }
  };

  #settle(settle: readonly (() => void)[], beganAt: number): void {
    this.#lastCommitMs = performance.now() - beganAt;
    this.#guard.afterCommit();
    for (const each of settle) each();
    this.#next();
  }

  #fail(batch: readonly Write[], error: unknown): void {
    const why = this.#guard.explain(error);
    const failed = this.#running !== undefined && concernsOneWrite(error) ? [this.#running] : batch;
    for (const write of failed) write.reject(why);
    this.#queue = [...batch.filter((write) => !failed.includes(write)), ...this.#queue];
    this.#next();
  }

  #next(): void {
    this.#scheduled = false;
    if (this.#queue.length > 0) this.#schedule(this.#queue[0]?.of);
    else this.#onIdle?.();
  }

  /** Commits the batch and returns how to tell each caller. */
  #transact(batch: readonly Write[]): (() => void)[] {
    this.#running = undefined;
    this.#guard.assertUsable();
    endSharedReads();
    this.#begin.run();
    try {
      this.#guard.beforeWrite();
      const settle: (() => void)[] = [];
      for (const write of batch) {
        this.#running = write;
        settle.push(attempt(write));
      }
      this.#running = undefined;
      this.#commit.run();
      this.#sync?.committed();
      return settle;
    } catch (error) {
      // SQLite has rolled back by itself after some failures.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #waitForLock(batch: readonly Write[], error: unknown): void {
    const now = performance.now();
    const patient: Write[] = [];
    for (const write of batch) {
      write.lockedSinceMs ??= now;
      if (now - write.lockedSinceMs < this.#busyTimeoutMs) patient.push(write);
      else write.reject(this.#guard.explain(error));
    }
    this.#queue = [...patient, ...this.#queue];
    if (this.#queue.length > 0) setTimeout(this.#flush, BUSY_RETRY_MS);
    else this.#next();
  }
}

function attempt(write: Write): () => void {
  try {
    const value = write.run();
    return () => write.resolve(value);
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return () => write.reject(error);
  }
}
