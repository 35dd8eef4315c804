/** The statements on what waits, and on the mailbox of signals. Called inside the writer's transaction where they write. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { EventMessage, WaitChanges, WaitRow } from '#core';
import { encodeMessage, type MessageText } from '../encoded.ts';
import { assertKeepable, pageSize, wholeMs } from '../rules.ts';
import { eventMessage, jsonIn, waitIn } from '../waiting.ts';
import type { KeptSignal, NewSignal, OpenWait, Signalled, SignalQuery, WaitQuery } from '../waits-port.ts';
import { atMost, type PreparedStatement, prepared, preparedTexts } from './statements.ts';

interface WaitingRow {
  readonly number: number;
  readonly run: number;
  readonly body: string;
}

interface SignalRow {
  readonly number: number;
  readonly key: string;
  readonly id: string;
  readonly stored_at: number;
  readonly until: number;
  readonly given: number;
  readonly body: string | null;
}

interface ListedRow extends Pick<OpenWait, 'number' | 'run' | 'agent' | 'tenant' | 'user' | 'session'> {
  readonly body: string;
}

/** Puts a message into the inbox of a run. @returns the run's id; `undefined` when the run has had it, or has ended. */
export type TellEvent = (run: number, message: MessageText, now: number) => string | undefined;

/** What is selected is all that is in the index of its key. */
const KEPT = 'body IS NOT NULL AND until > :now';

function statementsOn(db: DatabaseSync) {
  const sql = prepared(db);
  return {
    add: sql(`
      INSERT INTO open_waits (run, id, tenant, user, kind, reason, key, until, body)
      SELECT key, :id, tenant, user, :kind, :reason, :wanted, :until, :body FROM runs WHERE key = :run
      ON CONFLICT (run, id) DO UPDATE SET kind = excluded.kind, reason = excluded.reason, key = excluded.key,
        until = excluded.until, body = excluded.body`),
    remove: sql('DELETE FROM open_waits WHERE run = ? AND id = ?'),
    end: sql('DELETE FROM open_waits WHERE run = ?'),
    waiting: sql(`
      SELECT number, run, body FROM open_waits INDEXED BY open_waits_key
      WHERE tenant = :tenant AND key = :key AND (until IS NULL OR until > :now) ORDER BY number`),
    isAwaited: sql(`
      SELECT 1 AS found FROM open_waits INDEXED BY open_waits_key
      WHERE tenant = :tenant AND key = :key AND (until IS NULL OR until > :now) LIMIT 1`),
    drop: sql('DELETE FROM open_waits WHERE number = ?'),
    findSignal: sql(
      'SELECT number, until, given, body FROM signals WHERE tenant = :tenant AND key = :key AND id = :id',
    ),
    countKept: sql(`
      SELECT count(*) AS kept FROM signals INDEXED BY signals_kept WHERE tenant = :tenant AND key = :key AND ${KEPT}`),
    sweep: sql('DELETE FROM signals WHERE until <= ?'),
    insertSignal: sql(`
      INSERT INTO signals (tenant, key, id, stored_at, until, body) VALUES (:tenant, :key, :id, :storedAt, :until, :body)`),
    signals: sql(`
      SELECT * FROM signals INDEXED BY signals_kept
      WHERE tenant = :tenant AND (:key IS NULL OR key = :key) AND ${KEPT} AND number > :after
      ORDER BY number ${atMost(':limit')}`),
    nextKept: sql(`
      SELECT * FROM signals INDEXED BY signals_kept
      WHERE tenant = :tenant AND key = :key AND body IS NOT NULL AND (until > :now OR number = :fresh) AND number > :after
      ORDER BY number LIMIT 1`),
    delivered: sql('UPDATE signals SET body = NULL, given = given + ? WHERE number = ?'),
    takeBack: sql(`
      UPDATE signals SET given = given - 1, body = CASE WHEN given = 1 THEN :body END
      WHERE tenant = :tenant AND key = :key AND id = :id AND given > 0`),
    tenantOf: sql('SELECT tenant FROM runs WHERE key = ?'),
  } satisfies Record<string, PreparedStatement>;
}

export class SqliteWaits {
  readonly #list: ReturnType<typeof preparedTexts>;
  readonly #sql: ReturnType<typeof statementsOn>;
  readonly #tell: TellEvent;

  constructor(db: DatabaseSync, tell: TellEvent) {
    this.#list = preparedTexts(db);
    this.#sql = statementsOn(db);
    this.#tell = tell;
  }

