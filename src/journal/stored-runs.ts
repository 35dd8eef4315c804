/** Runs as SQL stores keep them, and what is read of them. */
import { decodeEntry, type Entry, type ErrorData, type Message, PilotageError, type Started } from '#core';
import type { RunRecord, RunStatus } from './port.ts';
import { beginningOf, hasEnded } from './rules.ts';

export interface RecordRow {
  readonly id: string;
  readonly tenant: string;
  readonly user: string;
  readonly agent: string;
  readonly session: string;
  readonly status: RunStatus;
  readonly priority: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly head: number;
  readonly wake_at: number | null;
  readonly owner: string | null;
  readonly lease_until: number | null;
  readonly first_body: string | null;
  readonly parent: string | null;
  readonly root: string | null;
  readonly problem: string | null;
  readonly turn: number | null;
  readonly waits: number | null;
}

export interface EntryRow {
  readonly seq: number;
  readonly body: string;
}

/** Says which run an entry belongs to that cannot be read. */
export function decodeRow(run: string, row: EntryRow): Entry {
  try {
    return decodeEntry(row.body, row.seq);
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    throw new PilotageError(error.code, `Run ${run}: ${error.message}`, {
      data: { ...error.data, run, seq: row.seq },
      cause: error,
    });
  }
}

/** @param now when it was read. */
export function storedRecord(row: RecordRow, now: number): RunRecord {
  const { id, tenant, user, session, status, priority, head, owner, lease_until: until } = row;
  const { problem, ...beginning } = beginningIn(row);
  const isWaiting = (row.waits ?? 0) > 0 && !hasEnded(status);
  const wakeAt = hasEnded(status) || (isWaiting && owner === null) ? null : row.wake_at;
  return {
    identity: { tenant, user, session, run: id },
    status,
    ...beginning,
    ...(row.turn === null ? {} : { turn: row.turn }),
    ...(isWaiting ? { waits: true } : {}),
    agent: row.agent,
    priority,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    readAt: now,
    head,
    ...(wakeAt === 0 ? {} : { wakeAt }),
    ...(owner !== null && until !== null && until > now ? { lease: { owner, until } } : {}),
    ...(problem === undefined ? {} : { problem }),
  };
}

type Beginning = Omit<ReturnType<typeof beginningOf>, 'agent'> & Pick<RunRecord, 'problem'>;

/** A run whose beginning cannot be read is listed with its problem, so that it hides no other run. */
function beginningIn(row: RecordRow): Beginning {
  try {
    const { agent: _, ...beginning } = beginningOf(firstOf(row));
    return row.problem === null ? beginning : { ...beginning, problem: errorIn(row.problem) };
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    const { parent, root } = row;
    const tree = { ...(parent === null ? {} : { parent }), ...(root === null ? {} : { root }) };
    return { query: '', ...tree, problem: error.toJSON() };
  }
}

function firstOf({ id, first_body: body }: RecordRow): Started {
  const first = decodeRow(id, { seq: 1, body: body ?? '' });
  if (first.kind === 'started') return first;
  const message = `Run ${id} begins with the entry ${first.kind}. Restore the journal from a backup.`;
  throw new PilotageError('journal_corrupt', message, { data: { run: id } });
}

/** A note for people: what of it cannot be read is left out. */
function errorIn(text: string): ErrorData {
  try {
    return JSON.parse(text) as ErrorData;
  } catch {
    return { code: 'journal_corrupt', message: 'What its last owner has noted cannot be read.' };
  }
}

/** A message of an inbox. @throws PilotageError `journal_corrupt`. */
export function decodeMessage({ id, body }: { readonly id: string; readonly body: string }): Message {
  try {
    return JSON.parse(body, freezeValue) as Message;
  } catch (cause) {
    const message = `The message ${id} in the inbox of the run is not JSON. See what pilotage repair can do.`;
    throw new PilotageError('journal_corrupt', message, { data: { message: id }, cause });
  }
}

function freezeValue(_key: string, value: unknown): unknown {
  return Object.freeze(value);
}
