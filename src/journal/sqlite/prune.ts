/** Which runs may go that ended long ago, and their removal. Called inside the writer's transaction where it deletes. */
import type { DatabaseSync } from 'node:sqlite';
import type { Scope } from '#core';
import {
  type DroppedRun,
  PRUNE_ROOTS,
  PRUNE_RUNS,
  PRUNE_WINDOW,
  type PruneRequest,
  type Removed,
  successorIn,
} from '../prune-port.ts';
import type { SqliteDrops } from './drops.ts';
import { LAST_ENTRY } from './schema.ts';
import { type PreparedStatement, prepared } from './statements.ts';
import type { SqliteWaits } from './waits.ts';

const IN_SCOPE = 'tenant = :tenant AND user = :user AND session = :session';
const HAS_ENDED = `status IN ('finished', 'failed', 'cancelled')`;
/** The lease under which a run has ended holds nothing: nobody gives it back. */
const IS_KEPT = `(NOT ${HAS_ENDED} OR updated_at > :before)`;
const IS_CHOSEN = 'status IN (SELECT value FROM json_each(:status))';
const TREE = `
  WITH RECURSIVE tree (key, id) AS (
    SELECT key, id FROM runs WHERE key = :key
    UNION SELECT runs.key, runs.id FROM tree JOIN runs ON runs.parent = tree.id
  )`;
const CONVERSATION = `
  WITH RECURSIVE tree (key, id) AS (
    SELECT key, id FROM runs WHERE ${IN_SCOPE} AND turn IS NOT NULL
    UNION SELECT runs.key, runs.id FROM tree JOIN runs ON runs.parent = tree.id
  )`;

function statementsOn(db: DatabaseSync) {
  const sql = prepared(db);
  return {
    // A conversation is taken up by its first turn.
    roots: sql(`
      SELECT key, id, tenant, user, session, turn FROM runs
      WHERE key > :after AND key <= :to AND parent IS NULL AND coalesce(turn, 1) = 1 AND NOT ${IS_KEPT} AND ${IS_CHOSEN}
        AND (:tenant IS NULL OR tenant = :tenant)
      ORDER BY key LIMIT ${PRUNE_ROOTS}`),
    lastKey: sql('SELECT max(key) AS key FROM runs'),
    root: sql(`
      SELECT key, id, tenant, user, session, turn, NOT ${IS_KEPT} AND ${IS_CHOSEN} AS over FROM runs WHERE id = :run`),
    keptInTree: sql(`${TREE} SELECT 1 AS found FROM tree JOIN runs ON runs.key = tree.key WHERE ${IS_KEPT} LIMIT 1`),
    keptInSession: sql(`
      SELECT 1 AS found FROM runs WHERE ${IN_SCOPE} AND (${IS_KEPT} OR (parent IS NULL AND NOT ${IS_CHOSEN})) LIMIT 1`),
    openInSession: sql(`SELECT 1 AS found FROM runs WHERE ${IN_SCOPE} AND NOT ${HAS_ENDED} LIMIT 1`),
    last: sql(`SELECT entries.body FROM runs JOIN entries ON entries.id = ${LAST_ENTRY} WHERE runs.key = :key`),
    tree: sql(`${TREE} SELECT key, id FROM tree`),
    conversation: sql(`${CONVERSATION} SELECT key, id FROM tree`),
    sweepSignals: sql('DELETE FROM signals WHERE until <= ?'),
  } satisfies Record<string, PreparedStatement>;
}

interface Root extends DroppedRun, Scope {
  readonly turn: number | null;
}

interface Limits {
  readonly before: number;
  readonly status: string;
}

/** What a commit has removed. */
export interface RemovedPart extends Removed {
  /** Given: the call goes on behind this run with another commit. */
  readonly after?: number;
}

export class SqlitePrune {
  readonly #sql: ReturnType<typeof statementsOn>;
  readonly #drops: SqliteDrops;
  readonly #waits: SqliteWaits;

  constructor(db: DatabaseSync, drops: SqliteDrops, waits: SqliteWaits) {
    this.#sql = statementsOn(db);
    this.#drops = drops;
    this.#waits = waits;
  }

  prune(request: PruneRequest, now: number): RemovedPart {
    const { olderThanMs, status, tenant = null, dryRun = false, after = 0 } = request;
    const limits = { before: now - olderThanMs, status: JSON.stringify(status) };
    const to = after + PRUNE_WINDOW;
    const roots = this.#sql.roots().all<Root & Record<string, never>>({ ...limits, tenant, after, to });
    const isLast = roots.length < PRUNE_ROOTS && to >= Number(this.#sql.lastKey().get()?.['key'] ?? 0);
    let next = isLast ? undefined : roots.length < PRUNE_ROOTS ? to : roots.at(-1)?.key;
    const told: string[] = [];
    const sessions: Scope[] = [];
    let count = 0;
    for (const root of roots) {
      if (!this.#mayGo(root, limits)) continue;
      const runs = this.#runsOf(root);
      const isLastOfSession = !dryRun && !this.#drops.hasOthers(root, runs);
      // Its last run is what the rest is found by, and goes behind it.
      if (isLastOfSession && !this.#drops.session(root, limits.before))
        return { pruned: { runs: count }, told, sessions, after: root.key - 1 };
      count += runs.length;
      if (!dryRun) told.push(...this.#drops.runs(runs, this.#waits, now, (starts, run) => starts.forgetOver(run, now)));
      if (root.turn !== null) sessions.push(root);
      if (count < PRUNE_RUNS || root === roots.at(-1)) continue;
      next = root.key;
      break;
    }
    if (!dryRun) this.#sql.sweepSignals().run(now);
    return { pruned: { runs: count, ...(next === undefined ? {} : { next }) }, told, sessions };
  }

  #mayGo(root: Root, limits: Limits): boolean {
    const scope = scopeOf(root);
    if (root.turn !== null) return this.#sql.keptInSession().get({ ...scope, ...limits }) === undefined;
    const { before } = limits;
    if (this.#sql.keptInTree().get({ key: root.key, before }) !== undefined) return false;
    const run = successorIn(this.#sql.last().get<{ body: string }>({ key: root.key })?.body);
    const next = run === undefined ? undefined : this.#sql.root().get<Root & { over: number }>({ run, ...limits });
    if (next === undefined) return true;
    // Forks of the run that goes on read this one, too.
    return next.over === 1 && this.#sql.openInSession().get(scope) === undefined && this.#mayGo(next, limits);
  }

  #runsOf(root: Root): readonly DroppedRun[] {
    if (root.turn === null) return this.#sql.tree().all<DroppedRun & Record<string, never>>({ key: root.key });
    return this.#sql.conversation().all<DroppedRun & Record<string, never>>(scopeOf(root));
  }
}

function scopeOf({ tenant, user, session }: Scope): Record<keyof Scope, string> {
  return { tenant, user, session };
}
