/**
 * The statements on what waits, and on the mailbox of signals. Where they write, they are called inside a transaction that holds the lock
 * `signal` of each key that is added or given back: so a signal and whoever begins to wait for it never pass each other.
 */
import type { EventMessage, WaitChanges, WaitRow } from '#core';
import { encodeMessage, type MessageText } from '../encoded.ts';
import { assertKeepable, pageSize, wholeMs } from '../rules.ts';
import { eventMessage, jsonIn, waitIn } from '../waiting.ts';
import type { KeptSignal, NewSignal, OpenWait, Signalled, SignalQuery, WaitQuery } from '../waits-port.ts';
import { NOW_1, type Sql, type SqlValue, type Times } from './database.ts';

interface WaitingRow {
  readonly number: number;
  readonly run: number;
  readonly body: string;
}

/** What is known of the signal that comes, and one of those who wait for it, if there are any. */
type FoundRow = (WaitingRow | { readonly number: null }) & {
  readonly before_until: number | null;
  readonly is_kept: boolean | null;
  readonly kept: number;
};

interface KeptRow {
  readonly number: number;
  readonly id: string;
  readonly body: string;
}

interface SignalRow extends KeptRow {
  readonly key: string;
  readonly stored_at: number;
  readonly until: number;
}

interface ListedRow extends Pick<OpenWait, 'number' | 'run' | 'agent' | 'tenant' | 'user' | 'session'> {
  readonly body: string;
}

interface Mailbox {
  readonly tenant: string;
  readonly key: string;
  readonly now: number;
}

/** Puts a message into the inbox of a run. @returns the run's id; `undefined` when the run has had it, or has ended. */
export type EventTeller = (sql: Sql, run: number, message: MessageText, now: number) => Promise<string | undefined>;

/** How many signals whose time is over are deleted with one that comes: each call deletes more than it stores. */
const SWEPT_AT_ONCE = 100;

const END = 'DELETE FROM {open_waits} WHERE run = $1::bigint';
const REMOVE = `${END} AND id = ANY($2::text[])`;
/** What ends and what begins, and for which of the keys there is a signal. A row that is replaced keeps its number, unless it had ended. */
const add = (alsoSets: string): string => `
  WITH gone AS (${END} AND ($2::boolean OR id = ANY($3::text[])) AND id <> ALL($4::text[])),
  begun AS (
    INSERT INTO {open_waits} (run, id, tenant, kind, reason, key, until, body)
    SELECT runs.key, wait.id, runs.tenant, wait.kind, wait.reason, wait.key, wait.until, wait.body
    FROM {runs} AS runs CROSS JOIN
      unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[]) WITH ORDINALITY
        AS wait (id, kind, reason, key, until, body, place)
    WHERE runs.key = $1::bigint ORDER BY wait.place
    ON CONFLICT (run, id) DO UPDATE SET kind = excluded.kind, reason = excluded.reason, key = excluded.key, until = excluded.until,
      body = excluded.body${alsoSets}
  )
  SELECT runs.tenant, wanted.key FROM {runs} AS runs CROSS JOIN unnest($7::text[]) AS wanted (key)
  WHERE runs.key = $1::bigint AND EXISTS (
    SELECT 1 FROM {signals} AS signals
    WHERE signals.tenant = runs.tenant AND signals.key = wanted.key AND body IS NOT NULL AND signals.until > $10::bigint
  )`;
const ADD = add('');
const ADD_ANEW = add(', number = DEFAULT');
const TAKE_BACK = `
  UPDATE {signals} AS signals SET given = greatest(signals.given - back.times, 0),
    body = CASE WHEN signals.given <= back.times THEN back.body END
  FROM {runs} AS runs CROSS JOIN unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) AS back (key, id, times, body)
  WHERE runs.key = $1::bigint AND signals.tenant = runs.tenant AND signals.key = back.key AND signals.id = back.id AND signals.given > 0
  RETURNING signals.tenant, signals.key`;
const WAIT_FOR = 'tenant = $1 AND key = $2 AND (until IS NULL OR until > $3::bigint)';
/** Before who waits is read: a run that is just changing what it waits for is waited for, and nobody is told in another order. */
const HOLD = `
  SELECT key FROM {runs} WHERE key = ANY(ARRAY(SELECT run FROM {open_waits} WHERE ${WAIT_FOR})) ORDER BY key FOR UPDATE`;
const WAITING = `SELECT number, run, body FROM {open_waits} WHERE ${WAIT_FOR} ORDER BY number`;
const FIND = `
  SELECT before.until AS before_until, before.is_kept, (
      SELECT count(*) FROM {signals} WHERE tenant = $1 AND key = $2 AND body IS NOT NULL AND until > $3::bigint
    ) AS kept, waiting.*
  FROM (VALUES (0)) AS one
  LEFT JOIN (SELECT until, body IS NOT NULL AS is_kept FROM {signals} WHERE tenant = $1 AND key = $2 AND id = $4) AS before ON TRUE
  LEFT JOIN (${WAITING}) AS waiting ON TRUE
  ORDER BY waiting.number`;
