/**
 * The statements on what runs are found by, and on starts under keys. All are called inside a transaction; those on a key in one that has
 * taken hold of it.
 */
import type { Started, StartKey } from '#core';
import { indexedLabels, type KeyDecision, type KeyRow, rowsThatCount } from '../start-rules.ts';
import { decodeRow } from '../stored-runs.ts';
import type { Sql, SqlValue } from './database.ts';

/** How many rows of keys that are of no use any more are deleted with a start under any key. */
const SWEPT_AT_ONCE = 20;

// What stays is not touched, and what goes does not come again: a statement cannot do two things to one row.
const INDEX = `
  WITH given AS (SELECT name, value FROM unnest($2::text[], $3::text[]) AS given (name, value)),
  gone AS (
    DELETE FROM {run_labels} AS own WHERE run = $1
      AND NOT EXISTS (SELECT FROM given WHERE given.name = own.name AND given.value = own.value)
  )
  INSERT INTO {run_labels} (name, value, run) SELECT name, value, $1 FROM given ON CONFLICT DO NOTHING`;
const DROP_LABELS = 'DELETE FROM {run_labels} WHERE run = ANY($1::bigint[])';
const ROWS = `
  SELECT at, run FROM {start_keys} WHERE tenant = $1 AND kind = $2 AND name = $3
  ORDER BY at DESC, number DESC LIMIT $4::bigint`;
// Rows of other keys that somebody else has hold of are left to the next start.
const ADD = `
  WITH older AS (
    DELETE FROM {start_keys} WHERE tenant = $1 AND kind = $2 AND name = $3 AND at <= $4 AND until IS NULL AND $8::boolean
  ),
  swept AS (
    DELETE FROM {start_keys} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM {start_keys} WHERE until < $9::bigint LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED
    ))
  )
  INSERT INTO {start_keys} (tenant, kind, name, at, number, run, until) VALUES ($1, $2, $3, $4, $5, $6, $7)`;
const FORGET = 'DELETE FROM {start_keys} WHERE run = ANY($1::text[])';
const FORGET_OVER = `${FORGET} AND (until IS NULL OR until < $2::bigint)`;
const FIRST = `
  SELECT runs.id AS run, entries.body FROM {entries} AS entries JOIN {runs} AS runs ON runs.key = entries.run
  WHERE entries.run = $1 AND entries.seq = 1`;
const REPLACE = `
  WITH first AS (UPDATE {entries} SET body = $2, at = $3 WHERE run = $1 AND seq = 1)
  UPDATE {runs} SET agent = $4, priority = $5, starts_at = nullif($6::bigint, 0), wake_at = $6::bigint, updated_at = $3
  WHERE key = $1`;

/** What is said of few runs. When it begins stands in its row. */
export async function began(sql: Sql, key: number, first: Started): Promise<void> {
  if (first.labels !== undefined || first.schedule !== undefined) await reindex(sql, key, first);
}

/** The first entry is another one now. */
export async function reindex(sql: Sql, key: number, first: Started): Promise<void> {
  const labels = indexedLabels(first);
  const names = labels.map(([name]) => name);
  const values = labels.map(([, value]) => value);
  await sql.run(INDEX, key, names, values);
}

/** The starts under a key that decide, the newest first. */
export function keyRows(sql: Sql, tenant: string, key: StartKey): Promise<readonly KeyRow[]> {
  return sql.rows<KeyRow>(ROWS, ...place(tenant, key), rowsThatCount(key));
}

/** @param number orders rows of one time. */
export async function addStartKey(
  sql: Sql,
  { tenant, run, number }: { readonly tenant: string; readonly run: string; readonly number: number },
  key: StartKey,
  { at, until }: Extract<KeyDecision, { do: 'start' }>,
  now: number,
): Promise<void> {
  const dropsOlder = key.kind === 'singleton' || key.kind === 'debounce';
  await sql.run(ADD, ...place(tenant, key), at, number, run, until, dropsOlder, now);
}

/** The runs, by their ids, are gone, or what they were started with. */
export async function forgetStarts(sql: Sql, runs: readonly string[]): Promise<void> {
  await sql.run(FORGET, runs);
}

/** The runs are gone, and count under their keys as long as they would have. */
export async function forgetOver(sql: Sql, runs: readonly string[], now: number): Promise<void> {
  await sql.run(FORGET_OVER, runs, now);
}

export async function dropLabels(sql: Sql, keys: readonly number[]): Promise<void> {
  await sql.run(DROP_LABELS, keys);
}

/** When the first entry says that it was written; 0 when there is none. @throws PilotageError `journal_corrupt`. */
export async function firstAt(sql: Sql, key: number): Promise<number> {
  const row = await sql.row<{ readonly run: string; readonly body: string }>(FIRST, key);
  return row === undefined ? 0 : decodeRow(row.run, { seq: 1, body: row.body }).at;
}

export async function replaceStart(
  sql: Sql,
  key: number,
  { first, body, priority }: { readonly first: Started; readonly body: string; readonly priority: number },
  wakeAt: number,
  now: number,
): Promise<void> {
  await sql.run(REPLACE, key, body, now, first.agent, priority, wakeAt);
  await reindex(sql, key, first);
}

function place(tenant: string, { kind, key }: StartKey): readonly [SqlValue, SqlValue, SqlValue] {
  return [tenant, kind, key];
}
