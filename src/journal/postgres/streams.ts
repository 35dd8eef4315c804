/** Streams of runs: a row for each, which counts its rows, and these. */
import type { StreamRow } from '#core';
import type { NewStreamRow, StreamAppend, StreamRecord, StreamStore } from '../port-streams.ts';
import { assertFence, assertStreamRow, runNotFound } from '../rules.ts';
import { type StreamRowText, streamRowOf } from '../stored-rows.ts';
import { type Database, NOW_1, type Sql, type SqlValue } from './database.ts';

interface FoundRow extends Omit<StreamRowText, 'index'> {
  readonly closed: boolean | null;
  readonly index: number | null;
}

interface HeadRow {
  readonly name: string | null;
  readonly rows: number;
  readonly closed: boolean;
}

/**
 * One statement, which is a commit of its own. Whoever claims the run comes before it, and then nothing is written, or waits for it. Two
 * that write to one stream come one after the other at its row: each gets the numbers behind those of the other.
 */
const APPEND = `
  WITH one AS (SELECT key, fence FROM {runs} WHERE id = $2 FOR SHARE),
  moment AS MATERIALIZED (SELECT ${NOW_1} AS now),
  heads AS (
    INSERT INTO {streams} AS kept (run, name, rows, closed)
    SELECT one.key, given.name, given.rows, given.closed
    FROM one, unnest($4::text[], $5::bigint[], $6::boolean[]) AS given (name, rows, closed)
    WHERE one.fence = $3::bigint ORDER BY given.name COLLATE "C"
    ON CONFLICT (run, name) DO UPDATE SET rows = kept.rows + excluded.rows, closed = excluded.closed
    RETURNING key, name, rows
  ),
  added AS (
    INSERT INTO {stream_rows} (stream, number, at, step, call, attempt, value)
    SELECT heads.key, heads.rows - given.behind, moment.now, $7, $8, $9, given.value
    FROM moment, heads JOIN unnest($10::text[], $11::bigint[], $12::text[]) AS given (name, behind, value)
    ON given.name = heads.name
  )
  SELECT fence FROM one`;
/** A run without the stream gives a row of nothing, and so does a stream without such rows. */
const READ = `
  SELECT head.closed, part.number AS "index", part.at, part.step, part.call, part.attempt, part.value
  FROM {runs} AS run LEFT JOIN {streams} AS head ON head.run = run.key AND head.name = $2
  LEFT JOIN LATERAL (
    SELECT * FROM {stream_rows} WHERE stream = head.key AND number >= $3::bigint ORDER BY number LIMIT $4::bigint
  ) AS part ON TRUE
  WHERE run.id = $1 ORDER BY part.number`;
const LIST = `
  SELECT head.name, head.rows, head.closed FROM {runs} AS run LEFT JOIN {streams} AS head ON head.run = run.key
  WHERE run.id = $1 ORDER BY head.name`;
const DROP = `
  WITH gone AS (DELETE FROM {streams} WHERE run = ANY($1::bigint[]) RETURNING key)
  DELETE FROM {stream_rows} USING gone WHERE stream = gone.key`;

export class PostgresStreams implements StreamStore {
  readonly #database: Database;
  readonly #wake: (run: string) => void;

  constructor(database: Database, wake: (run: string) => void) {
    this.#database = database;
    this.#wake = wake;
  }

  async append({ run, fence, rows, step, call, attempt }: StreamAppend): Promise<void> {
    for (const row of rows) assertStreamRow(row);
    const { given } = this.#database;
    const values = [given, run, fence, ...headsOf(rows), step, call, attempt, ...valuesOf(rows)] as const;
    const found = await this.#database.read((sql) => sql.row<{ readonly fence: number }>(APPEND, ...values));
    if (found === undefined) throw runNotFound(run);
    assertFence({ run, fence }, found.fence);
    this.#wake(run);
  }

  async read(
    run: string,
    name: string,
    from: number,
    limit: number,
  ): Promise<{ rows: readonly StreamRow[]; closed: boolean }> {
    const first = Math.min(Math.max(from, 1), Number.MAX_SAFE_INTEGER);
    const found = await this.#database.read((sql) => sql.rows<FoundRow>(READ, run, name, first, limit));
    if (found[0] === undefined) throw runNotFound(run);
    const rows = found.flatMap(({ closed: _, index, ...row }) =>
      index === null ? [] : [streamRowOf(run, { index, ...row })],
    );
    return { rows, closed: found[0].closed ?? false };
  }

  async list(run: string): Promise<readonly StreamRecord[]> {
    const heads = await this.#database.read((sql) => sql.rows<HeadRow>(LIST, run));
    if (heads.length === 0) throw runNotFound(run);
    return heads.flatMap(({ name, rows, closed }) => (name === null ? [] : [{ name, rows, closed }]));
  }
}

/** In the transaction that erases the content of these runs, or removes them. */
export async function dropStreams(sql: Sql, keys: readonly number[]): Promise<void> {
  await sql.run(DROP, keys);
}

/** For each stream its name, by how many rows it grows, and whether it is closed then. */
function headsOf(rows: readonly NewStreamRow[]): readonly [names: SqlValue, counts: SqlValue, closed: SqlValue] {
  const heads = [...Map.groupBy(rows, ({ name }) => name)];
  return [
    heads.map(([name]) => name),
    heads.map(([, own]) => own.filter((row) => 'value' in row).length),
    heads.map(([, own]) => own.at(-1) !== undefined && 'closes' in (own.at(-1) as NewStreamRow)),
  ];
}

/** For each row its stream, how many rows come behind it there, and its value. */
function valuesOf(rows: readonly NewStreamRow[]): readonly [names: SqlValue, behind: SqlValue, values: SqlValue] {
  const written = rows.filter((row) => 'value' in row);
  const left = new Map<string, number>();
  const behind = written.toReversed().map(({ name }) => {
    const count = left.get(name) ?? 0;
    left.set(name, count + 1);
    return count;
  });
  return [written.map(({ name }) => name), behind.reverse(), written.map(({ value }) => JSON.stringify(value))];
}
