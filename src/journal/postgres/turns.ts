/** The statements on the turns of sessions: their order, which of them wait, and what is said of sessions themselves. */
import { type Identity, PilotageError, type Scope, SESSION_MESSAGE } from '#core';
import type { NewRun, RunStatus, Sending, SessionQuery, SessionRecord } from '../port.ts';
import { assertMaySwitch, assertOwnTurn, cannotDelete, hasEnded, ownedBy, pageSize, sessionBusy } from '../rules.ts';
import type { Lock, Sql } from './database.ts';
import { dropRuns, dropSession, signalLocksOf } from './drops.ts';
import { HAS_ENDED, type RunRow } from './run-rows.ts';
import { forgetStarts } from './starts.ts';
import { includesText, longestPart, mayHave } from './text-search.ts';
import type { PostgresWaits } from './waits.ts';

const IN_SCOPE = 'tenant = $1 AND "user" = $2 AND session = $3';
const inTurn = (of: string): string =>
  `${of}.turn IS NOT NULL AND coalesce(${of}.waits, 0) = 0 AND NOT (${of}.${HAS_ENDED})`;
const isWaiting = (of: string): string => `${of}.turn IS NOT NULL AND ${of}.waits > 0 AND NOT (${of}.${HAS_ENDED})`;
const sameScope = (of: string, as: string): string =>
  `${of}.tenant = ${as}.tenant AND ${of}."user" = ${as}."user" AND ${of}.session = ${as}.session`;

/** Those that wait stand at the end: what comes before one of them moves it, and all behind it. */
const ADD = `
  WITH last AS (SELECT turn, waits FROM {runs} WHERE ${IN_SCOPE} AND turn IS NOT NULL ORDER BY turn DESC LIMIT 1),
  live AS (SELECT key FROM {runs} AS open WHERE ${IN_SCOPE} AND ${inTurn('open')} LIMIT 1),
  behind AS (
    SELECT turn FROM {runs} AS next WHERE ${IN_SCOPE} AND ${isWaiting('next')} AND waits <= $5::int AND (SELECT waits FROM last) > 0
    ORDER BY turn LIMIT 1
  ),
  room AS (UPDATE {runs} SET turn = turn + 1 WHERE ${IN_SCOPE} AND turn >= (SELECT turn FROM behind))
  UPDATE {runs} SET turn = coalesce((SELECT turn FROM behind), (SELECT turn FROM last) + 1, 1),
    waits = CASE WHEN $6::int IS NULL THEN NULL WHEN EXISTS (SELECT FROM live) THEN $6::int ELSE 0 END
  WHERE id = $4 RETURNING waits`;
const NEXT = `
  UPDATE {runs} SET waits = 0 WHERE key = (
    SELECT next.key FROM {runs} AS this JOIN {runs} AS next ON ${sameScope('next', 'this')} AND ${isWaiting('next')}
    WHERE this.id = $1 AND NOT EXISTS (
      SELECT FROM {runs} AS open WHERE ${sameScope('open', 'this')} AND ${inTurn('open')}
    ) ORDER BY next.turn LIMIT 1
  ) RETURNING id`;
const OTHER_IN_TURN = `
  SELECT open.id FROM {runs} AS this JOIN {runs} AS open ON ${sameScope('open', 'this')} AND ${inTurn('open')}
  WHERE this.id = $1 AND this.waits = 0 AND open.waits = 0 AND open.key <> this.key LIMIT 1`;
const SCOPE_OF = 'SELECT tenant, "user", session FROM {runs} WHERE id = $1 AND turn IS NOT NULL';
/** The run that a message was to begin, or else the one that has heard it. */
const ACCEPTED = `
  WITH own AS (SELECT id AS run, tenant, "user", session FROM {runs} WHERE id = $4)
  SELECT * FROM own
  UNION ALL (
    SELECT runs.id AS run, tenant, "user", session FROM {controls} AS controls JOIN {runs} AS runs ON runs.key = controls.run
    WHERE controls.id = $5 AND starts_with(controls.id, '${SESSION_MESSAGE}') AND ${IN_SCOPE} AND NOT EXISTS (SELECT FROM own) LIMIT 1
  )`;
