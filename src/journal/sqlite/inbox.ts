/** The statements on what was said to runs. A message that was taken keeps its id and loses its body. */
import type { DatabaseSync } from 'node:sqlite';
import type { MessageText } from '../encoded.ts';
import type { Received } from '../port.ts';
import { decodeMessage } from '../stored-runs.ts';
import { type PreparedStatement, prepared } from './statements.ts';

interface MessageRow {
  readonly id: string;
  readonly body: string;
  readonly stored_at: number;
}

export class SqliteInbox {
  readonly #insert: PreparedStatement;
  readonly #find: PreparedStatement;
  readonly #countControls: PreparedStatement;
  readonly #take: PreparedStatement;
  readonly #waiting: PreparedStatement;

  constructor(db: DatabaseSync) {
    const sql = prepared(db);
    this.#insert = sql('INSERT INTO controls (run, id, number, stored_at, capped, body) VALUES (?, ?, ?, ?, ?, ?)');
    this.#find = sql('SELECT number FROM controls WHERE run = ? AND id = ?');
    // Without the hint SQLite looks through all that the run has ever been told.
    this.#countControls = sql(`
      SELECT count(*) AS waiting FROM controls INDEXED BY controls_waiting
      WHERE run = ? AND body IS NOT NULL AND capped`);
    this.#take = sql('UPDATE controls SET body = NULL WHERE run = ? AND id = ?');
    this.#waiting = sql('SELECT id, body, stored_at FROM controls WHERE run = ? AND body IS NOT NULL ORDER BY number');
  }

  /** Whether the run has ever had the message. */
  has(key: number, id: string): boolean {
    return this.#find().get(key, id) !== undefined;
  }

  waitingControls(key: number): number {
    return Number(this.#countControls().get(key)?.['waiting']);
  }

  /** `number` orders the messages of a run. */
  put(key: number, number: number, { id, isCapped, body }: MessageText, now: number): void {
    this.#insert().run(key, id, number, now, isCapped ? 1 : 0, body);
  }

  take(key: number, id: string): void {
    this.#take().run(key, id);
  }

  read(key: number): Received[] {
    return this.texts(key).map((row) => ({ message: decodeMessage(row), storedAt: row.stored_at }));
  }

  /** What waits, as it is stored. */
  texts(key: number): readonly MessageRow[] {
    return this.#waiting().all<MessageRow>(key);
  }
}
