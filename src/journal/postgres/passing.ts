/** What passes in runs: a row for each that is read, and for each piece of what its readers are told. */
import { type NewPassing, type PassingRow, type PassingStore, READ_LATELY_MS, type ReadRun } from '../port-passing.ts';
import { type PassingText, passingRowsOf } from '../stored-rows.ts';
import { type Database, NOW_1, type Sql } from './database.ts';
import type { PostgresNews } from './news.ts';

/** Nothing waits for the disk: what is lost with the server was on its way to readers, who read it again in what is recorded. */
const AT_EASE = "set_config('synchronous_commit', 'off', true)";
/** Rows are locked in the order of their keys, so that two processes do not wait for each other. */
const WANT = `
  WITH moment AS MATERIALIZED (SELECT ${NOW_1} AS now),
  asked AS MATERIALIZED (SELECT key FROM {runs} WHERE id = ANY($2::text[]) ORDER BY key),
  over AS (
    DELETE FROM {readers} AS old USING moment
    WHERE old.until < moment.now - ${READ_LATELY_MS} AND NOT EXISTS (SELECT FROM asked WHERE asked.key = old.run)
    RETURNING old.run
  ),
  gone AS (DELETE FROM {passing} AS rows USING over WHERE rows.run = over.run)
  INSERT INTO {readers} AS kept (run, until) SELECT asked.key, moment.now + $3::bigint FROM asked, moment
  ON CONFLICT (run) DO UPDATE SET until = greatest(kept.until, excluded.until) RETURNING ${AT_EASE}`;
const WANTED = `
  SELECT runs.id AS run, readers.until - ${NOW_1} AS "leftMs" FROM {readers} AS readers JOIN {runs} AS runs ON runs.key = readers.run`;
/** The row of the run is only read: its owner, who writes this, has it to change. */
const PUT = `
  WITH given AS MATERIALIZED (
    SELECT runs.key, rows.fence, rows.clears, rows.value, rows.place
    FROM unnest($1::text[], $2::bigint[], $3::boolean[], $4::text[]) WITH ORDINALITY AS rows (run, fence, clears, value, place)
    JOIN {runs} AS runs ON runs.id = rows.run AND runs.fence = rows.fence
  ),
  cleared AS (DELETE FROM {passing} AS old USING given WHERE old.run = given.key AND given.clears)
  INSERT INTO {passing} (run, fence, value) SELECT key, fence, value FROM given WHERE value IS NOT NULL ORDER BY place
  RETURNING ${AT_EASE}`;
const READ = `
  SELECT rows.number, rows.fence, rows.value FROM {runs} AS runs JOIN {passing} AS rows ON rows.run = runs.key
  WHERE runs.id = $1 AND rows.number > $2::bigint ORDER BY rows.number`;
const DROP = `
  WITH gone AS (DELETE FROM {readers} WHERE run = ANY($1::bigint[])) DELETE FROM {passing} WHERE run = ANY($1::bigint[])`;

export class PostgresPassing implements PassingStore {
  readonly #database: Database;
  readonly #news: PostgresNews;

  constructor(database: Database, news: PostgresNews) {
    this.#database = database;
    this.#news = news;
  }

  async want(runs: readonly string[], forMs: number): Promise<void> {
    const { given } = this.#database;
    await this.#database.read((sql) => sql.run(WANT, given, runs, forMs));
    this.#news.tellReaders();
  }

  async wanted(): Promise<readonly ReadRun[]> {
    return this.#database.read((sql) => sql.rows<ReadRun>(WANTED, this.#database.given));
  }

  watchWanted(wake: () => void): () => void {
    return this.#news.watchReaders(wake);
  }

  async put(rows: readonly NewPassing[]): Promise<void> {
    const columns = [
      rows.map(({ run }) => run),
      rows.map(({ fence }) => fence),
      rows.map(({ clears = false }) => clears),
      rows.map(({ value }) => (value === undefined ? null : JSON.stringify(value))),
    ];
    await this.#database.read((sql) => sql.run(PUT, ...columns));
    for (const { run } of rows) this.#news.tellPassing(run);
  }

  async read(run: string, after: number): Promise<readonly PassingRow[]> {
    return passingRowsOf(await this.#database.read((sql) => sql.rows<PassingText>(READ, run, after)));
  }

  watch(run: string, wake: () => void): () => void {
    return this.#news.watchPassing(run, wake);
  }
}

/** In the transaction that erases the content of these runs, or removes them. */
export async function dropPassing(sql: Sql, keys: readonly number[]): Promise<void> {
  await sql.run(DROP, keys);
}