const liveOf = (scope: string): string => `
  SELECT id, status, signals FROM {runs} AS open WHERE ${scope} AND ${inTurn('open')} ORDER BY turn DESC LIMIT 1`;
/** A session without turns has a row as well. */
const STANDING = `
  SELECT facts.title, facts.branch, live.id AS live_run, live.status AS live_status, live.signals AS live_signals,
    EXISTS (SELECT FROM {runs} WHERE ${IN_SCOPE} AND turn IS NOT NULL) AS has_turns
  FROM (VALUES (0)) AS one
  LEFT JOIN (SELECT title, branch FROM {session_facts} WHERE ${IN_SCOPE}) AS facts ON TRUE
  LEFT JOIN (${liveOf(IN_SCOPE)}) AS live ON TRUE`;
const OF_ASKED = 'tenant = $1 AND "user" = asked."user" AND session = asked.session';
const RECORDS = `
  SELECT asked."user", asked.session, facts.title, facts.branch, last.turn AS turns, last.created_at AS updated_at, first.created_at,
    live.id AS live_run, live.status AS live_status, live.signals AS live_signals,
    (SELECT count(*) FROM {runs} AS next WHERE ${OF_ASKED} AND ${isWaiting('next')}) AS waiting
  FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS asked ("user", session, place)
  CROSS JOIN LATERAL (
    SELECT turn, created_at FROM {runs} WHERE ${OF_ASKED} AND turn IS NOT NULL ORDER BY turn DESC LIMIT 1
  ) AS last
  CROSS JOIN LATERAL (
    SELECT created_at FROM {runs} WHERE ${OF_ASKED} AND turn IS NOT NULL ORDER BY turn LIMIT 1
  ) AS first
  LEFT JOIN LATERAL (${liveOf(OF_ASKED)}) AS live ON TRUE
  LEFT JOIN LATERAL (SELECT title, branch FROM {session_facts} WHERE ${OF_ASKED}) AS facts ON TRUE
  ORDER BY asked.place`;
const SET_FACTS = `
  INSERT INTO {session_facts} (tenant, "user", session, title, branch) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (tenant, "user", session) DO UPDATE SET title = excluded.title, branch = excluded.branch`;
/** The last turn, for each session: found by one look into the index for each of them. */
const SESSIONS = `
  WITH RECURSIVE names ("user", session) AS (
    (
      SELECT "user", session FROM {runs}
      WHERE tenant = $1 AND turn IS NOT NULL AND "user" >= CASE WHEN $2::text IS NULL THEN '' ELSE $2 END ORDER BY "user", session LIMIT 1
    )
    UNION ALL
    SELECT next."user", next.session FROM names CROSS JOIN LATERAL (
      SELECT runs."user", runs.session FROM {runs} AS runs
      WHERE runs.tenant = $1 AND runs.turn IS NOT NULL AND (runs."user", runs.session) > (names."user", names.session)
      ORDER BY runs."user", runs.session LIMIT 1
    ) AS next
    WHERE $2::text IS NULL OR names."user" = $2
  )
  SELECT names."user", names.session, facts.title, last.created_at AS updated_at FROM names
  CROSS JOIN LATERAL (
    SELECT created_at FROM {runs} AS runs WHERE runs.tenant = $1 AND runs."user" = names."user" AND runs.session = names.session
      AND turn IS NOT NULL ORDER BY turn DESC LIMIT 1
  ) AS last
  LEFT JOIN {session_facts} AS facts ON facts.tenant = $1 AND facts."user" = names."user" AND facts.session = names.session
  WHERE ($2::text IS NULL OR names."user" = $2) AND last.created_at >= $3::float8
    AND (${mayHave('names.session', '$4')} OR ${mayHave('facts.title', '$4')})
    AND ($5::bigint IS NULL OR last.created_at < $5::bigint
      OR (last.created_at = $5::bigint AND (names."user", names.session) > ($6, $7)))
  ORDER BY last.created_at DESC, names."user", names.session LIMIT $8::bigint`;
/** Nobody adds to them, claims them or tells them anything until the transaction is over. */
const HOLD = `
  SELECT key, id, tenant, status, owner, lease_until FROM {runs} WHERE ${IN_SCOPE} ORDER BY key FOR UPDATE`;
