/** Runs that a claim leaves to others. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

interface TableStatements {
  readonly clear: StatementSync;
  readonly add: StatementSync;
  readonly remove: StatementSync;
}

/**
 * The runs that a claim passes over, by their keys in a table of this connection alone, so that thousands of them cost a claim
 * a walk over an index in memory. As a list in the statement they would be read and sorted anew by each of its look-ups.
 */
export class SqlitePassedOver {
  readonly #db: DatabaseSync;
  #sql: TableStatements | undefined;
  readonly #held = new Set<string>();
  #last: readonly string[] | undefined;
  /** Changed in a transaction, which may have been rolled back. */
  #isUnsure = false;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** The table `passed_over` has the keys of these runs and no others. */
  hold(runs: readonly string[]): void {
    if (runs === this.#last && !this.#isUnsure) return;
    this.#sql ??= prepare(this.#db);
    if (this.#isUnsure) {
      this.#sql.clear.run();
      this.#held.clear();
    }
    this.#isUnsure = this.#db.isTransaction;
    this.#last = undefined;
    const wanted = new Set(runs);
    for (const run of this.#held) {
      if (wanted.has(run)) continue;
      this.#sql.remove.run(run);
      this.#held.delete(run);
    }
    for (const run of wanted) {
      // A run that is not stored yet is asked for again.
      if (!this.#held.has(run) && this.#sql.add.run(run).changes > 0) this.#held.add(run);
    }
    this.#last = this.#held.size === wanted.size ? runs : undefined;
  }
}

function prepare(db: DatabaseSync): TableStatements {
  db.exec(`
    PRAGMA temp_store = MEMORY;
    CREATE TEMP TABLE IF NOT EXISTS passed_over (key INTEGER PRIMARY KEY)`);
  return {
    clear: db.prepare('DELETE FROM temp.passed_over'),
    add: db.prepare('INSERT OR IGNORE INTO temp.passed_over SELECT key FROM main.runs WHERE id = ?'),
    remove: db.prepare('DELETE FROM temp.passed_over WHERE key = (SELECT key FROM main.runs WHERE id = ?)'),
  };
}
