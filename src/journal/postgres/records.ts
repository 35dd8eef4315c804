/** The statements that look runs up and list them, and those that set right what cannot be read. */
import type { Examined, RepairRequest, RunQuery, RunRecord } from '../port.ts';
import { assertAsExamined, hasEnded, runNotFound } from '../rules.ts';
import { SCHEDULE_LABEL } from '../start-rules.ts';
import { type RecordRow, storedRecord } from '../stored-runs.ts';
import { eventsIn } from '../waiting.ts';
import { type Database, type Lock, NOW_1, type Sql, type SqlValue, sessionLock } from './database.ts';
import { dropPassing } from './passing.ts';
import { findRun, holdRun, type RunRow } from './run-rows.ts';
import { forgetStarts, reindex } from './starts.ts';
import { dropStreams } from './streams.ts';
import { includesText, longestPart, mayHave } from './text-search.ts';
import type { PostgresWaits } from './waits.ts';

/** What is listed, and after what the next part of a list begins. */
interface ListedRow extends RecordRow {
  readonly key: number;
  readonly now: number;
}

/** @param runs the table of runs, perhaps behind an index that leads to them. */
const recordsIn = (runs: string): string => `
  SELECT runs.key, runs.id, runs.tenant, runs."user", runs.agent, runs.session, runs.status, runs.priority, runs.created_at,
    runs.updated_at, runs.head, runs.wake_at, runs.owner, runs.lease_until, runs.parent, runs.root, runs.problem, runs.turn, runs.waits,
    first.body AS first_body, ${NOW_1} AS now
  FROM ${runs} LEFT JOIN {entries} AS first ON first.run = runs.key AND first.seq = 1
  WHERE `;
const RECORDS = recordsIn('{runs} AS runs');
const FIND_RECORD = `${RECORDS} runs.id = $2`;
/** The runs of a label are in the order of their keys. */
const OF_LABEL = recordsIn('{run_labels} AS found JOIN {runs} AS runs ON runs.key = found.run');
const KEY_OF = 'SELECT key FROM {runs} WHERE id = $1';

/** Conditions with their values. What a condition has to say `$` for is the next value. */
class Conditions {
  readonly #conditions: string[] = [];
  readonly values: SqlValue[];

  constructor(...values: SqlValue[]) {
    this.values = values;
  }

  add(condition: string, ...values: SqlValue[]): void {
    const [first = '', ...others] = condition.split('$');
    const numbered = others.map((part, index) => `$${this.values.length + index + 1}${part}`);
    this.#conditions.push(first + numbered.join(''));
    this.values.push(...values);
  }

  get text(): string {
    return ['TRUE', ...this.#conditions].join(' AND ');
  }
}

export class PostgresRecords {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async get(run: string): Promise<RunRecord | undefined> {
    const { given } = this.#database;
    const row = await this.#database.read((sql) => sql.row<ListedRow>(FIND_RECORD, given, run));
    return row && storedRecord(row, row.now);
  }

  async list(query: RunQuery, limit: number): Promise<RunRecord[]> {
    const { after, beforeTurn } = query;
    const place = beforeTurn === undefined ? 'key' : 'turn';
    return this.#database.read(async (sql) => {
      // A key is given once, in the order of creation.
      const key = after === undefined ? undefined : await keyOf(sql, after);
      const found: RunRecord[] = [];
      // With a text, the database gives also some that do not have it.
      for (let behind: number | undefined; ; ) {
        const rows = await this.#part(sql, query, { key, behind, place, limit });
        for (const row of rows) if (isAbout(row, query.text)) found.push(storedRecord(row, row.now));
        behind = rows.at(-1)?.[place] ?? undefined;
        if (behind === undefined || rows.length < limit || found.length >= limit) return found.slice(0, limit);
      }
    });
  }

  #part(
    sql: Sql,
    query: RunQuery,
    {
      key,
      behind,
      place,
      limit,
    }: { key?: number | undefined; behind?: number | undefined; place: 'key' | 'turn'; limit: number },
  ): Promise<ListedRow[]> {
    const where = new Conditions(this.#database.given);
    const { labels = {}, schedule } = query;
    const named = Object.entries(labels);
    const [leading, ...others] = schedule === undefined ? named : [[SCHEDULE_LABEL, schedule] as const, ...named];
    if (leading !== undefined) where.add('found.name = $ AND found.value = $', ...leading);
    for (const label of others) {
      where.add('EXISTS (SELECT FROM {run_labels} WHERE name = $ AND value = $ AND run = runs.key)', ...label);
    }
    if (query.agent !== undefined) where.add('runs.agent = $', query.agent);
    if (query.tenant !== undefined) where.add('runs.tenant = $', query.tenant);
    if (query.user !== undefined) where.add('runs."user" = $', query.user);
    if (query.session !== undefined) where.add('runs.session = $', query.session);
    if (query.parent === null) where.add('runs.parent IS NULL');
    else if (query.parent !== undefined) where.add('runs.parent = $', query.parent);
    if (query.since !== undefined) where.add('runs.created_at >= $::float8', query.since);
    if (query.status !== undefined) where.add('runs.status = ANY($::text[])', query.status);
    if (key !== undefined) where.add('runs.key < $::bigint', key);
    if (query.beforeTurn !== undefined) where.add('runs.turn < $::float8', query.beforeTurn);
    if (behind !== undefined) where.add(`runs.${place} < $::bigint`, behind);
    if (query.text !== undefined) where.add(mayHave('first.body', '$'), longestPart(query.text.toLowerCase()));
    const from = leading === undefined ? RECORDS : OF_LABEL;
    const text = `${from} ${where.text} ORDER BY runs.${place} DESC LIMIT $${where.values.length + 1}::bigint`;
    return sql.rows<ListedRow>(text, ...where.values, limit);
  }
}

