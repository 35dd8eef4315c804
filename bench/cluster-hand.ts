/** What somebody would write by hand: runs with a fence and a head, entries, and the statements of a lease loop. Nothing else is in these tables. */
import type pg from 'pg';

export const HAND_TABLES = `
  CREATE SCHEMA hand;
  CREATE TABLE hand.runs (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    status text NOT NULL DEFAULT 'open',
    owner text,
    lease_until bigint,
    fence bigint NOT NULL DEFAULT 0,
    head bigint NOT NULL DEFAULT 0,
    updated_at bigint
  );
  CREATE INDEX hand_open ON hand.runs (key) WHERE status = 'open';
  CREATE TABLE hand.entries (run bigint, seq bigint, at bigint NOT NULL, body text NOT NULL, PRIMARY KEY (run, seq))`;
const NOW = 'floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint';
const APPEND = `
  WITH moved AS (
    UPDATE hand.runs SET head = head + $4, updated_at = ${NOW}
    WHERE id = $1 AND fence = $2 AND head = $3 RETURNING key
  )
  INSERT INTO hand.entries (run, seq, at, body)
  SELECT key, $3 + entry.place, ${NOW}, entry.body
  FROM moved CROSS JOIN unnest($5::text[]) WITH ORDINALITY AS entry (body, place)`;
const CLAIM = `
  UPDATE hand.runs SET owner = $1, lease_until = ${NOW} + 5000, fence = fence + 1
  WHERE key = (
    SELECT key FROM hand.runs WHERE status = 'open' AND (owner IS NULL OR lease_until <= ${NOW})
    ORDER BY key LIMIT 1 FOR UPDATE SKIP LOCKED
  )
  RETURNING id, fence, head`;
const RELEASE = `
  UPDATE hand.runs SET owner = NULL, lease_until = NULL, status = 'ended' WHERE id = $1 AND fence = $2`;

export interface HandRun {
  readonly id: string;
  readonly fence: number;
  readonly head: number;
}

/** The texts of the entries that go together. */
export type Group = readonly string[];

export class Hand {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async claim(owner: string): Promise<HandRun | undefined> {
    const { rows } = await this.#pool.query({ name: 'claim', text: CLAIM, values: [owner] });
    const [row] = rows as { id: string; fence: string; head: string }[];
    return row && { id: row.id, fence: Number(row.fence), head: Number(row.head) };
  }

  /** @returns the head after it. */
  async append({ id, fence }: HandRun, head: number, bodies: Group): Promise<number> {
    const values = [id, fence, head, bodies.length, bodies];
    const { rowCount } = await this.#pool.query({ name: 'append', text: APPEND, values });
    if (rowCount !== bodies.length) throw new Error(`The append of ${id} at ${head} was refused.`);
    return head + bodies.length;
  }

  async release({ id, fence }: HandRun): Promise<void> {
    await this.#pool.query({ name: 'release', text: RELEASE, values: [id, fence] });
  }
}