  /** @returns the runs that have got a signal. */
  change(run: number, { ends, removes, adds, returns }: WaitChanges, now: number): readonly string[] {
    if (ends === true) this.#sql.end().run(run);
    for (const id of removes ?? []) this.#sql.remove().run(run, id);
    const keys = new Set<string>();
    for (const row of adds ?? []) {
      this.#add(run, row);
      if (row.key !== undefined) keys.add(row.key);
    }
    if (returns === undefined && keys.size === 0) return NOBODY;
    const tenant = this.#tenantOf(run);
    for (const { key, signal, payload } of returns ?? []) {
      this.#takeBack({ tenant, key, signal, payload });
      keys.add(key);
    }
    return [...keys].flatMap((key) => this.#deliver({ tenant, key, now }));
  }

  /** The run waits for these and nothing else. @returns the runs that have got a signal. */
  replace(run: number, rows: readonly WaitRow[], now: number): readonly string[] {
    return this.change(run, { ends: true, adds: rows }, now);
  }

  /** What was told to a run, and it will not take. @returns the runs that have got it. */
  giveBack(run: number, messages: readonly EventMessage[], now: number): readonly string[] {
    return messages.length === 0 ? NOBODY : this.change(run, { returns: messages }, now);
  }

  #tenantOf(run: number): string {
    return String(this.#sql.tenantOf().get(run)?.['tenant']);
  }

  #add(run: number, row: WaitRow): void {
    const { id, for: kind, reason = null, key: wanted = null, until } = row;
    this.#sql.add().run({
      ...{ run, id, kind, reason, wanted, body: JSON.stringify(row) },
      until: until === undefined ? null : wholeMs(until, 'until'),
    });
  }

  signal(signal: NewSignal, body: string, time: number): Signalled {
    const now = Math.floor(time);
    const { tenant, key, id, keepMs } = signal;
    const before = this.#sql.findSignal().get<SignalRow>({ tenant, key, id });
    if (before !== undefined && before.until > now) {
      return { isNew: false, runs: [], kept: before.body !== null, until: before.until };
    }
    if (this.#sql.isAwaited().get({ tenant, key, now }) === undefined) {
      assertKeepable(key, Number(this.#sql.countKept().get({ tenant, key, now })?.['kept']));
    }
    this.#sql.sweep().run(now);
    const until = wholeMs(time + keepMs, 'keepMs');
    const { lastInsertRowid } = this.#sql.insertSignal().run({ tenant, key, id, storedAt: now, until, body });
    const runs = this.#deliver({ tenant, key, now, fresh: Number(lastInsertRowid) });
    return { isNew: true, runs, kept: runs.length === 0 && until > now, until };
  }

  #takeBack({
    tenant,
    key,
    signal: id,
    payload,
  }: Pick<EventMessage, 'key' | 'signal' | 'payload'> & { tenant: string }) {
    this.#sql.takeBack().run({ tenant, key, id, body: JSON.stringify(payload) });
  }

  /**
   * Every signal that is kept, the oldest first, goes to all that wait then.
   * @param fresh has just come: it goes to those who wait, however short it is kept.
   */
  #deliver({ fresh = 0, ...of }: { tenant: string; key: string; now: number; fresh?: number }): string[] {
    const told = new Set<string>();
    for (let after = 0; ; ) {
      const signal = this.#sql.nextKept().get<SignalRow>({ ...of, fresh, after });
      if (signal === undefined) break;
      const waits = this.#sql.waiting().all<WaitingRow>(of);
      if (waits.length === 0) break;
      after = signal.number;
      let given = 0;
      for (const { number, run, body } of waits) {
        const message = eventMessage(waitIn(body), {
          ...signal,
          signal: signal.id,
          payload: jsonIn(signal.body ?? 'null'),
        });
        const id = this.#tell(run, encodeMessage(message), of.now);
        if (id === undefined) continue;
        told.add(id);
        given += 1;
        this.#sql.drop().run(number);
      }
      if (given > 0) this.#sql.delivered().run(given, signal.number);
    }
    return [...told];
  }

  list(query: WaitQuery): OpenWait[] {
    const where: string[] = ['open_waits.number > ?'];
    const values: SQLInputValue[] = [query.after ?? 0];
    const filter = (column: string, value: string | undefined): void => {
      if (value === undefined) return;
      where.push(`${column} = ?`);
      values.push(value);
    };
    filter('open_waits.tenant', query.tenant);
    filter('open_waits.user', query.user);
    filter('runs.session', query.session);
    filter('runs.id', query.run);
    filter('runs.agent', query.agent);
    filter('open_waits.kind', query.for);
    filter('open_waits.reason', query.reason);
    filter('open_waits.key', query.key);
    if (query.untilBefore !== undefined) {
      where.push('open_waits.until < ?');
      values.push(query.untilBefore);
    }
    const text = `
      SELECT open_waits.number, open_waits.body, runs.id AS run, runs.agent, runs.tenant, runs.user, runs.session
      FROM open_waits JOIN runs ON runs.key = open_waits.run
      WHERE ${where.join(' AND ')} ORDER BY open_waits.number ${atMost('?')}`;
    const rows = this.#list(text).all<ListedRow>(...values, pageSize(query));
    return rows.map(({ body, ...row }) => ({ ...waitIn(body), ...row }));
  }

  signals(query: SignalQuery, now: number): KeptSignal[] {
    const { tenant, key, after = 0 } = query;
    const asked = { tenant, key: key ?? null, after, now, limit: pageSize(query) };
    const rows = this.#sql.signals().all<SignalRow>(asked);
    return rows.map(({ number, key, id, stored_at: storedAt, until, body }) => {
      return { number, key, id, payload: jsonIn(body ?? 'null'), storedAt, until };
    });
  }
}

const NOBODY: readonly string[] = Object.freeze([]);
