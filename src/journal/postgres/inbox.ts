/** The statements that look at what was said to runs. A message that was taken keeps its id and loses its body. */
import type { Received } from '../port.ts';
import { decodeMessage } from '../stored-runs.ts';
import type { Sql } from './database.ts';

interface MessageRow {
  readonly id: string;
  readonly body: string;
  readonly stored_at: number;
}

const FIND = 'SELECT number FROM {controls} WHERE run = $1::bigint AND id = $2';
const COUNT_CONTROLS = `
  SELECT count(*) AS waiting FROM {controls} WHERE run = $1::bigint AND body IS NOT NULL AND capped`;
const WAITING = `
  SELECT id, body, stored_at FROM {controls} WHERE run = $1::bigint AND body IS NOT NULL ORDER BY number`;

/** Whether the run has ever had the message. */
export async function hasMessage(sql: Sql, key: number, id: string): Promise<boolean> {
  return (await sql.row(FIND, key, id)) !== undefined;
}

export async function waitingControls(sql: Sql, key: number): Promise<number> {
  return (await sql.row<{ readonly waiting: number }>(COUNT_CONTROLS, key))?.waiting ?? 0;
}

/** What waits, in the order in which it came. @throws PilotageError `journal_corrupt`. */
export async function readInbox(sql: Sql, key: number): Promise<Received[]> {
  const rows = await sql.rows<MessageRow>(WAITING, key);
  return rows.map((row) => ({ message: decodeMessage(row), storedAt: row.stored_at }));
}
