/** The statements on the turns of sessions: their order, which of them wait, and what is said of sessions themselves. */
import type { DatabaseSync } from 'node:sqlite';
import { type Identity, type Scope, SESSION_MESSAGE } from '#core';
import type { NewRun, RunStatus, Sending, SessionQuery, SessionRecord } from '../port.ts';
import type { DroppedRun } from '../prune-port.ts';
import { assertMaySwitch, assertOwnTurn, cannotDelete, ownedBy, pageSize, sessionBusy } from '../rules.ts';
import type { SqliteDrops } from './drops.ts';
import { atMost, hasText, type PreparedStatement, prepared } from './statements.ts';
import type { SqliteWaits } from './waits.ts';

const IN_SCOPE = 'tenant = :tenant AND user = :user AND session = :session';
/** As the partial indexes say it. */
const inTurn = (of = ''): string =>
  `${of}turn IS NOT NULL AND coalesce(${of}waits, 0) = 0 AND ${of}status NOT IN ('finished', 'failed', 'cancelled')`;
const isWaiting = (of = ''): string => `${of}waits > 0 AND ${of}status NOT IN ('finished', 'failed', 'cancelled')`;
const sameScope = (of: string): string =>
  `${of}.tenant = this.tenant AND ${of}.user = this.user AND ${of}.session = this.session`;
const TURNS = 'FROM runs WHERE tenant = :tenant AND turn IS NOT NULL';
/** The last turn, for each session: found by one look into the index for each of them, and for each user. */
const SESSIONS = `
  WITH RECURSIVE users (user) AS (
    SELECT coalesce(:user, (SELECT min(user) ${TURNS}))
    UNION ALL
    SELECT (SELECT min(user) ${TURNS} AND user > users.user) FROM users WHERE users.user IS NOT NULL AND :user IS NULL
  ),
  names (user, session) AS (
    SELECT user, (SELECT min(session) ${TURNS} AND user = users.user) FROM users WHERE user IS NOT NULL
    UNION ALL
    SELECT user, (SELECT min(session) ${TURNS} AND user = names.user AND session > names.session)
    FROM names WHERE session IS NOT NULL
  )
  SELECT names.user, names.session, facts.title, (
      SELECT max(created_at) FROM (
        SELECT created_at FROM runs WHERE runs.tenant = :tenant AND runs.user = names.user AND runs.session = names.session
          AND turn IS NOT NULL ORDER BY turn DESC LIMIT 1
      )
    ) AS updated_at
  FROM names LEFT JOIN session_facts AS facts
    ON facts.tenant = :tenant AND facts.user = names.user AND facts.session = names.session
  WHERE names.session IS NOT NULL AND updated_at >= :since
    AND (:text IS NULL OR has_text(names.session, :text) OR has_text(facts.title, :text))
    AND (:afterAt IS NULL OR updated_at < :afterAt
      OR (updated_at = :afterAt AND (names.user, names.session) > (:afterUser, :afterSession)))
  ORDER BY updated_at DESC, names.user, names.session ${atMost(':limit')}`;

interface LastRow {
  readonly turn: number;
  readonly created_at: number;
  readonly waits: number | null;
}

interface LiveRow {
  readonly run: string;
  readonly status: RunStatus;
  readonly signals: number;
}

/** Where a run stands in its session. */
interface TurnPlace {
  readonly turn: number | null;
  readonly waits: number | null;
  /** It waits for the turns before it. */
  readonly isBehind: boolean;
  /** Others stand there, or behind it. */
  readonly makesRoom: boolean;
}

/** The place of a run that is not a turn. */
export const NO_TURN: TurnPlace = { turn: null, waits: null, isBehind: false, makesRoom: false };

/** How the column says that a turn waits. */
const WAITS = { last: 1, next: 2, first: 2 } as const;

type Statements = ReturnType<typeof statementsOn>;