const KEYS = `SELECT key FROM {runs} WHERE ${IN_SCOPE}`;
interface StandingRow {
  /** As it is stored. */
  readonly title: string | null;
  readonly branch: string | null;
  readonly live_run: string | null;
  readonly live_status: RunStatus;
  readonly live_signals: number;
}

interface RecordedRow extends StandingRow, Pick<Scope, 'user' | 'session'> {
  readonly turns: number;
  readonly waiting: number;
  readonly created_at: number;
  readonly updated_at: number;
}

interface NamedRow extends Pick<Scope, 'user' | 'session'> {
  readonly title: string | null;
  readonly updated_at: number;
}

type HeldRow = Pick<RunRow, 'key' | 'id' | 'tenant' | 'status' | 'owner' | 'lease_until'>;

/** How the column says that a turn waits. */
const WAITS = { last: 1, next: 2, first: 2 } as const;

/** What writes is called inside a transaction that holds the lock of the session. */
export class PostgresTurns {
  /** Gives a run that was just stored its place. @returns whether it waits. */
  async add(sql: Sql, identity: Identity, waits: NewRun['waits']): Promise<boolean> {
    const { tenant, user, session, run } = identity;
    const column = waits === undefined ? null : WAITS[waits];
    const row = await sql.row<Pick<RunRow, 'waits'>>(ADD, tenant, user, session, run, mostBehind(waits), column);
    return (row?.waits ?? 0) > 0;
  }

  /** @returns the turn whose turn it is now that this run has ended. */
  async ended(sql: Sql, run: string): Promise<string | undefined> {
    return (await sql.row<Pick<RunRow, 'id'>>(NEXT, run))?.id;
  }

  async otherInTurn(sql: Sql, run: string): Promise<string | undefined> {
    return (await sql.row<Pick<RunRow, 'id'>>(OTHER_IN_TURN, run))?.id;
  }

  /** The session of a turn. */
  scopeOf(sql: Sql, run: string): Promise<Scope | undefined> {
    return sql.row<Scope>(SCOPE_OF, run);
  }

  async acceptedIn(sql: Sql, sending: Sending): Promise<string | undefined> {
    const { scope, known } = sending;
    const values = [...partsOf(scope), known.run, known.control] as const;
    const found = await sql.row<Scope & { readonly run: string }>(ACCEPTED, ...values);
    if (found === undefined) return undefined;
    assertOwnTurn(sending, found);
    return found.run;
  }

  async record(sql: Sql, of: Scope): Promise<SessionRecord | undefined> {
    ownedBy(of);
    return (await recordsOf(sql, of.tenant, [of]))[0];
  }

  /** What a sender has to have seen. */
  async standing(
    sql: Sql,
    of: Scope,
  ): Promise<Pick<SessionRecord, 'live' | 'branch'> & { readonly hasTurns: boolean }> {
    const row = (await sql.row<StandingRow>(STANDING, ...partsOf(of))) as StandingRow & { readonly has_turns: boolean };
    return { ...standingIn(row), hasTurns: row.has_turns };
  }

  async list(sql: Sql, query: SessionQuery): Promise<SessionRecord[]> {
    const limit = pageSize(query);
    const found: NamedRow[] = [];
    // With a text, the database gives also some that do not have it.
    for (let { after } = query; ; ) {
      const rows = await sql.rows<NamedRow>(SESSIONS, ...namedBy(query, after), limit);
      found.push(...rows.filter((row) => isAbout(row, query.text)));
      const last = rows.at(-1);
      if (last === undefined || rows.length < limit || found.length >= limit) break;
      after = { ...last, updatedAt: last.updated_at };
    }
    return recordsOf(sql, query.tenant, found.slice(0, limit));
  }

  async set(
    sql: Sql,
    of: Scope,
    facts: { readonly title?: string | null; readonly branch?: string | null },
  ): Promise<void> {
    ownedBy(of);
    const row = await sql.row<StandingRow & { readonly has_turns: boolean }>(STANDING, ...partsOf(of));
    if (typeof facts.branch === 'string')
      assertMaySwitch(of, facts.branch, row?.live_run ?? undefined, await this.scopeOf(sql, facts.branch));
    if (row === undefined || !row.has_turns) return;
    const { branch = row.branch } = facts;
    const title = facts.title === undefined ? row.title : storedTitle(facts.title);
    if (title !== row.title || branch !== row.branch) await sql.run(SET_FACTS, ...partsOf(of), title, branch);
  }

