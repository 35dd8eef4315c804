/**
 * The statements on runs, entries and controls. Everything here is synchronous. What writes is called inside the
 * writer's transaction, and throws a `PilotageError` only before its first change.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { Control } from '../core/control.ts';
import { decodeEntry, type Entry } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import type {
  Append,
  Claim,
  ClaimRequest,
  LeaseRequest,
  NewRun,
  Renewal,
  RunQuery,
  RunRecord,
  RunStatus,
} from './port.ts';
import { assertCurrent, assertTakesSignals, hasEnded, runNotFound, wholeMs } from './rules.ts';
import type { SqliteSessions } from './sqlite-session.ts';

interface RunRow {
  readonly key: number;
  readonly id: string;
  readonly status: RunStatus;
  readonly head: number;
  readonly last_entry: number;
  readonly signals: number;
  readonly fence: number;
  readonly owner: string | null;
  readonly lease_until: number | null;
}

interface RecordRow extends RunRow {
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
  readonly priority: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly wake_at: number | null;
  readonly first_body: string | null;
}

interface EntryRow {
  readonly seq: number;
  readonly body: string;
}

const FIND_RUN = 'SELECT key, id, status, head, last_entry, signals, fence, owner, lease_until FROM runs WHERE ';
const FIND_RECORD =
  'SELECT runs.*, entries.body AS first_body FROM runs LEFT JOIN entries ON entries.id = runs.first_entry WHERE ';
const FIRST_IN_LINE = 'ORDER BY priority DESC, key LIMIT 1';
// Three index look-ups: due now, due by time or by a lease that is over, and the leases of an owner known to be dead.
const FIND_DUE = `
  SELECT key FROM (
    SELECT * FROM (SELECT key, priority FROM runs WHERE due_at = 0 ${FIRST_IN_LINE})
    UNION ALL
    SELECT * FROM (SELECT key, priority FROM runs WHERE due_at > 0 AND due_at <= :now ${FIRST_IN_LINE})
    UNION ALL
    SELECT * FROM (
      SELECT key, priority FROM runs WHERE :dead IS NOT NULL AND due_at > :now AND owner = :dead ${FIRST_IN_LINE}
    )
  ) ${FIRST_IN_LINE}`;
// From the last entry backwards; a chain that is broken or crosses into another run comes out short.
const READ_ENTRIES = `
  WITH RECURSIVE chain (id, seq, previous) AS (
    SELECT id, seq, previous FROM entries WHERE id = :last AND seq = :head AND run = :run
    UNION ALL
    SELECT entries.id, entries.seq, entries.previous FROM chain
      JOIN entries ON entries.id = chain.previous AND entries.seq = chain.seq - 1 AND entries.run = :run
      WHERE chain.seq > :from
  )
  SELECT entries.seq, entries.body FROM chain JOIN entries ON entries.id = chain.id WHERE chain.seq >= :from AND chain.seq < :end`;

type Statements = ReturnType<typeof prepareStatements>;

function prepareStatements(db: DatabaseSync) {
  return {
    findRun: db.prepare(`${FIND_RUN} id = ?`),
    findRunByKey: db.prepare(`${FIND_RUN} key = ?`),
    findRecord: db.prepare(`${FIND_RECORD} runs.id = ?`),
    findDue: db.prepare(FIND_DUE),
    insertRun: db.prepare(`
      INSERT INTO runs (id, tenant, user, session, priority, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO NOTHING`),
    // The hot path: compares and inserts in one statement, and hands no row to JavaScript.
    insertEntry: db.prepare(`
      INSERT INTO entries (run, seq, previous, body)
      SELECT key, head + 1, last_entry, ? FROM runs WHERE id = ? AND head = ? AND fence = ?`),
    readEntries: db.prepare(READ_ENTRIES),
    setFirst: db.prepare('UPDATE runs SET first_entry = last_entry WHERE id = ?'),
    advance: db.prepare('UPDATE runs SET head = head + 1, last_entry = ?, updated_at = ? WHERE id = ?'),
    setStatus: db.prepare('UPDATE runs SET status = :status WHERE id = :run AND status <> :status'),
    // A claimed run is due again when its lease is over, until a release parks it.
    grant: db.prepare('UPDATE runs SET owner = ?, lease_until = ?, fence = fence + 1, wake_at = 0 WHERE key = ?'),
    renew: db.prepare('UPDATE runs SET lease_until = ? WHERE key = ?'),
    release: db.prepare('UPDATE runs SET owner = NULL, lease_until = NULL, wake_at = ? WHERE key = ?'),
    insertControl: db.prepare('INSERT INTO controls (run, id, number, body) VALUES (?, ?, ?, ?)'),
    findControl: db.prepare('SELECT number FROM controls WHERE run = ? AND id = ?'),
    countWaiting: db.prepare('SELECT count(*) AS waiting FROM controls WHERE run = ? AND body IS NOT NULL'),
    take: db.prepare('UPDATE controls SET body = NULL WHERE run = (SELECT key FROM runs WHERE id = ?) AND id = ?'),
    inbox: db.prepare('SELECT body FROM controls WHERE run = ? AND body IS NOT NULL ORDER BY number'),
    addSignal: db.prepare('UPDATE runs SET signals = signals + 1, wake_at = 0, updated_at = ? WHERE key = ?'),
  } satisfies Record<string, StatementSync>;
}

export class SqliteRows {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;
  readonly #sessions: SqliteSessions;

  constructor(db: DatabaseSync, sessions: SqliteSessions) {
    this.#db = db;
    this.#sessions = sessions;
    this.#sql = prepareStatements(db);
  }

  create(run: NewRun, bodies: readonly string[], now: number): Claim | undefined {
    const { tenant, user, session, run: id } = run.identity;
    const inserted = this.#sql.insertRun.run(id, tenant, user, session, run.priority, now, now);
    if (inserted.changes === 0) return undefined;
    for (const [index, body] of bodies.entries()) {
      this.#appendEntry({ run: id, fence: 0, expected: index }, body, now);
      if (index === 0) this.#sql.setFirst.run(id);
    }
    return run.claim && this.#grant(Number(inserted.lastInsertRowid), run.claim, now);
  }

  append(append: Append, bodies: readonly string[], now: number): void {
    const { run, fence, expected, takes, status, turn } = append;
    let head = expected;
    for (const body of bodies) {
      if (!this.#appendEntry({ run, fence, expected: head }, body, now)) break;
      head += 1;
    }
    // The first one decides, because nobody else writes meanwhile.
    if (head === expected) assertCurrent(append, this.#find(run));
    for (const id of takes ?? []) this.#sql.take.run(run, id);
    if (status !== undefined) this.#sql.setStatus.run({ status, run });
    if (turn !== undefined) this.#sessions.add(turn);
  }

  #appendEntry(at: Pick<Append, 'run' | 'fence' | 'expected'>, body: string, now: number): boolean {
    const { changes, lastInsertRowid } = this.#sql.insertEntry.run(body, at.run, at.expected, at.fence);
    if (changes === 0) return false;
    this.#sql.advance.run(lastInsertRowid, now, at.run);
    return true;
  }

  /** Entries with a seq from `from` up to, and without, `end`. */
  read(run: string, from: number, end: number): Entry[] {
    const row = this.#find(run);
    const { key, head, last_entry: last } = row;
    const rows = this.#sql.readEntries.all({ run: key, head, last, from, end }) as unknown as EntryRow[];
    const wanted = Math.max(0, Math.min(head + 1, end) - from);
    if (rows.length !== wanted) {
      throw new PilotageError(
        'journal_corrupt',
        `Run ${run} has ${rows.length} readable entries of ${wanted}. Restore the journal from a backup.`,
        { data: { run } },
      );
    }
    return rows.reverse().map((entry) => decode(run, entry));
  }

  get(run: string, now: number): RunRecord | undefined {
    const row = this.#sql.findRecord.get(run) as RecordRow | undefined;
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
    if (query.since !== undefined) filter('created_at >= ?', query.since);
    if (query.status !== undefined) {
      filter(`status IN (${query.status.map(() => '?').join(', ')})`, ...query.status);
    }
    // A key is given once, in the order of creation.
    if (query.after !== undefined) filter('key < ?', this.#find(query.after).key);
    const sql = `${FIND_RECORD} ${['TRUE', ...where].join(' AND ')} ORDER BY key DESC LIMIT ?`;
    const rows = this.#db.prepare(sql).all(...values, limit) as unknown as RecordRow[];
    return rows.map((row) => recordOf(row, now));
  }

  /** The run that `request` would get. */
  findClaimable(request: ClaimRequest, now: number): number | undefined {
    if (request.run === undefined) {
      return (this.#sql.findDue.get({ now, dead: request.from ?? null }) as Pick<RunRow, 'key'> | undefined)?.key;
    }
    const row = this.#sql.findRun.get(request.run) as RunRow | undefined;
    if (row === undefined || hasEnded(row.status)) return undefined;
    const free = row.lease_until === null || row.lease_until <= now || row.owner === request.from;
    return free ? row.key : undefined;
  }

  claim(request: ClaimRequest, now: number): Claim | undefined {
    const key = this.findClaimable(request, now);
    return key === undefined ? undefined : this.#grant(key, request, now);
  }

  #grant(key: number, lease: LeaseRequest, now: number): Claim {
    this.#sql.grant.run(lease.owner, wholeMs(now + lease.leaseMs, 'leaseMs'), key);
    const row = this.#sql.findRunByKey.get(key) as unknown as RunRow;
    return { run: row.id, fence: row.fence, head: row.head, signals: row.signals };
  }

  /** Counts the run's signals; `undefined` when the lease is not held any more. */
  renew(lease: Renewal, until: number): number | undefined {
    const row = this.#held(lease);
    if (row === undefined) return undefined;
    this.#sql.renew.run(until, row.key);
    return row.signals;
  }

  release(lease: Renewal, wakeAt: number | null, seenSignals: number): boolean {
    const row = this.#held(lease);
    if (row === undefined) return true;
    const news = row.signals > seenSignals;
    this.#sql.release.run(news ? 0 : wakeAt, row.key);
    return !news || hasEnded(row.status);
  }

  #held(lease: Renewal): RunRow | undefined {
    const row = this.#sql.findRun.get(lease.run) as RunRow | undefined;
    return row !== undefined && row.owner !== null && row.fence === lease.fence ? row : undefined;
  }

  signal(run: string, id: string, body: string, now: number): boolean {
    const row = this.#find(run);
    if (this.#sql.findControl.get(row.key, id) !== undefined) return false;
    assertTakesSignals(run, row.status, Number(this.#sql.countWaiting.get(row.key)?.['waiting']));
    this.#sql.insertControl.run(row.key, id, row.signals + 1, body);
    this.#sql.addSignal.run(now, row.key);
    return true;
  }

  inbox(run: string): Control[] {
    const rows = this.#sql.inbox.all(this.#find(run).key) as unknown as Pick<EntryRow, 'body'>[];
    return rows.map((row) => JSON.parse(row.body, freezeValue) as Control);
  }

  #find(run: string): RunRow {
    const row = this.#sql.findRun.get(run) as RunRow | undefined;
    if (row === undefined) throw runNotFound(run);
    return row;
  }
}

function freezeValue(_key: string, value: unknown): unknown {
  return Object.freeze(value);
}

/** Says which run an entry belongs to that cannot be read. */
function decode(run: string, row: EntryRow): Entry {
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
  const first = decode(id, { seq: 1, body: row.first_body ?? '' });
  const wakeAt = hasEnded(status) ? null : row.wake_at;
  return {
    identity: { tenant, user, session, run: id },
    status,
    query: first.kind === 'started' ? first.query : '',
    priority,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    head,
    ...(wakeAt === 0 ? {} : { wakeAt }),
    ...(owner !== null && until !== null && until > now ? { lease: { owner, until } } : {}),
  };
}
