/** The statements with which a run is looked at that cannot be read, and set right. */
import type { DatabaseSync } from 'node:sqlite';
import type { Examined, RepairRequest, RunStatus } from '../port.ts';
import { assertAsExamined, hasEnded, runNotFound } from '../rules.ts';
import { HEAD } from './schema.ts';
import { type PreparedStatement, prepared } from './statements.ts';

interface RunRow {
  readonly key: number;
  readonly head: number;
  readonly signals: number;
  readonly status: RunStatus;
  readonly owner: string | null;
  readonly lease_until: number | null;
}

export class SqliteRepairs {
  readonly #find: PreparedStatement;
  readonly #rows: PreparedStatement;
  readonly #inbox: PreparedStatement;
  readonly #takeOut: PreparedStatement;
  readonly #insert: PreparedStatement;
  readonly #drop: PreparedStatement;
  readonly #set: PreparedStatement;

  constructor(db: DatabaseSync) {
    const sql = prepared(db);
    this.#find = sql(`
      SELECT key, ${HEAD} AS head, signals, status, owner, lease_until FROM runs WHERE id = ?`);
    // Also those beyond the count of them, which may be what is broken.
    this.#rows = sql(`
      SELECT seq, body AS text FROM entries WHERE id BETWEEN (:key << 32) + 1 AND (:key << 32) + 4294967295 ORDER BY id`);
    this.#inbox = sql('SELECT id, body AS text FROM controls WHERE run = ? AND body IS NOT NULL ORDER BY number');
    this.#takeOut = sql(`
      DELETE FROM entries WHERE id BETWEEN (:key << 32) + :keep + 1 AND (:key << 32) + 4294967295`);
    this.#insert = sql('INSERT INTO entries (id, at, body) VALUES ((:key << 32) + :seq, :now, :body)');
    this.#drop = sql('UPDATE controls SET body = NULL WHERE run = ? AND id = ?');
    this.#set = sql(`
      UPDATE runs SET head = :head, status = :status, agent = :agent, fence = fence + 1, owner = NULL, lease_until = NULL,
        wake_at = 0, problem = NULL, updated_at = :now
      WHERE key = :key`);
  }

  examine(run: string): Examined {
    const { key, head, signals } = this.#run(run);
    return {
      head,
      signals,
      entries: this.#entriesOf(key),
      inbox: this.#inbox().all<Examined['inbox'][number]>(key),
    };
  }

  repair(request: RepairRequest, bodies: readonly string[], now: number): void {
    const { run, keep, status, agent, drops } = request;
    const { key, head, signals, owner, lease_until: until, status: before } = this.#run(run);
    const isLeased = !hasEnded(before) && owner !== null && until !== null && until > now;
    assertAsExamined(request, { head, last: this.#entriesOf(key).at(-1)?.seq ?? 0, signals, isLeased });
    this.#takeOut().run({ key, keep });
    for (const [index, body] of bodies.entries()) this.#insert().run({ key, seq: keep + index + 1, now, body });
    for (const id of drops) this.#drop().run(key, id);
    this.#set().run({ key, head: keep + bodies.length, status, agent, now });
  }

  #entriesOf(key: number): Examined['entries'] {
    return this.#rows().all<Examined['entries'][number]>({ key });
  }

  #run(run: string): RunRow {
    const row = this.#find().get(run) as RunRow | undefined;
    if (row === undefined) throw runNotFound(run);
    return row;
  }
}
