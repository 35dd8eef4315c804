/** Which runs may go that ended long ago, and their removal: found without a lock, looked at once more under the locks, and removed in one commit. */
import { type Scope, scopeKey } from '#core';
import { PRUNE_ROOTS, PRUNE_RUNS, PRUNE_WINDOW, type PruneRequest, type Removed, successorIn } from '../prune-port.ts';
import { type Database, NOW_1, type Sql, sessionLock } from './database.ts';
import { type DroppedOf, dropRuns, dropSession, signalLocksOf } from './drops.ts';
import { HAS_ENDED } from './run-rows.ts';
import { forgetOver } from './starts.ts';
import type { PostgresWaits } from './waits.ts';

const hasEnded = (of: string): string => `${of}.${HAS_ENDED}`;
const sameScope = (of: string): string =>
  `${of}.tenant = root.tenant AND ${of}."user" = root."user" AND ${of}.session = root.session`;
const BEFORE = `${NOW_1} - $2::float8`;
/** The lease under which a run has ended holds nothing: nobody gives it back. */
const isKept = (of: string): string => `(NOT (${hasEnded(of)}) OR ${of}.updated_at > ${BEFORE})`;
const isChosen = (of: string): string => `${of}.status = ANY($3::text[])`;
/** Where the root is a turn, all runs of its session count; else its tree. */
const HAS_KEPT = `
  CASE WHEN root.turn IS NOT NULL THEN EXISTS (
    SELECT FROM {runs} AS own WHERE ${sameScope('own')} AND (${isKept('own')} OR (own.parent IS NULL AND NOT ${isChosen('own')}))
  ) ELSE EXISTS (
    WITH RECURSIVE tree (id) AS (
      SELECT root.id UNION SELECT task.id FROM tree JOIN {runs} AS task ON task.parent = tree.id
    )
    SELECT FROM tree JOIN {runs} AS own ON own.id = tree.id WHERE ${isKept('own')}
  ) END`;
/** Where another run has gone on with this one: whether a run of its session is under way. */
const HAS_OPEN = `EXISTS (SELECT FROM {runs} AS open WHERE ${sameScope('open')} AND NOT (${hasEnded('open')}))`;
const LOOK = `
  SELECT root.key, root.id, root.tenant, root."user", root.session, root.turn,
    ${isKept('root')} OR NOT ${isChosen('root')} OR ${HAS_KEPT} AS stays,
    last.body AS last_body, strpos(last.body, '"successor"') > 0 AND ${HAS_OPEN} AS has_open
  FROM {runs} AS root LEFT JOIN {entries} AS last ON last.run = root.key AND last.seq = root.head
    AND root.status = 'finished' AND root.turn IS NULL
  WHERE root.id = ANY($4::text[])`;
/** A conversation is taken up by its first turn. */
const ROOTS = `
  SELECT root.key, root.id FROM {runs} AS root
  WHERE root.key > $4::bigint AND root.key <= $5::bigint AND root.parent IS NULL AND coalesce(root.turn, 1) = 1
    AND NOT ${isKept('root')} AND ${isChosen('root')} AND ($6::text IS NULL OR root.tenant = $6)
  ORDER BY root.key LIMIT ${PRUNE_ROOTS}`;
const LAST_KEY = 'SELECT max(key) AS key FROM {runs}';
const MEMBERS = `
  WITH RECURSIVE tree (root, id) AS (
    SELECT root.id, own.id FROM {runs} AS root CROSS JOIN LATERAL (
      SELECT root.id WHERE root.turn IS NULL
      UNION ALL SELECT turn.id FROM {runs} AS turn WHERE ${sameScope('turn')} AND turn.turn IS NOT NULL AND root.turn IS NOT NULL
    ) AS own
    WHERE root.id = ANY($1::text[])
    UNION SELECT tree.root, task.id FROM tree JOIN {runs} AS task ON task.parent = tree.id
  )
  SELECT tree.root, own.key, own.id, own.tenant FROM tree JOIN {runs} AS own ON own.id = tree.id ORDER BY own.key`;
/** What somebody holds just now is not pruned. */
const HOLD = 'SELECT key FROM {runs} WHERE key = ANY($1::bigint[]) ORDER BY key FOR UPDATE SKIP LOCKED';
const HAS_RUNS = 'SELECT FROM {runs} WHERE tenant = $1 AND "user" = $2 AND session = $3 LIMIT 1';
const SWEPT_AT_ONCE = 1_000;
const SWEEP = `
  DELETE FROM {signals} WHERE number IN (
    SELECT number FROM {signals} WHERE until <= ${NOW_1} ORDER BY until LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED
  )`;

interface LookedRow extends Scope, DroppedOf {
  readonly turn: number | null;
  readonly stays: boolean;
  readonly last_body: string | null;
  readonly has_open: boolean | null;
}

interface MemberRow extends DroppedOf {
  readonly root: string;
}

interface Found {
  readonly roots: readonly LookedRow[];
  readonly members: readonly MemberRow[];
}

export class PostgresPrune {
  readonly #database: Database;
  readonly #waits: PostgresWaits;

  constructor(database: Database, waits: PostgresWaits) {
    this.#database = database;
    this.#waits = waits;
  }

