/**
 * The reads of one turn of the event loop share a transaction. Each alone would take the lock of the file and give it back, which costs more than most of
 * them do; and before the event loop goes on, this process can hardly hear of what others have written meanwhile.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** What runs another process and waits for it, in the middle of a turn, takes longer than that, and then sees what it has written. */
const MOST_MS = 1;
/** Reads that follow one another may keep the event loop for so long. */
const MOST_OF_TURN_MS = 10;

/** Those of all connections of this process. */
const open = new Set<SharedRead>();

export class SharedRead {
  readonly #db: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #beganAt = 0;
  /** When the first read of this turn of the event loop began. */
  #turnBeganAt: number | undefined;
  readonly #waiting: (() => void)[] = [];

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#begin = db.prepare('BEGIN');
    this.#commit = db.prepare('COMMIT');
  }

  /**
   * Whether reads have had the event loop for long. What is read is there at once, so that whoever reads page after page would have it until the last
   * one.
   */
  get isLong(): boolean {
    return this.#turnBeganAt !== undefined && performance.now() - this.#turnBeganAt > MOST_OF_TURN_MS;
  }

  /** Reads in a later turn of the event loop, behind those that wait for one already. @param read begins with `begin`. */
  later<T>(read: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(this.#readOn);
      this.#waiting.push(() => {
        try {
          resolve(read());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  readonly #readOn = (): void => {
    let done = 0;
    while (done < this.#waiting.length && !this.isLong) {
      this.#waiting[done]?.();
      done += 1;
    }
    this.#waiting.splice(0, done);
    if (this.#waiting.length > 0) setImmediate(this.#readOn);
  };

  /** Before a read. @returns whether it is the first of its transaction. */
  begin(): boolean {
    const now = performance.now();
    if (open.has(this) && now - this.#beganAt > MOST_MS) this.end();
    if (this.#db.isTransaction) return false;
    this.#begin.run();
    this.#beganAt = now;
    this.#turnBeganAt ??= now;
    open.add(this);
    // It runs when all microtasks have, those that they bring about included, and before the event loop goes on.
    process.nextTick(this.#turnIsOver);
    return true;
  }

  readonly #turnIsOver = (): void => {
    this.#turnBeganAt = undefined;
    this.end();
  };

  /** Before the connection is used in another way. */
  readonly end = (): void => {
    if (!open.delete(this)) return;
    try {
      // SQLite has ended it by itself after some failures.
      if (this.#db.isTransaction) this.#commit.run();
    } catch {
      // A read has failed, and has told its caller so.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
    }
  };
}

/** Before a write: whoever hears of it in this process reads it, through whichever connection. */
export function endSharedReads(): void {
  for (const read of open) read.end();
}