  /** The locks of the signals that runs of the session have not taken: whoever deletes it must have them. */
  async signalLocksOf(sql: Sql, scope: Scope): Promise<readonly Lock[]> {
    const rows = await sql.rows<Pick<RunRow, 'key'>>(KEYS, ...partsOf(scope));
    return signalLocksOf(
      sql,
      rows.map(({ key }) => key),
    );
  }

  /**
   * @param locked the locks that the transaction has.
   * @returns how many runs there were. `undefined`: a signal has come since with a key that is not locked, and nothing is deleted.
   */
  async delete(
    sql: Sql,
    of: Scope,
    now: number,
    waits: PostgresWaits,
    locked: readonly Lock[],
  ): Promise<number | undefined> {
    ownedBy(of);
    const rows = await sql.rows<HeldRow>(HOLD, ...partsOf(of));
    const held = rows.find((row) => isHeld(row, now));
    if (held !== undefined) throw sessionBusy(cannotDelete(of), held.id);
    const told = await dropRuns(sql, rows, { waits, now, locked });
    if (told === undefined) return undefined;
    await forgetStarts(
      sql,
      rows.map(({ id }) => id),
    );
    await dropSession(sql, of);
    return rows.length;
  }
}

/** A turn that comes next stands before those that were put last, and behind those that came next before it. */
function mostBehind(waits: NewRun['waits']): number {
  if (waits === 'last') return 0;
  return waits === 'next' ? WAITS.last : WAITS.next;
}

function isHeld({ status, owner, lease_until: until }: HeldRow, now: number): boolean {
  return owner !== null && until !== null && until > now && !hasEnded(status);
}

function partsOf({ tenant, user, session }: Scope): readonly [tenant: string, user: string, session: string] {
  return [tenant, user, session];
}

async function recordsOf(
  sql: Sql,
  tenant: string,
  names: readonly Pick<Scope, 'user' | 'session'>[],
): Promise<SessionRecord[]> {
  if (names.length === 0) return [];
  const users = names.map(({ user }) => user);
  const sessions = names.map(({ session }) => session);
  const rows = await sql.rows<RecordedRow>(RECORDS, tenant, users, sessions);
  return rows.map((row) => {
    const { user, session, turns, waiting } = row;
    const title = titleIn(row.title);
    return {
      ...{ tenant, user, session },
      ...(title === null ? {} : { title }),
      ...standingIn(row),
      ...{ turns, waiting, createdAt: row.created_at, updatedAt: row.updated_at },
    };
  });
}

function standingIn(row: StandingRow): Pick<SessionRecord, 'live' | 'branch'> {
  const { branch, live_run: run, live_status: status, live_signals: signals } = row;
  const live = run === null ? undefined : { run, status, signals };
  return { ...(branch === null ? {} : { branch }), ...(live === undefined ? {} : { live }) };
}

function namedBy(query: SessionQuery, after: SessionQuery['after']) {
  const { tenant, user, since = 0, text = '' } = query;
  const place = [after?.updatedAt ?? null, after?.user ?? '', after?.session ?? ''] as const;
  return [tenant, user ?? null, since, longestPart(text.toLowerCase()), ...place] as const;
}

function isAbout({ session, title }: NamedRow, text: string | undefined): boolean {
  if (text === undefined) return true;
  return includesText(session, text.toLowerCase()) || includesText(titleIn(title), text.toLowerCase());
}

/** People write what they like, and Postgres stores no text with the character 0: a title is stored as JSON. */
function storedTitle(title: string | null): string | null {
  return title === null ? null : JSON.stringify(title);
}

function titleIn(stored: string | null): string | null {
  if (stored === null) return null;
  try {
    return String(JSON.parse(stored));
  } catch (cause) {
    const message =
      'The title of a session is not JSON. Restore the journal from a backup, or give the session another title.';
    throw new PilotageError('journal_corrupt', message, { cause });
  }
}