  async prune(request: PruneRequest): Promise<Removed> {
    const { dryRun = false } = request;
    const { found, next } = await this.#database.read((sql) => this.#find(sql, request));
    const removed = dryRun || found.roots.length === 0 ? removedOf(found) : await this.#remove(request, found);
    if (!dryRun) await this.#database.read((sql) => sql.run(SWEEP, this.#database.given));
    return { ...removed, pruned: { ...removed.pruned, ...(next === undefined ? {} : { next }) } };
  }

  /** What may go, and where the next call goes on. */
  async #find(sql: Sql, request: PruneRequest): Promise<{ readonly found: Found; readonly next: number | undefined }> {
    const { olderThanMs, status, tenant = null, after = 0 } = request;
    const to = after + PRUNE_WINDOW;
    const asked = [this.#database.given, olderThanMs, status, after, to, tenant] as const;
    const rows = await sql.rows<{ readonly key: number; readonly id: string }>(ROOTS, ...asked);
    const isFull = rows.length === PRUNE_ROOTS;
    const last = isFull ? undefined : (await sql.row<{ readonly key: number | null }>(LAST_KEY))?.key;
    const next = isFull ? rows.at(-1)?.key : to >= (last ?? 0) ? undefined : to;
    const ids = rows.map(({ id }) => id);
    const found = await this.#look(sql, request, ids);
    const { roots, cut } = firstOf(found);
    return { found: { ...found, roots }, next: cut ?? next };
  }

  async #look(sql: Sql, request: PruneRequest, ids: readonly string[]): Promise<Found> {
    const roots = ids.length === 0 ? [] : await this.#goingOf(sql, request, ids);
    if (roots.length === 0) return { roots, members: [] };
    const members = await sql.rows<MemberRow>(
      MEMBERS,
      roots.map(({ id }) => id),
    );
    return { roots, members };
  }

  /** Those that may go. A run with which another one goes on stays as long as that other. */
  async #goingOf(sql: Sql, request: PruneRequest, ids: readonly string[]): Promise<readonly LookedRow[]> {
    const known = new Map<string, LookedRow>();
    const wanted = [this.#database.given, request.olderThanMs, request.status] as const;
    for (let asked = ids; asked.length > 0; ) {
      const rows = await sql.rows<LookedRow>(LOOK, ...wanted, asked);
      for (const row of rows) known.set(row.id, row);
      asked = rows.flatMap(({ last_body: body }) => successorIn(body) ?? []).filter((id) => !known.has(id));
    }
    const mayGo = (row: LookedRow): boolean => {
      if (row.stays) return false;
      const successor = successorIn(row.last_body);
      const next = successor === undefined ? undefined : known.get(successor);
      return next === undefined || (row.has_open !== true && mayGo(next));
    };
    return ids.flatMap((id) => known.get(id) ?? []).filter(mayGo);
  }

  async #remove(request: PruneRequest, seen: Found): Promise<Removed> {
    const sessions = new Map(seen.roots.map((root) => [scopeKey(root), root]));
    const keys = membersOf(seen).map(({ key }) => key);
    const signals = await this.#database.read((sql) => signalLocksOf(sql, keys));
    const locks = [...[...sessions.values()].map(sessionLock), ...signals];
    return this.#database.write(locks, async (sql, { now }) => {
      const held = new Set((await sql.rows<{ readonly key: number }>(HOLD, keys)).map(({ key }) => key));
      const ids = seen.roots.map(({ id }) => id);
      const found = await this.#look(sql, request, ids);
      const free = found.roots.filter(({ id }) => {
        return found.members.every(({ root, key }) => root !== id || held.has(key));
      });
      const going = { ...found, roots: free };
      const runs = membersOf(going);
      // What came meanwhile is left to the next time.
      const told = await dropRuns(sql, runs, { waits: this.#waits, now, locked: locks });
      if (told === undefined) return removedOf({ roots: [], members: [] });
      await forgetOver(
        sql,
        runs.map(({ id }) => id),
        now,
      );
      for (const scope of sessions.values()) {
        const { tenant, user, session } = scope;
        const isOver = (await sql.row(HAS_RUNS, tenant, user, session)) === undefined;
        if (isOver) await dropSession(sql, scope, now - request.olderThanMs);
      }
      return { ...removedOf(going), told };
    });
  }
}

/** As many of them as a commit takes. `cut`: the last of these, where not all do. */
function firstOf({ roots, members }: Found): {
  readonly roots: readonly LookedRow[];
  readonly cut: number | undefined;
} {
  const sizes = Map.groupBy(members, ({ root }) => root);
  let count = 0;
  for (const [index, { id, key }] of roots.entries()) {
    count += sizes.get(id)?.length ?? 0;
    if (count >= PRUNE_RUNS && index < roots.length - 1) return { roots: roots.slice(0, index + 1), cut: key };
  }
  return { roots, cut: undefined };
}

function membersOf({ roots, members }: Found): readonly MemberRow[] {
  const ids = new Set(roots.map(({ id }) => id));
  return members.filter(({ root }) => ids.has(root));
}

function removedOf(found: Found): Removed {
  const sessions = found.roots.filter(({ turn }) => turn !== null);
  return { pruned: { runs: membersOf(found).length }, told: [], sessions };
}
