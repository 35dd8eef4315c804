/** Snapshots of runs: one row for the newest of each, and one for each block. */
import type { NewSnapshot, SnapshotStore, StoredSnapshot } from '../port.ts';
import { runNotFound } from '../rules.ts';
import type { Database } from './database.ts';
import { piecesOf } from './pieces.ts';

interface PartRow {
  readonly number: number;
  readonly head: number | null;
  readonly body: Uint8Array | null;
}

/** The snapshot first, then its blocks. A run without one gives a row of nothing. */
const NEWEST = `
  WITH one AS (SELECT key FROM {runs} WHERE id = $1),
  stored AS (SELECT run, head, body FROM {snapshots} WHERE run = (SELECT key FROM one) AND version = $2)
  SELECT -1 AS number, stored.head, stored.body FROM one LEFT JOIN stored ON TRUE
  UNION ALL
  SELECT blocks.number, stored.head, blocks.body FROM stored JOIN {snapshot_blocks} AS blocks ON blocks.run = stored.run
  ORDER BY number`;
// Two that keep a snapshot of the run come one after the other, and whoever claims it comes before or after.
const HOLD = 'SELECT key, fence FROM {runs} WHERE id = $1 FOR NO KEY UPDATE';
const KEEP = `
  WITH stored AS (SELECT head FROM {snapshots} WHERE run = $1 AND version = $2),
  fit AS (
    SELECT 1 WHERE CASE WHEN EXISTS (SELECT FROM stored)
      THEN $3::bigint > (SELECT head FROM stored)
        AND $5::bigint <= (SELECT count(*) FROM {snapshot_blocks} WHERE run = $1 AND number < $5::bigint)
      ELSE $5::bigint <= 0 END
  ),
  dropped AS (
    DELETE FROM {snapshot_blocks} WHERE run = $1 AND number >= $5::bigint + cardinality($7::bigint[]) AND EXISTS (SELECT FROM fit)
  ),
  added AS (
    INSERT INTO {snapshot_blocks} (run, number, body)
    SELECT $1, $5::bigint + place - 1, substring($6::bytea FROM first::int FOR size::int)
    FROM fit, unnest($7::bigint[], $8::bigint[]) WITH ORDINALITY AS piece (first, size, place)
    ON CONFLICT (run, number) DO UPDATE SET body = excluded.body
  )
  INSERT INTO {snapshots} (run, version, head, body) SELECT $1, $2, $3, $4::bytea FROM fit
  ON CONFLICT (run) DO UPDATE SET version = excluded.version, head = excluded.head, body = excluded.body`;
const FORGET = `
  WITH one AS (SELECT key FROM {runs} WHERE id = $1),
  gone AS (DELETE FROM {snapshots} WHERE run = (SELECT key FROM one))
  SELECT key FROM one`;

export class PostgresSnapshots implements SnapshotStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async newest(run: string, version: number): Promise<StoredSnapshot | undefined> {
    const [first, ...others] = await this.#database.read((sql) => sql.rows<PartRow>(NEWEST, run, version));
    if (first === undefined) throw runNotFound(run);
    const { head, body } = first;
    if (head === null || body === null) return undefined;
    return { head, body, blocks: others.flatMap((block) => block.body ?? []) };
  }

  async keep({ run, fence, version, head, body, from, blocks }: NewSnapshot): Promise<boolean> {
    const [bytes, starts, sizes] = piecesOf(blocks);
    return this.#database.write([], async (sql) => {
      const row = await sql.row<{ readonly key: number; readonly fence: number }>(HOLD, run);
      if (row === undefined) throw runNotFound(run);
      if (row.fence !== fence) return false;
      return (await sql.run(KEEP, row.key, version, head, body, from, bytes, starts, sizes)) > 0;
    });
  }

  async forget(run: string): Promise<void> {
    const found = await this.#database.read((sql) => sql.row(FORGET, run));
    if (found === undefined) throw runNotFound(run);
  }
}
