/** What stands beside runs, as SQL stores keep it, and what is read of it. */
import { deepFreeze, defined, type Json, type JsonObject, PilotageError, type StoreItem, type StreamRow } from '#core';
import type { PassingRow } from './port-passing.ts';
import type { StoredSchedule } from './schedules-port.ts';

export interface ItemRow {
  readonly revision: number;
  readonly namespace: string;
  readonly key: string;
  readonly value: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly expires_at: number | null;
  readonly source: string | null;
}

export interface VectorRow extends ItemRow {
  readonly vector: Uint8Array | null;
}

/** @throws PilotageError `journal_corrupt`. */
export function itemOf(row: ItemRow): StoreItem {
  const { namespace, key, value, created_at: createdAt, updated_at: updatedAt, expires_at, source } = row;
  try {
    return deepFreeze({
      namespace: JSON.parse(`${namespace}]`),
      key,
      value: JSON.parse(value),
      createdAt,
      updatedAt,
      ...defined({
        expiresAt: expires_at ?? undefined,
        source: source === null ? undefined : JSON.parse(source),
      }),
    });
  } catch (cause) {
    const message = `The item ${JSON.stringify(key)} of the long-term store cannot be read. Write it anew, or restore a backup.`;
    throw new PilotageError('journal_corrupt', message, { cause, data: { key } });
  }
}

export function bytesOf(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}

/** The bytes may stand where no number of four bytes may begin. */
export function vectorOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}

export interface ScheduleRow {
  readonly key: number;
  readonly tenant: string;
  readonly id: string;
  readonly agent: string;
  readonly definition: string;
  readonly times: string;
  readonly revision: number;
  readonly changes: number;
  readonly paused: boolean | number;
  readonly next_at: number | null;
  readonly last_run: string | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/** @throws PilotageError `journal_corrupt`. */
export function storedScheduleOf(row: ScheduleRow): StoredSchedule {
  const { tenant, id, agent, times, revision, next_at: nextAt, last_run: lastRun } = row;
  return {
    ...{ tenant, id, agent, times, revision, nextAt },
    definition: definitionOf(row),
    isPaused: Boolean(row.paused),
    ...(lastRun === null ? {} : { lastRun }),
    mark: `${row.key}:${row.changes}`,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function definitionOf({ tenant, id, definition }: ScheduleRow): JsonObject {
  try {
    return deepFreeze(JSON.parse(definition) as JsonObject);
  } catch (cause) {
    const message = `The definition of the schedule ${id} cannot be read. Put it anew under another id, or restore a backup.`;
    throw new PilotageError('journal_corrupt', message, { cause, data: { tenant, schedule: id } });
  }
}

/** A row of a stream with its value as text. */
export interface StreamRowText extends Omit<StreamRow, 'value'> {
  readonly value: string;
}

/** @throws PilotageError `journal_corrupt`. */
export function streamRowOf(run: string, { value: text, ...row }: StreamRowText): StreamRow {
  try {
    return deepFreeze({ ...row, value: JSON.parse(text) as Json });
  } catch (cause) {
    const message = `Row ${row.index} of a stream of run ${run} cannot be read. Restore a backup.`;
    throw new PilotageError('journal_corrupt', message, { cause, data: { run } });
  }
}

/** A row of what passes in a run, with its value as text. */
export interface PassingText extends Omit<PassingRow, 'value'> {
  readonly value: string;
}

/** Without those that cannot be read: nothing hangs on them. */
export function passingRowsOf(rows: readonly PassingText[]): readonly PassingRow[] {
  return rows.flatMap(({ value, ...row }) => {
    try {
      return [{ ...row, value: JSON.parse(value) as Json }];
    } catch {
      return [];
    }
  });
}
