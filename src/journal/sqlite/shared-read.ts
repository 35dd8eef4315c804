/**
 * The reads of one turn of the event loop share a transaction. Each alone would take the lock of the file and give it back, which costs more than most of
 * them do; and before the event loop goes on, this process can hardly hear of what others have written meanwhile.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** What runs another process and waits for it, in the middle of a turn, takes longer than that, and then sees what it has written. */
const MOST_MS = 1;

/** Those of all connections of this process. */
const open = new Set<SharedRead>();

export class SharedRead {
  readonly #db: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #beganAt = 0;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#begin = db.prepare('BEGIN');
    this.#commit = db.prepare('COMMIT');
  }

  /** Before a read. @returns whether it is the first of its transaction. */
  begin(): boolean {
    const now = performance.now();
    if (open.has(this) && now - this.#beganAt > MOST_MS) this.end();
    if (this.#db.isTransaction) return false;
    this.#begin.run();
    this.#beganAt = now;
    open.add(this);
    // It runs when all microtasks have, those that they bring about included, and before the event loop goes on.
    process.nextTick(this.end);
    return true;
  }

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