/** One with the same id whose time is over is another signal. */
const INSERT = `
  WITH swept AS (
    DELETE FROM {signals} WHERE number IN (
      SELECT number FROM {signals} WHERE until <= $4::bigint AND (tenant, key, id) <> ($1, $2, $3)
      ORDER BY until LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED
    )
  )
  INSERT INTO {signals} (tenant, key, id, stored_at, until, body) VALUES ($1, $2, $3, $4::bigint, $5::bigint, $6)
  ON CONFLICT (tenant, key, id) DO UPDATE SET number = DEFAULT, stored_at = excluded.stored_at, until = excluded.until,
    body = excluded.body, given = 0
  RETURNING number`;
const NEXT_KEPT = `
  SELECT number, id, body FROM {signals}
  WHERE tenant = $1 AND key = $2 AND body IS NOT NULL AND (until > $3::bigint OR number = $4::bigint) AND number > $5::bigint
  ORDER BY number LIMIT $6::bigint`;
const DELIVERED = `
  WITH gone AS (DELETE FROM {open_waits} WHERE number = ANY($1::bigint[]))
  UPDATE {signals} AS signals SET body = NULL, given = signals.given + told.times
  FROM unnest($2::bigint[], $3::bigint[]) AS told (number, times) WHERE signals.number = told.number`;
const KEPT = `
  SELECT number, key, id, stored_at, until, body FROM {signals}
  WHERE tenant = $2 AND ($3::text IS NULL OR key = $3) AND body IS NOT NULL AND until > ${NOW_1} AND number > $4::bigint
  ORDER BY number LIMIT $5::bigint`;

export class PostgresWaits {
  readonly #tell: EventTeller;

  constructor(tell: EventTeller) {
    this.#tell = tell;
  }

  /** @returns the runs that have got a signal. */
  async change(sql: Sql, run: number, changes: WaitChanges, now: number): Promise<readonly string[]> {
    const { ends, removes = [], adds = [], returns = [] } = changes;
    if (adds.length === 0 && ends === true) await sql.run(END, run);
    else if (adds.length === 0 && removes.length > 0) await sql.run(REMOVE, run, removes);
    const wanted = adds.length === 0 ? [] : await this.#add(sql, run, changes, now);
    const back = returns.length === 0 ? [] : await this.#takeBack(sql, run, returns);
    const told: string[] = [];
    for (const { tenant, key } of distinct([...wanted, ...back])) {
      told.push(...(await this.#deliver(sql, { tenant, key, now })));
    }
    return told;
  }

  /** The run waits for these and nothing else. @returns the runs that have got a signal. */
  replace(sql: Sql, run: number, rows: readonly WaitRow[], now: number): Promise<readonly string[]> {
    return this.change(sql, run, { ends: true, adds: rows }, now);
  }

  /** What was told to a run, and it will not take. @returns the runs that have got it. */
  giveBack(sql: Sql, run: number, messages: readonly EventMessage[], now: number): Promise<readonly string[]> {
    return this.change(sql, run, { returns: messages }, now);
  }

  /** @returns the keys for which signals are kept. */
  async #add(
    sql: Sql,
    run: number,
    { ends, removes = [], adds = [] }: WaitChanges,
    now: number,
  ): Promise<readonly Place[]> {
    // The later one of two with the same id counts.
    const rows = [...new Map(adds.map((row) => [row.id, row])).values()];
    const ids = rows.map(({ id }) => id);
    // What ends and begins again in one statement would keep its number.
    if (ends !== true && ids.some((id) => removes.includes(id))) await sql.run(REMOVE, run, removes);
    return sql.rows<Place>(
      ends === true ? ADD_ANEW : ADD,
      ...[run, ends === true, removes, ids],
      rows.map((row) => row.for),
      rows.map(({ reason = null }) => reason),
      rows.map(({ key = null }) => key),
      rows.map(({ until }) => (until === undefined ? null : wholeMs(until, 'until'))),
      rows.map((row) => JSON.stringify(row)),
      now,
    );
  }

  /** @returns the keys of those that there are. */
  #takeBack(sql: Sql, run: number, returns: NonNullable<WaitChanges['returns']>): Promise<readonly Place[]> {
    // A statement changes a row once.
    const each = Map.groupBy(returns, ({ key, signal }) => JSON.stringify([key, signal]));
    const rows = [...each.values()].flatMap(([first, ...others]) => {
      return first === undefined ? [] : [{ ...first, times: others.length + 1 }];
    });
    return sql.rows<Place>(
      TAKE_BACK,
      run,
      rows.map(({ key }) => key),
      rows.map(({ signal }) => signal),
      rows.map(({ times }) => times),
      rows.map(({ payload }) => JSON.stringify(payload)),
    );
  }