function statementsOn(db: DatabaseSync) {
  const sql = prepared(db);
  hasText(db);
  return {
    last: sql(`
      SELECT turn, created_at, waits FROM runs WHERE ${IN_SCOPE} AND turn IS NOT NULL ORDER BY turn DESC LIMIT 1`),
    first: sql(`SELECT created_at FROM runs WHERE ${IN_SCOPE} AND turn IS NOT NULL ORDER BY turn LIMIT 1`),
    // Those that wait stand at the end.
    firstWaiting: sql(`
      SELECT turn FROM runs INDEXED BY runs_waiting WHERE ${IN_SCOPE} AND ${isWaiting()} AND waits <= :most ORDER BY turn LIMIT 1`),
    makeRoom: sql(`UPDATE runs SET turn = turn + 1 WHERE ${IN_SCOPE} AND turn >= :turn AND id <> :run`),
    next: sql(`
      UPDATE runs SET waits = 0 WHERE key = (
        SELECT next.key FROM runs AS this JOIN runs AS next INDEXED BY runs_waiting
          ON ${sameScope('next')} AND ${isWaiting('next.')}
        WHERE this.id = ? AND NOT EXISTS (
          SELECT 1 FROM runs AS open INDEXED BY runs_in_turn WHERE ${sameScope('open')} AND ${inTurn('open.')}
        ) ORDER BY next.turn LIMIT 1
      ) RETURNING id`),
    otherInTurn: sql(`
      SELECT open.id FROM runs AS this JOIN runs AS open INDEXED BY runs_in_turn ON ${sameScope('open')} AND ${inTurn('open.')}
      WHERE this.id = ? AND this.waits = 0 AND open.waits = 0 AND open.key <> this.key LIMIT 1`),
    scopeOf: sql('SELECT tenant, user, session FROM runs WHERE id = ? AND turn IS NOT NULL'),
    live: sql(`
      SELECT id AS run, status, signals FROM runs INDEXED BY runs_in_turn WHERE ${IN_SCOPE} AND ${inTurn()}
      ORDER BY turn DESC LIMIT 1`),
    waiting: sql(`SELECT count(*) AS waiting FROM runs INDEXED BY runs_waiting WHERE ${IN_SCOPE} AND ${isWaiting()}`),
    ownerOf: sql('SELECT tenant, user, session FROM runs WHERE id = ?'),
    // The control first: SQLite would look at each run of the session.
    heardIn: sql(`
      SELECT runs.id AS run FROM controls INDEXED BY controls_messages CROSS JOIN runs ON runs.key = controls.run
      WHERE controls.id = :control AND controls.id GLOB '${SESSION_MESSAGE}*' AND ${IN_SCOPE} LIMIT 1`),
    facts: sql(`SELECT title, branch FROM session_facts WHERE ${IN_SCOPE}`),
    setFacts: sql(`
      INSERT INTO session_facts (tenant, user, session, title, branch) VALUES (:tenant, :user, :session, :title, :branch)
      ON CONFLICT DO UPDATE SET title = excluded.title, branch = excluded.branch`),
    sessions: sql(SESSIONS),
    held: sql(`
      SELECT id FROM runs WHERE ${IN_SCOPE} AND owner IS NOT NULL AND lease_until > :now
        AND status NOT IN ('finished', 'failed', 'cancelled') LIMIT 1`),
    keys: sql(`SELECT key, id FROM runs WHERE ${IN_SCOPE} ORDER BY key`),
  } satisfies Record<string, PreparedStatement>;
}

interface Facts {
  readonly title: string | null;
  readonly branch: string | null;
}

/** Everything here is synchronous, and called inside the writer's transaction where it writes. */
export class SqliteTurns {
  readonly #sql: Statements;
  readonly #drops: SqliteDrops;

  constructor(db: DatabaseSync, drops: SqliteDrops) {
    this.#sql = statementsOn(db);
    this.#drops = drops;
  }

  /** The place of a run that is to be stored. */
  placeFor(scope: Scope, waits: NewRun['waits']): TurnPlace {
    const of = scopeOf(scope);
    const isBehind = waits !== undefined && this.#live(of) !== undefined;
    const last = this.#sql.last().get<LastRow>(of);
    const before = waits === 'last' || !last?.waits ? undefined : this.#firstWaiting(of, waits);
    const column = waits === undefined ? null : isBehind ? WAITS[waits] : 0;
    return { turn: before ?? (last?.turn ?? 0) + 1, waits: column, isBehind, makesRoom: before !== undefined };
  }

  /** Moves those on that stood at the place of this run, and behind it. */
  makeRoom({ run, ...scope }: Identity, turn: number | null): void {
    this.#sql.makeRoom().run({ ...scopeOf(scope), run, turn });
  }

