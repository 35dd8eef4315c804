/** Rows of runs, and the conditions under which somebody may have them. */
import type { RunStatus } from '../port.ts';
import { runNotFound } from '../rules.ts';
import type { Sql } from './database.ts';

export interface RunRow {
  readonly key: number;
  readonly id: string;
  readonly status: RunStatus;
  readonly agent: string;
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
  readonly parent: string | null;
  readonly head: number;
  readonly signals: number;
  readonly fence: number;
  readonly wake_at: number | null;
  readonly owner: string | null;
  readonly lease_until: number | null;
  readonly work_left_at: number | null;
  readonly turn: number | null;
  readonly waits: number | null;
  readonly starts_at: number | null;
}

export const RUN_COLUMNS: string = `key, id, status, agent, tenant, "user", session, parent, head, signals, fence, wake_at, owner, lease_until,
  work_left_at, turn, waits, starts_at`;

/** As the indexes say it, and of the tenant that the journal serves, where it is one (`{own}`). */
export const HAS_ENDED: string = `status IN ('finished', 'failed', 'cancelled')`;
export const IS_READY: string = `owner IS NULL AND wake_at = 0 AND coalesce(waits, 0) = 0 AND NOT (${HAS_ENDED}){own}`;
export const IS_TIMED: string = `owner IS NULL AND wake_at > 0 AND coalesce(waits, 0) = 0 AND NOT (${HAS_ENDED}){own}`;
export const IS_LEASED: string = `owner IS NOT NULL AND NOT (${HAS_ENDED})`;
export const IS_PARKED: string = `owner IS NULL AND status IN ('waiting', 'paused') AND wake_at IS NOT NULL AND coalesce(waits, 0) = 0{own}`;

const FIND = `SELECT ${RUN_COLUMNS} FROM {runs} WHERE id = $1`;
const HOLD = `${FIND} FOR UPDATE`;
/** In the order of their keys, so that two who hold several do not wait for each other. */
const HOLD_ALL = `SELECT ${RUN_COLUMNS} FROM {runs} WHERE id = ANY($1::text[]) ORDER BY key FOR UPDATE`;

export function findRun(sql: Sql, run: string): Promise<RunRow | undefined> {
  return sql.row<RunRow>(FIND, run);
}

/** Nobody changes the row until the transaction is over. @throws PilotageError `run_not_found`. */
export async function holdRun(sql: Sql, run: string): Promise<RunRow> {
  const row = await sql.row<RunRow>(HOLD, run);
  if (row === undefined) throw runNotFound(run);
  return row;
}

/** Those that there are, by their ids. */
export async function holdRuns(sql: Sql, runs: readonly string[]): Promise<ReadonlyMap<string, RunRow>> {
  const rows = await sql.rows<RunRow>(HOLD_ALL, [...runs]);
  return new Map(rows.map((row) => [row.id, row]));
}