  /** @param body the payload as it is stored. */
  async signal(sql: Sql, signal: NewSignal, body: string, { now, time }: Times): Promise<Signalled> {
    const { tenant, key, id, keepMs } = signal;
    const of = { tenant, key, now };
    await sql.run(HOLD, tenant, key, now);
    const found = await sql.rows<FoundRow>(FIND, tenant, key, now, id);
    const { before_until: before, is_kept: isKept, kept } = found[0] as FoundRow;
    if (before !== null && before > now) return { isNew: false, runs: [], kept: isKept === true, until: before };
    const waits = found.filter((row): row is FoundRow & WaitingRow => row.number !== null);
    if (waits.length === 0) assertKeepable(key, kept);
    const until = wholeMs(time + keepMs, 'keepMs');
    const { number } = (await sql.row<{ number: number }>(INSERT, tenant, key, id, now, until, body)) as KeptRow;
    // It is the last one: mostly there is no other.
    const first = kept === 0 ? [{ number, id, body }] : undefined;
    const runs = await this.#hand(sql, of, waits, { fresh: number, first });
    return { isNew: true, runs, kept: runs.length === 0 && until > now, until };
  }

  async #deliver(sql: Sql, of: Mailbox): Promise<readonly string[]> {
    const { tenant, key, now } = of;
    await sql.run(HOLD, tenant, key, now);
    return this.#hand(sql, of, await sql.rows<WaitingRow>(WAITING, tenant, key, now), { fresh: 0 });
  }

  /**
   * Every signal that is kept, the oldest first, goes to all that wait then.
   * @param fresh has just come: it goes to those who wait, however short it is kept. `first`: the first ones, where they are known.
   */
  async #hand(
    sql: Sql,
    of: Mailbox,
    waits: readonly WaitingRow[],
    { fresh, first }: { readonly fresh: number; readonly first?: readonly KeptRow[] | undefined },
  ): Promise<readonly string[]> {
    const told = new Set<string>();
    const dropped: number[] = [];
    const given = new Map<number, number>();
    const after = (number: number): Promise<KeptRow[]> =>
      sql.rows<KeptRow>(NEXT_KEPT, of.tenant, of.key, of.now, fresh, number, left.length);
    let left = waits;
    let signals: readonly KeptRow[] = left.length === 0 ? [] : (first ?? (await after(0)));
    for (let signal = signals[0]; signal !== undefined && left.length > 0; signal = signals[0]) {
      const refused: WaitingRow[] = [];
      for (const wait of left) {
        const run = await this.#tell(sql, wait.run, messageOf(wait, of.key, signal), of.now);
        if (run === undefined) {
          refused.push(wait);
          continue;
        }
        told.add(run);
        dropped.push(wait.number);
        given.set(signal.number, (given.get(signal.number) ?? 0) + 1);
      }
      left = refused;
      signals = signals.slice(1);
      if (signals.length === 0 && left.length > 0) signals = await after(signal.number);
    }
    if (dropped.length > 0) await sql.run(DELIVERED, dropped, [...given.keys()], [...given.values()]);
    return [...told];
  }

  async list(sql: Sql, query: WaitQuery): Promise<OpenWait[]> {
    const where: string[] = [];
    const values: SqlValue[] = [];
    const filter = (condition: string, value: string | number | undefined, type = 'text'): void => {
      if (value === undefined) return;
      values.push(value);
      where.push(`${condition} $${values.length}::${type}`);
    };
    filter('open_waits.number >', query.after ?? 0, 'bigint');
    filter('open_waits.tenant =', query.tenant);
    filter('runs."user" =', query.user);
    filter('runs.session =', query.session);
    filter('runs.id =', query.run);
    filter('runs.agent =', query.agent);
    filter('open_waits.kind =', query.for);
    filter('open_waits.reason =', query.reason);
    filter('open_waits.key =', query.key);
    filter('open_waits.until <', query.untilBefore, 'float8');
    const rows = await sql.rows<ListedRow>(
      `
        SELECT open_waits.number, open_waits.body, runs.id AS run, runs.agent, runs.tenant, runs."user", runs.session
        FROM {open_waits} AS open_waits JOIN {runs} AS runs ON runs.key = open_waits.run
        WHERE ${where.join(' AND ')} ORDER BY open_waits.number LIMIT $${values.length + 1}`,
      ...values,
      pageSize(query),
    );
    return rows.map(({ body, ...row }) => ({ ...waitIn(body), ...row }));
  }

  /** @param given the time of the journal's own clock, where it has one. */
  async signals(sql: Sql, given: number | null, query: SignalQuery): Promise<KeptSignal[]> {
    const { tenant, key = null, after = 0 } = query;
    const rows = await sql.rows<SignalRow>(KEPT, given, tenant, key, after, pageSize(query));
    return rows.map(({ number, key, id, stored_at: storedAt, until, body }) => {
      return { number, key, id, payload: jsonIn(body), storedAt, until };
    });
  }
}

type Place = Pick<Mailbox, 'tenant' | 'key'>;

/** All are those of one tenant. */
function distinct(places: readonly Place[]): Iterable<Place> {
  return new Map(places.map((place) => [place.key, place])).values();
}

function messageOf({ body: wait }: WaitingRow, key: string, { number, id: signal, body }: KeptRow): MessageText {
  return encodeMessage(eventMessage(waitIn(wait), { number, key, signal, payload: jsonIn(body) }));
}
