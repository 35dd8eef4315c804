/** The statements that look runs up and list them, and those that set right what cannot be read. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { Examined, RepairRequest, RunQuery, RunRecord, RunStatus } from '../port.ts';
import { assertAsExamined, hasEnded, runNotFound } from '../rules.ts';
import { SCHEDULE_LABEL } from '../start-rules.ts';
import { type RecordRow, storedRecord } from '../stored-runs.ts';
import { eventsIn } from '../waiting.ts';
import { DROP_PASSING } from './passing.ts';
import { HEAD, idAt, LAST_ENTRY } from './schema.ts';
import type { SqliteStarts } from './starts.ts';
import { atMost, hasText, type PreparedStatement, prepared, preparedTexts } from './statements.ts';
import { DROP_STREAM_ROWS, DROP_STREAMS } from './streams.ts';
import type { SqliteWaits } from './waits.ts';

/** @param runs the table of runs, perhaps behind an index that leads to them. */
const recordsIn = (runs: string): string => `
  SELECT runs.*, ${HEAD} AS head, max(runs.updated_at, coalesce(last.at, 0)) AS updated_at, first.body AS first_body FROM ${runs}
    LEFT JOIN entries AS first ON first.id = (runs.key << 32) + 1
    LEFT JOIN entries AS last ON last.id = ${LAST_ENTRY}
  WHERE `;
const FIND_RECORD = recordsIn('runs');
/** The runs of a label are in the order of their keys. */
const OF_LABEL = recordsIn('run_labels AS found CROSS JOIN runs ON runs.key = found.run');
const HAS_LABEL = 'EXISTS (SELECT 1 FROM run_labels WHERE name = ? AND value = ? AND run = runs.key)';
/** The text of a query stands in the first entry alone, which may be damaged. */
const HAS_TEXT = `has_text(CASE WHEN json_valid(first.body) THEN first.body ->> '$.query' END, ?)`;

/** Runs whose keys are over `from`, up to `to`. */
export interface KeyRange {
  readonly from: number;
  readonly to: number;
}

/** As many runs are looked through for a text at once: about ten milliseconds. */
const PART = 4_096;

export function partBefore({ from }: KeyRange): KeyRange | undefined {
  return from <= 0 ? undefined : { from: Math.max(0, from - PART), to: from };
}

export class SqliteRecords {
  readonly #list: ReturnType<typeof preparedTexts>;
  readonly #find: PreparedStatement;
  readonly #keyOf: PreparedStatement;
  readonly #lastKey: PreparedStatement;

  constructor(db: DatabaseSync) {
    const sql = prepared(db);
    hasText(db);
    this.#list = preparedTexts(db);
    this.#lastKey = sql('SELECT max(key) AS key FROM runs');
    this.#find = sql(`${FIND_RECORD} runs.id = ?`);
    this.#keyOf = sql('SELECT key FROM runs WHERE id = ?');
  }

  get(run: string, now: number): RunRecord | undefined {
    const row = this.#find().get(run) as RecordRow | undefined;
    return row && storedRecord(row, now);
  }

  /** The part with the newest runs that are asked for; `undefined`: there are none. */
  newestPart({ after }: RunQuery): KeyRange | undefined {
    const to = after === undefined ? Number(this.#lastKey().get()?.['key'] ?? 0) : this.#key(after) - 1;
    return partBefore({ from: to, to });
  }

  list(query: RunQuery, limit: number, now: number, part?: KeyRange): RunRecord[] {
    const where: string[] = [];
    const values: SQLInputValue[] = [];
    const filter = (condition: string, ...bound: SQLInputValue[]): void => {
      where.push(condition);
      values.push(...bound);
    };
    const { labels = {}, schedule } = query;
    const named = Object.entries(labels);
    const [leading, ...others] = schedule === undefined ? named : [[SCHEDULE_LABEL, schedule] as const, ...named];
    if (leading !== undefined) filter('found.name = ? AND found.value = ?', ...leading);
    for (const label of others) filter(HAS_LABEL, ...label);
    if (part !== undefined) filter('key > ? AND key <= ?', part.from, part.to);
    if (query.agent !== undefined) filter('agent = ?', query.agent);
    if (query.tenant !== undefined) filter('tenant = ?', query.tenant);
    if (query.user !== undefined) filter('user = ?', query.user);
    if (query.session !== undefined) filter('session = ?', query.session);
    if (query.parent === null) filter('parent IS NULL');
    else if (query.parent !== undefined) filter('parent = ?', query.parent);
    if (query.since !== undefined) filter('created_at >= ?', query.since);
    if (query.status !== undefined) {
      filter(`status IN (${query.status.map(() => '?').join(', ')})`, ...query.status);
    }
    // As the index has it that leads to the runs: in another order SQLite would sort them all, for whichever page.
    const byKey = leading === undefined ? 'key' : 'found.run';
    // A key is given once, in the order of creation.
    if (query.after !== undefined && part === undefined) filter(`${byKey} < ?`, this.#key(query.after));
    if (query.beforeTurn !== undefined) filter('turn < ?', query.beforeTurn);
    // Last, for it is what takes long.
    if (query.text !== undefined) filter(HAS_TEXT, query.text.toLowerCase());
    const order = query.beforeTurn === undefined ? byKey : 'turn';
    const sql = `${leading === undefined ? FIND_RECORD : OF_LABEL} ${['TRUE', ...where].join(' AND ')} ORDER BY ${order} DESC ${atMost('?')}`;
    const rows = this.#list(sql).all<RecordRow>(...values, limit);
    return rows.map((row) => storedRecord(row, now));
  }

  #key(run: string): number {
    const row = this.#keyOf().get(run);
    if (row === undefined) throw runNotFound(run);
    return Number(row['key']);
  }
}

// The statements with which a run is looked at that cannot be read, and set right.

interface HeldRow {
  readonly key: number;
  readonly head: number;
  readonly signals: number;
  readonly status: RunStatus;
  readonly owner: string | null;
  readonly lease_until: number | null;
}

export class SqliteRepairs {
  readonly #waits: SqliteWaits;
  readonly #find: PreparedStatement;
  readonly #rows: PreparedStatement;
  readonly #inbox: PreparedStatement;
  readonly #takeOut: PreparedStatement;
  readonly #insert: PreparedStatement;
  readonly #drop: PreparedStatement;
  readonly #forget: PreparedStatement;
  readonly #dropStreamRows: PreparedStatement;
  readonly #dropStreams: PreparedStatement;
  readonly #dropPassing: PreparedStatement;
  readonly #set: PreparedStatement;
  readonly #starts: SqliteStarts;