async function keyOf(sql: Sql, run: string): Promise<number> {
  const row = await sql.row<Pick<RunRow, 'key'>>(KEY_OF, run);
  if (row === undefined) throw runNotFound(run);
  return row.key;
}

/** The text of a query stands in the first entry alone, which may be damaged. */
function isAbout({ first_body: body }: RecordRow, text: string | undefined): boolean {
  if (text === undefined) return true;
  try {
    return includesText((JSON.parse(body ?? '') as { query?: unknown } | null)?.query, text.toLowerCase());
  } catch {
    return false;
  }
}

// The statements with which a run is looked at that cannot be read, and set right.

/** In one statement, so that all is of the same moment. Also entries beyond the count of them, which may be what is broken. */
const EXAMINE = `
  WITH one AS (SELECT key, head, signals FROM {runs} WHERE id = $1)
  SELECT 0 AS part, head AS number, signals, '' AS id, '' AS text FROM one
  UNION ALL SELECT 1, seq, 0, '', body FROM {entries} WHERE run = (SELECT key FROM one)
  UNION ALL SELECT 2, number, 0, id, body FROM {controls} WHERE run = (SELECT key FROM one) AND body IS NOT NULL
  ORDER BY part, number`;
const LAST = 'SELECT max(seq) AS last FROM {entries} WHERE run = $1::bigint';
const INBOX = 'SELECT id, body AS text FROM {controls} WHERE run = $1::bigint AND body IS NOT NULL ORDER BY number';
const TAKE_OUT = 'DELETE FROM {entries} WHERE run = $1::bigint AND seq > $2::bigint';
const SET = `
  WITH written AS (
    INSERT INTO {entries} (run, seq, at, body)
    SELECT $1::bigint, $2::bigint + entry.place, $3::bigint, entry.body FROM unnest($4::text[]) WITH ORDINALITY AS entry (body, place)
  ),
  dropped AS (UPDATE {controls} SET body = NULL WHERE run = $1::bigint AND id = ANY($5::text[])),
  forgotten AS (DELETE FROM {snapshots} WHERE run = $1::bigint)
  UPDATE {runs} SET head = $2::bigint + cardinality($4::text[]), status = $6, agent = $7, fence = fence + 1, owner = NULL, lease_until = NULL,
    wake_at = 0, problem = NULL, updated_at = $3::bigint
  WHERE key = $1::bigint`;

interface ExaminedRow {
  readonly part: number;
  readonly number: number;
  readonly signals: number;
  readonly id: string;
  readonly text: string;
}

export class PostgresRepairs {
  readonly #waits: PostgresWaits;

  constructor(waits: PostgresWaits) {
    this.#waits = waits;
  }

  /** @throws PilotageError `run_not_found`. */
  async examine(sql: Sql, run: string): Promise<Examined> {
    const [one, ...parts] = await sql.rows<ExaminedRow>(EXAMINE, run);
    if (one === undefined) throw runNotFound(run);
    const entries: Examined['entries'][number][] = [];
    const inbox: Examined['inbox'][number][] = [];
    for (const { part, number, id, text } of parts) {
      if (part === 1) entries.push({ seq: number, text });
      else inbox.push({ id, text });
    }
    return { head: one.number, signals: one.signals, entries, inbox };
  }

  /**
   * What the transaction of the repair has to take hold of. What is in the inbox then is what is in it now, or the run has changed.
   * @throws PilotageError `run_not_found`.
   */
  async locksFor(sql: Sql, { run, drops, waits }: RepairRequest): Promise<readonly Lock[]> {
    const row = await findRun(sql, run);
    if (row === undefined) throw runNotFound(run);
    const { key, tenant, user, session } = row;
    const dropped = drops.length === 0 ? [] : await this.#dropped(sql, key, drops);
    const keys = [...waits.map((row) => row.key), ...eventsIn(dropped).map((event) => event.key)];
    const locks = keys.flatMap((of): Lock[] => (of === undefined ? [] : [['signal', tenant, of]]));
    return [sessionLock({ tenant, user, session }), ...locks];
  }

  /** @returns the runs that have got a signal. */
  async repair(sql: Sql, request: RepairRequest, bodies: readonly string[], now: number): Promise<readonly string[]> {
    const { run, keep, status, agent, drops, waits } = request;
    const { key, head, signals, owner, lease_until: until, status: before } = await holdRun(sql, run);
    const isLeased = !hasEnded(before) && owner !== null && until !== null && until > now;
    const last = (await sql.row<{ readonly last: number | null }>(LAST, key))?.last ?? 0;
    assertAsExamined(request, { head, last, signals, isLeased });
    const dropped = await this.#dropped(sql, key, drops);
    await sql.run(TAKE_OUT, key, keep);
    const ids = dropped.map(({ id }) => id);
    await sql.run(SET, key, keep, now, bodies, ids, status, agent);
    const [first] = request.entries;
    if (first?.kind === 'started') await reindex(sql, key, first);
    if (request.erases === true) {
      await forgetStarts(sql, [run]);
      await dropStreams(sql, [key]);
      await dropPassing(sql, [key]);
    }
    const told = await this.#waits.replace(sql, key, waits, now);
    return [...told, ...(await this.#waits.giveBack(sql, key, eventsIn(dropped), now))];
  }

  async #dropped(sql: Sql, key: number, drops: readonly string[]): Promise<Examined['inbox']> {
    const inbox = await sql.rows<Examined['inbox'][number]>(INBOX, key);
    return inbox.filter(({ id }) => drops.includes(id));
  }
}