  /** The place of the first one that waits; of those put last when another comes next: it stands behind those that came next before it. */
  #firstWaiting(scope: Record<keyof Scope, string>, waits: Exclude<NewRun['waits'], 'last'>): number | undefined {
    const most = waits === 'next' ? WAITS.last : WAITS.next;
    return this.#sql.firstWaiting().get<{ turn: number }>({ ...scope, most })?.turn;
  }

  #live(scope: Record<keyof Scope, string>): LiveRow | undefined {
    return this.#sql.live().get<LiveRow>(scope);
  }

  /** @returns the turn whose turn it is now that this run has ended. */
  ended(run: string): string | undefined {
    return this.#sql.next().get<{ id: string }>(run)?.id;
  }

  otherInTurn(run: string): string | undefined {
    return this.#sql.otherInTurn().get<{ id: string }>(run)?.id;
  }

  /** The session of a turn. */
  scopeOf(run: string): Scope | undefined {
    return this.#sql.scopeOf().get<Scope>(run);
  }

  acceptedIn(sending: Sending): string | undefined {
    const { scope, known } = sending;
    const owner = this.#sql.ownerOf().get<Scope>(known.run);
    if (owner === undefined) {
      return this.#sql.heardIn().get<{ run: string }>({ ...scopeOf(scope), control: known.control })?.run;
    }
    assertOwnTurn(sending, owner);
    return known.run;
  }

  record(of: Scope): SessionRecord | undefined {
    ownedBy(of);
    const scope = scopeOf(of);
    const last = this.#sql.last().get<LastRow>(scope);
    if (last === undefined) return undefined;
    const facts = this.#facts(scope);
    const { title } = facts;
    return {
      ...scope,
      ...(title === null ? {} : { title }),
      ...this.standing(scope, facts),
      turns: last.turn,
      waiting: Number(this.#sql.waiting().get(scope)?.['waiting']),
      createdAt: Number(this.#sql.first().get(scope)?.['created_at']),
      updatedAt: last.created_at,
    };
  }

  /** What a sender has to have seen. */
  standing(of: Scope, facts?: Facts): Pick<SessionRecord, 'live' | 'branch'> {
    const scope = scopeOf(of);
    const { branch } = facts ?? this.#facts(scope);
    const live = this.#live(scope);
    return { ...(branch === null ? {} : { branch }), ...(live === undefined ? {} : { live: { ...live } }) };
  }

  hasTurns(of: Scope): boolean {
    return this.#sql.last().get(scopeOf(of)) !== undefined;
  }

  list(query: SessionQuery): SessionRecord[] {
    const { tenant, user = null, since = 0, text, after } = query;
    const found = this.#sql.sessions().all<Pick<Scope, 'user' | 'session'>>({
      ...{ tenant, user, since, text: text?.toLowerCase() ?? null, limit: pageSize(query) },
      ...{ afterAt: after?.updatedAt ?? null, afterUser: after?.user ?? '', afterSession: after?.session ?? '' },
    });
    return found.flatMap(({ user, session }) => this.record({ tenant, user, session }) ?? []);
  }

  set(of: Scope, facts: { readonly title?: string | null; readonly branch?: string | null }): void {
    ownedBy(of);
    const scope = scopeOf(of);
    if (typeof facts.branch === 'string')
      assertMaySwitch(of, facts.branch, this.#live(scope)?.run, this.scopeOf(facts.branch));
    if (this.#sql.last().get(scope) === undefined) return;
    const before = this.#facts(scope);
    const { title = before.title, branch = before.branch } = facts;
    if (title !== before.title || branch !== before.branch) this.#sql.setFacts().run({ ...scope, title, branch });
  }

  delete(of: Scope, now: number, waits: SqliteWaits): number {
    ownedBy(of);
    const scope = scopeOf(of);
    const held = this.#sql.held().get<{ id: string }>({ ...scope, now });
    if (held !== undefined) throw sessionBusy(cannotDelete(of), held.id);
    const runs = this.#sql.keys().all<DroppedRun & Record<string, never>>(scope);
    this.#drops.runs(runs, waits, now, (starts, run) => starts.forget(run));
    // In the same commit: nobody would look for what is left.
    while (!this.#drops.session(of));
    return runs.length;
  }

  #facts(scope: Record<keyof Scope, string>): Facts {
    return this.#sql.facts().get<Facts>(scope) ?? { title: null, branch: null };
  }
}

function scopeOf({ tenant, user, session }: Scope): Record<keyof Scope, string> {
  return { tenant, user, session };
}
