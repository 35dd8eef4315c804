/**
 * The statements with which a run is looked at that cannot be read, and set right. Rows are never deleted or changed: those that
 * are taken out of a run are left where they are, without anything that points at them.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Examined, RepairRequest, RunStatus } from './port.ts';
import { assertAsExamined, hasEnded, runNotFound } from './rules.ts';
import { type Prepared, prepared } from './sqlite-prepared.ts';

interface RunRow {
  readonly key: number;
  readonly head: number;
  readonly signals: number;
  readonly status: RunStatus;
  readonly owner: string | null;
  readonly lease_until: number | null;
}

interface Row {
  readonly id: number;
  readonly seq: number;
  readonly body: string;
}

export class SqliteRepairs {
  readonly #find: Prepared;
  readonly #rows: Prepared;
  readonly #inbox: Prepared;
  readonly #insert: Prepared;
  readonly #drop: Prepared;
  readonly #set: Prepared;

  constructor(db: DatabaseSync) {
    this.#find = prepared(db, 'SELECT key, head, signals, status, owner, lease_until FROM runs WHERE id = ?');
    // Without a look at what points at what, nor at how many there should be, which may be what is broken. Of two rows with one seq the later was put in place
    // of the other, or belongs to an earlier repair.
    this.#rows = prepared(
      db,
      `
      SELECT max(id) AS id, seq, body FROM entries WHERE run = ? AND seq >= 1 GROUP BY seq ORDER BY seq`,
    );
    this.#inbox = prepared(
      db,
      'SELECT id, body AS text FROM controls WHERE run = ? AND body IS NOT NULL ORDER BY number',
    );
    this.#insert = prepared(db, 'INSERT INTO entries (run, seq, previous, body) VALUES (?, ?, ?, ?)');
    this.#drop = prepared(db, 'UPDATE controls SET body = NULL WHERE run = ? AND id = ?');
    this.#set = prepared(
      db,
      `
      UPDATE runs SET head = :head, first_entry = :first, last_entry = :last, status = :status, planner = :planner,
        fence = fence + 1, owner = NULL, lease_until = NULL, wake_at = 0, problem = NULL, updated_at = :now
      WHERE key = :key`,
    );
  }

  examine(run: string): Examined {
    const { key, head, signals } = this.#run(run);
    const entries = this.#rowsOf(key).map(({ seq, body }) => ({ seq, text: body }));
    return { head, signals, entries, inbox: this.#inbox().all(key) as unknown as Examined['inbox'] };
  }

  /** What stays is written anew, too: what pointed from one row to the next may have been broken. */
  repair(request: RepairRequest, bodies: readonly string[], now: number): void {
    const { run, keep, status, planner, drops } = request;
    const { key, head, signals, owner, lease_until: until, status: before } = this.#run(run);
    const isLeased = !hasEnded(before) && owner !== null && until !== null && until > now;
    const rows = this.#rowsOf(key);
    assertAsExamined(request, { head, last: rows.at(-1)?.seq ?? 0, signals, isLeased });
    const kept = rows.filter(({ seq }) => seq <= keep);
    let first: number | bigint | null = null;
    let last: number | bigint | null = null;
    let seq = 0;
    for (const body of [...kept.map((row) => row.body), ...bodies]) {
      seq += 1;
      last = this.#insert().run(key, seq, last, body).lastInsertRowid;
      first ??= last;
    }
    for (const id of drops) this.#drop().run(key, id);
    this.#set().run({ key, head: seq, first, last, status, planner, now });
  }

  #rowsOf(key: number): readonly Row[] {
    return this.#rows().all(key) as unknown as readonly Row[];
  }

  #run(run: string): RunRow {
    const row = this.#find().get(run) as RunRow | undefined;
    if (row === undefined) throw runNotFound(run);
    return row;
  }
}
