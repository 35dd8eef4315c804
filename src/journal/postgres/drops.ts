/**
 * Removes runs with all that hangs on them, and what is left of a session without runs. Called inside a transaction that has the rows of the
 * runs, and the lock of each signal that they have not taken.
 */
import type { Scope } from '#core';
import type { StoredMessage } from '../port.ts';
import type { DroppedRun } from '../prune-port.ts';
import { EVENT_MESSAGE, eventsIn } from '../waiting.ts';
import { dropArtifacts } from './artifacts.ts';
import { type Lock, lockName, type Sql } from './database.ts';
import { dropPassing } from './passing.ts';
import { dropLabels } from './starts.ts';
import { dropStreams } from './streams.ts';
import type { PostgresWaits } from './waits.ts';

/** The same with its tenant, whose signals it may have. */
export interface DroppedOf extends DroppedRun {
  readonly tenant: string;
}

type Untaken = StoredMessage & Pick<DroppedOf, 'key' | 'tenant'>;

const EVENTS = `
  SELECT runs.key, runs.tenant, controls.id, controls.body AS text
  FROM {controls} AS controls JOIN {runs} AS runs ON runs.key = controls.run
  WHERE controls.run = ANY($1::bigint[]) AND controls.id >= '${EVENT_MESSAGE}' AND controls.id < 'event;' AND controls.body IS NOT NULL
  ORDER BY controls.run, controls.number`;
const DROP_WAITS = 'DELETE FROM {open_waits} WHERE run = ANY($1::bigint[])';
const DROP_RUNS = `
  WITH dropped_controls AS (DELETE FROM {controls} WHERE run = ANY($1::bigint[])),
  dropped_entries AS (DELETE FROM {entries} WHERE run = ANY($1::bigint[])),
  dropped_snapshots AS (DELETE FROM {snapshots} WHERE run = ANY($1::bigint[])),
  dropped_blocks AS (DELETE FROM {snapshot_blocks} WHERE run = ANY($1::bigint[]))
  DELETE FROM {runs} WHERE key = ANY($1::bigint[])`;
const DROP_FACTS = 'DELETE FROM {session_facts} WHERE tenant = $1 AND "user" = $2 AND session = $3';

/** The locks of the signals that these runs have not taken: whoever removes them must have those. */
export async function signalLocksOf(sql: Sql, keys: readonly number[]): Promise<readonly Lock[]> {
  return locksOf(await sql.rows<Untaken>(EVENTS, keys));
}

/**
 * What they have not taken goes to whoever else waits for it.
 * @param locked the locks that the transaction has.
 * @returns the runs that have got a signal. `undefined`: a signal has come since that is not locked, and nothing is removed.
 */
export async function dropRuns(
  sql: Sql,
  runs: readonly DroppedOf[],
  { waits, now, locked }: { readonly waits: PostgresWaits; readonly now: number; readonly locked: readonly Lock[] },
): Promise<readonly string[] | undefined> {
  const keys = runs.map(({ key }) => key);
  const untaken = await sql.rows<Untaken>(EVENTS, keys);
  const names = new Set(locked.map(lockName));
  if (locksOf(untaken).some((lock) => !names.has(lockName(lock)))) return undefined;
  // First, so that none of them gets what another one gives back.
  await sql.run(DROP_WAITS, keys);
  const told: string[] = [];
  for (const events of Map.groupBy(untaken, ({ tenant }) => tenant).values()) {
    // All are of one tenant: they go back as those of one run.
    const [{ key }] = events as [Untaken];
    told.push(...(await waits.giveBack(sql, key, eventsIn(events), now)));
  }
  await dropLabels(sql, keys);
  await dropStreams(sql, keys);
  await dropPassing(sql, keys);
  await sql.run(DROP_RUNS, keys);
  return told;
}

/** What a session has beside its runs. @param before given: younger artifacts stay, which may be for a run that is not stored yet. */
export async function dropSession(sql: Sql, scope: Scope, before: number | null = null): Promise<void> {
  const { tenant, user, session } = scope;
  await sql.run(DROP_FACTS, tenant, user, session);
  await dropArtifacts(sql, scope, before);
}

function locksOf(untaken: readonly Untaken[]): readonly Lock[] {
  return untaken.flatMap((row) => eventsIn([row]).map(({ key }): Lock => ['signal', row.tenant, key]));
}
