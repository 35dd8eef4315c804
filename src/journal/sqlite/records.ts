/** The statements that look runs up and list them, as records. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { decodeEntry, type Entry, type ErrorData, PilotageError, type Started } from '#core';
import type { RunQuery, RunRecord, RunStatus } from '../port.ts';
import { beginningOf, hasEnded, runNotFound } from '../rules.ts';
import { HEAD, LAST_ENTRY } from './schema.ts';
import { type PreparedStatement, prepared } from './statements.ts';

interface RecordRow {
  readonly id: string;
  readonly tenant: string;
  readonly user: string;
  readonly agent: string;
  readonly session: string;
  readonly status: RunStatus;
  readonly priority: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly head: number;
  readonly wake_at: number | null;
  readonly owner: string | null;
  readonly lease_until: number | null;
  readonly first_body: string | null;
  readonly parent: string | null;
  readonly root: string | null;
  readonly problem: string | null;
}

export interface EntryRow {
  readonly seq: number;
  readonly body: string;
}

const FIND_RECORD = `
  SELECT runs.*, ${HEAD} AS head, max(runs.updated_at, coalesce(last.at, 0)) AS updated_at, first.body AS first_body FROM runs
    LEFT JOIN entries AS first ON first.id = (runs.key << 32) + 1
    LEFT JOIN entries AS last ON last.id = ${LAST_ENTRY}
  WHERE `;

export class SqliteRecords {
  readonly #db: DatabaseSync;
  readonly #find: PreparedStatement;
  readonly #keyOf: PreparedStatement;

  constructor(db: DatabaseSync) {
    const sql = prepared(db);
    this.#db = db;
    this.#find = sql(`${FIND_RECORD} runs.id = ?`);
    this.#keyOf = sql('SELECT key FROM runs WHERE id = ?');
  }

  get(run: string, now: number): RunRecord | undefined {
    const row = this.#find().get(run) as RecordRow | undefined;
    return row && recordOf(row, now);
  }

  list(query: RunQuery, limit: number, now: number): RunRecord[] {
    const where: string[] = [];
    const values: SQLInputValue[] = [];
    const filter = (condition: string, ...bound: SQLInputValue[]): void => {
      where.push(condition);
      values.push(...bound);
    };
    if (query.tenant !== undefined) filter('tenant = ?', query.tenant);
    if (query.user !== undefined) filter('user = ?', query.user);
    if (query.session !== undefined) filter('session = ?', query.session);
    if (query.parent !== undefined) filter('parent = ?', query.parent);
    if (query.since !== undefined) filter('created_at >= ?', query.since);
    if (query.status !== undefined) {
      filter(`status IN (${query.status.map(() => '?').join(', ')})`, ...query.status);
    }
    // A key is given once, in the order of creation.
    if (query.after !== undefined) filter('key < ?', this.#key(query.after));
    const sql = `${FIND_RECORD} ${['TRUE', ...where].join(' AND ')} ORDER BY key DESC LIMIT ?`;
    const rows = this.#db.prepare(sql).all(...values, limit) as unknown as RecordRow[];
    return rows.map((row) => recordOf(row, now));
  }

  #key(run: string): number {
    const row = this.#keyOf().get(run);
    if (row === undefined) throw runNotFound(run);
    return Number(row['key']);
  }
}

/** Says which run an entry belongs to that cannot be read. */
export function decodeRow(run: string, row: EntryRow): Entry {
  try {
    return decodeEntry(row.body, row.seq);
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    throw new PilotageError(error.code, `Run ${run}: ${error.message}`, {
      data: { ...error.data, run, seq: row.seq },
      cause: error,
    });
  }
}

function recordOf(row: RecordRow, now: number): RunRecord {
  const { id, tenant, user, session, status, priority, head, owner, lease_until: until } = row;
  const { problem, ...beginning } = beginningIn(row);
  const wakeAt = hasEnded(status) ? null : row.wake_at;
  return {
    identity: { tenant, user, session, run: id },
    status,
    ...beginning,
    agent: row.agent,
    priority,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    readAt: now,
    head,
    ...(wakeAt === 0 ? {} : { wakeAt }),
    ...(owner !== null && until !== null && until > now ? { lease: { owner, until } } : {}),
    ...(problem === undefined ? {} : { problem }),
  };
}

type Beginning = Pick<RunRecord, 'query' | 'parent' | 'root' | 'problem'>;

/** A run whose beginning cannot be read is listed with its problem, so that it hides no other run. */
function beginningIn(row: RecordRow): Beginning {
  try {
    const { agent: _, ...beginning } = beginningOf(firstOf(row));
    return row.problem === null ? beginning : { ...beginning, problem: errorIn(row.problem) };
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    const { parent, root } = row;
    const tree = { ...(parent === null ? {} : { parent }), ...(root === null ? {} : { root }) };
    return { query: '', ...tree, problem: error.toJSON() };
  }
}

function firstOf({ id, first_body: body }: RecordRow): Started {
  const first = decodeRow(id, { seq: 1, body: body ?? '' });
  if (first.kind === 'started') return first;
  const message = `Run ${id} begins with the entry ${first.kind}. Restore the journal from a backup.`;
  throw new PilotageError('journal_corrupt', message, { data: { run: id } });
}

/** A note for people: what of it cannot be read is left out. */
function errorIn(text: string): ErrorData {
  try {
    return JSON.parse(text) as ErrorData;
  } catch {
    return { code: 'journal_corrupt', message: 'What its last owner has noted cannot be read.' };
  }
}