  constructor(db: DatabaseSync, waits: SqliteWaits, starts: SqliteStarts) {
    const sql = prepared(db);
    this.#waits = waits;
    this.#starts = starts;
    this.#find = sql(`
      SELECT key, ${HEAD} AS head, signals, status, owner, lease_until FROM runs WHERE id = ?`);
    // Also those beyond the count of them, which may be what is broken, and those that a damaged page gives no text.
    this.#rows = sql(`
      SELECT seq, coalesce(CAST(body AS TEXT), '') AS text FROM entries WHERE id BETWEEN (:key << 32) + 1 AND (:key << 32) + 4294967295 ORDER BY id`);
    this.#inbox = sql(
      'SELECT id, CAST(body AS TEXT) AS text FROM controls WHERE run = ? AND body IS NOT NULL ORDER BY number',
    );
    this.#takeOut = sql(`
      DELETE FROM entries WHERE id BETWEEN ${idAt(':key', ':keep')} + 1 AND (:key << 32) + 4294967295`);
    this.#insert = sql(`INSERT INTO entries (id, at, body) VALUES (${idAt(':key', ':seq')}, :now, :body)`);
    this.#drop = sql('UPDATE controls SET body = NULL WHERE run = ? AND id = ?');
    this.#forget = sql('DELETE FROM snapshots WHERE run = ?');
    this.#dropStreamRows = sql(DROP_STREAM_ROWS);
    this.#dropStreams = sql(DROP_STREAMS);
    this.#dropPassing = sql(DROP_PASSING);
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

  /** @returns the runs that have got a signal. */
  repair(request: RepairRequest, bodies: readonly string[], now: number): readonly string[] {
    const { run, keep, status, agent, drops, waits } = request;
    const { key, head, signals, owner, lease_until: until, status: before } = this.#run(run);
    const isLeased = !hasEnded(before) && owner !== null && until !== null && until > now;
    assertAsExamined(request, { head, last: this.#entriesOf(key).at(-1)?.seq ?? 0, signals, isLeased });
    this.#takeOut().run({ key, keep });
    for (const [index, body] of bodies.entries()) this.#insert().run({ key, seq: keep + index + 1, now, body });
    const dropped = this.#inbox()
      .all<Examined['inbox'][number]>(key)
      .filter(({ id }) => drops.includes(id));
    for (const id of drops) this.#drop().run(key, id);
    this.#forget().run(key);
    const [first] = request.entries;
    if (first?.kind === 'started') this.#starts.reindex(key, first);
    if (request.erases === true) this.#starts.forget(run);
    if (request.erases === true) {
      this.#dropStreamRows().run(key);
      this.#dropStreams().run(key);
      this.#dropPassing().run(key);
    }
    this.#set().run({ key, head: keep + bodies.length, status, agent, now });
    const told = this.#waits.replace(key, waits, now);
    return [...told, ...this.#waits.giveBack(key, eventsIn(dropped), now)];
  }

  #entriesOf(key: number): Examined['entries'] {
    return this.#rows().all<Examined['entries'][number]>({ key });
  }

  #run(run: string): HeldRow {
    const row = this.#find().get(run) as HeldRow | undefined;
    if (row === undefined) throw runNotFound(run);
    return row;
  }
}
