/** The statements that look runs up and list them, and those that set right what cannot be read. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { defined } from '#core';
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

/** As many runs are looked through at once for what no index has: about ten milliseconds for a text. */
const PART = 4_096;

type Label = readonly [name: string, value: string];
const OF_LEADING = 'name = ? AND value = ?';

/** Whether the filters may leave out most of what an index leads to, so that a page may have to look through many. */
export function isWalked({
  text,
  agent,
  status,
  since,
  beforeTurn,
  parent,
  labels,
  schedule,
  tenant,
}: RunQuery): boolean {
  if (text !== undefined) return true;
  if (beforeTurn !== undefined || typeof parent === 'string') return false;
  const isLabelled = schedule !== undefined || Object.keys(labels ?? {}).length > 0;
  return (agent ?? status ?? since ?? (isLabelled ? tenant : undefined)) !== undefined;
}

interface Walk {
  /** The table with the index: left to itself SQLite takes the range of keys, which leads to the runs of all. */
  readonly runs: string;
  readonly where: string;
  readonly values: readonly string[];
}

/** The runs that an index leads to: those of a session, of a user, of a tenant, or all. */
function walkOf({ tenant, user, session }: RunQuery): Walk {
  if (tenant === undefined) return { runs: 'runs', where: 'TRUE', values: [] };
  if (user === undefined) return { runs: 'runs INDEXED BY runs_tenant', where: 'tenant = ?', values: [tenant] };
  const where = 'tenant = ? AND user = ?';
  if (session === undefined) return { runs: 'runs INDEXED BY runs_user', where, values: [tenant, user] };
  return { runs: 'runs INDEXED BY runs_scope', where: `${where} AND session = ?`, values: [tenant, user, session] };
}

export class SqliteRecords {
  readonly #list: ReturnType<typeof preparedTexts>;
  readonly #find: PreparedStatement;
  readonly #keyOf: PreparedStatement;
  readonly #lastKey: PreparedStatement;
  readonly #labelled: PreparedStatement;

  constructor(db: DatabaseSync) {
    const sql = prepared(db);
    hasText(db);
    this.#list = preparedTexts(db);
    this.#lastKey = sql('SELECT max(key) AS key FROM runs');
    this.#labelled = sql(`SELECT count(*) AS runs FROM (SELECT 1 FROM run_labels WHERE ${OF_LEADING} LIMIT ${PART})`);
    this.#find = sql(`${FIND_RECORD} runs.id = ?`);
    this.#keyOf = sql('SELECT key FROM runs WHERE id = ?');
  }

  get(run: string, now: number): RunRecord | undefined {
    const row = this.#find().get(run) as RecordRow | undefined;
    return row && storedRecord(row, now);
  }

  /**
   * The next part of a list that is walked: as many of the runs to which an index leads.
   * @param before the part before; absent: the part with the newest runs. @returns `undefined`: there is none.
   */
  part(query: RunQuery, before?: KeyRange): KeyRange | undefined {
    const { after } = query;
    const newest = (): number =>
      after === undefined ? Number(this.#lastKey().get()?.['key'] ?? 0) : this.#key(after) - 1;
    const to = before?.from ?? newest();
    if (to <= 0) return undefined;
    const { leading } = this.#labelsOf(query);
    const ofLabel = (values: Label): Walk => ({ runs: 'run_labels', where: OF_LEADING, values });
    const { runs, where, values } = leading === undefined ? walkOf(query) : ofLabel(leading);
    const key = leading === undefined ? 'key' : 'run';
    const sql = `SELECT ${key} AS key FROM ${runs} WHERE ${where} AND ${key} <= ? ORDER BY ${key} DESC LIMIT 1 OFFSET ${PART}`;
    return { from: Number(this.#list(sql).get<{ key: number }>(...values, to)?.key ?? 0), to };
  }

  /** The labels that are asked for. Of several the one leads to the runs that the fewest have. */
  #labelsOf({ labels = {}, schedule }: RunQuery): { readonly leading?: Label; readonly others: readonly Label[] } {
    const named: Label[] = Object.entries(labels);
    const all: readonly Label[] = schedule === undefined ? named : [[SCHEDULE_LABEL, schedule], ...named];
    if (all.length < 2) return { ...defined({ leading: all[0] }), others: [] };
    const counted = all.map((label) => ({ label, runs: Number(this.#labelled().get(...label)?.['runs']) }));
    const [first, ...others] = counted.sort((one, other) => one.runs - other.runs);
    return { ...defined({ leading: first?.label }), others: others.map(({ label }) => label) };
  }

  list(query: RunQuery, limit: number, now: number, part?: KeyRange): RunRecord[] {
    const where: string[] = [];
    const values: SQLInputValue[] = [];
    const filter = (condition: string, ...bound: SQLInputValue[]): void => {
      where.push(condition);
      values.push(...bound);
    };
    const { leading, others } = this.#labelsOf(query);
    if (leading !== undefined) filter('found.name = ? AND found.value = ?', ...leading);
    for (const label of others) filter(HAS_LABEL, ...label);
    // As the index has it that leads to the runs: in another order SQLite would sort them all, for whichever page.
    const byKey = leading === undefined ? 'key' : 'found.run';
    if (part !== undefined) filter(`${byKey} > ? AND ${byKey} <= ?`, part.from, part.to);
    if (query.agent !== undefined) filter('agent = ?', query.agent);
    // A run has fewer tasks than a tenant has runs: the plus keeps SQLite from looking through these.
    const plus = typeof query.parent === 'string' ? '+' : '';
    if (query.tenant !== undefined) filter(`${plus}tenant = ?`, query.tenant);
    if (query.user !== undefined) filter(`${plus}user = ?`, query.user);
    if (query.session !== undefined) filter(`${plus}session = ?`, query.session);
    if (query.parent === null) filter('parent IS NULL');
    else if (query.parent !== undefined) filter('parent = ?', query.parent);
    if (query.since !== undefined) filter('created_at >= ?', query.since);
    if (query.status !== undefined) {
      filter(`status IN (${query.status.map(() => '?').join(', ')})`, ...query.status);
    }
    // A key is given once, in the order of creation.
    if (query.after !== undefined && part === undefined) filter(`${byKey} < ?`, this.#key(query.after));
    if (query.beforeTurn !== undefined) filter('turn < ?', query.beforeTurn);
    // Last, for it is what takes long.
    if (query.text !== undefined) filter(HAS_TEXT, query.text.toLowerCase());
    const order = query.beforeTurn === undefined ? byKey : 'turn';
    const runs = part === undefined ? FIND_RECORD : recordsIn(walkOf(query).runs);
    const sql = `${leading === undefined ? runs : OF_LABEL} ${['TRUE', ...where].join(' AND ')} ORDER BY ${order} DESC ${atMost('?')}`;
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
