/** Streams of runs: a row for each, which counts its rows, and these. */
import type { DatabaseSync } from 'node:sqlite';
import type { StreamRow } from '#core';
import type { StreamAppend, StreamRecord, StreamStore } from '../port-streams.ts';
import { assertFence, assertStreamRow, runNotFound } from '../rules.ts';
import { type StreamRowText, streamRowOf } from '../stored-rows.ts';
import { idAt } from './schema.ts';
import { atMost, type PreparedStatement, prepared } from './statements.ts';
import type { StoreAccess } from './stores.ts';

/** In SQL, for the key of a run. */
export const DROP_STREAM_ROWS = `
  DELETE FROM stream_rows WHERE id IN (
    SELECT stream_rows.id FROM streams CROSS JOIN stream_rows
    ON stream_rows.id BETWEEN (streams.key << 32) + 1 AND (streams.key << 32) + 4294967295
    WHERE streams.run = ?
  )`;
export const DROP_STREAMS = 'DELETE FROM streams WHERE run = ?';

interface Head {
  readonly key: number;
  readonly rows: number;
  readonly closed: number;
}

export class SqliteStreams implements StreamStore {
  readonly #access: StoreAccess;
  readonly #wake: (run: string) => void;
  readonly #run: PreparedStatement;
  readonly #find: PreparedStatement;
  readonly #begin: PreparedStatement;
  readonly #insert: PreparedStatement;
  readonly #set: PreparedStatement;
  readonly #rows: PreparedStatement;
  readonly #list: PreparedStatement;

  constructor(db: DatabaseSync, access: StoreAccess, wake: (run: string) => void) {
    const sql = prepared(db);
    this.#access = access;
    this.#wake = wake;
    this.#run = sql('SELECT key, fence FROM runs WHERE id = ?');
    this.#find = sql('SELECT key, rows, closed FROM streams WHERE run = ? AND name = ?');
    this.#begin = sql('INSERT INTO streams (run, name, rows, closed) VALUES (?, ?, 0, 0)');
    this.#insert = sql(`
      INSERT INTO stream_rows (id, at, step, call, attempt, value)
      VALUES (${idAt(':key', ':index')}, :at, :step, :call, :attempt, :value)`);
    this.#set = sql('UPDATE streams SET rows = :rows, closed = :closed WHERE key = :key');
    this.#rows = sql(`
      SELECT id & 4294967295 AS "index", at, step, call, attempt, value FROM stream_rows
      WHERE id BETWEEN ${idAt(':key', ':from')} AND (:key << 32) + 4294967295 ORDER BY id ${atMost(':limit')}`);
    this.#list = sql('SELECT name, rows, closed FROM streams WHERE run = ? ORDER BY name');
  }

  async append({ run, fence, rows, step, call, attempt }: StreamAppend): Promise<void> {
    for (const row of rows) assertStreamRow(row);
    const texts = rows.map((row) => ('value' in row ? JSON.stringify(row.value) : undefined));
    await this.#access.write((at) => {
      const { key: of, fence: present } = this.#runOf(run);
      assertFence({ run, fence }, present);
      const heads = new Map<string, Head>();
      for (const [number, { name }] of rows.entries()) {
        const { key, rows: before } = heads.get(name) ?? this.#headOf(of, name);
        const value = texts[number];
        const index = value === undefined ? before : before + 1;
        if (value !== undefined) this.#insert().run({ key, index, at, step, call, attempt, value });
        heads.set(name, { key, rows: index, closed: value === undefined ? 1 : 0 });
      }
      for (const head of heads.values()) this.#set().run({ ...head });
    });
    this.#wake(run);
  }

  async read(
    run: string,
    name: string,
    from: number,
    limit: number,
  ): Promise<{ rows: readonly StreamRow[]; closed: boolean }> {
    return this.#access.read(() => {
      const head = this.#find().get<Head>(this.#runOf(run).key, name);
      if (head === undefined) return { rows: [], closed: false };
      const first = Math.min(Math.max(from, 1), MOST_ROWS);
      const rows = this.#rows().all<StreamRowText>({ key: head.key, from: first, limit });
      return { rows: rows.map((row) => streamRowOf(run, row)), closed: head.closed === 1 };
    });
  }

  async list(run: string): Promise<readonly StreamRecord[]> {
    return this.#access.read(() => {
      const heads = this.#list().all<Head & { readonly name: string }>(this.#runOf(run).key);
      return heads.map(({ name, rows, closed }) => ({ name, rows, closed: closed === 1 }));
    });
  }

  #headOf(run: number, name: string): Head {
    const head = this.#find().get<Head>(run, name);
    if (head !== undefined) return head;
    return { key: Number(this.#begin().run(run, name).lastInsertRowid), rows: 0, closed: 0 };
  }

  #runOf(run: string): { readonly key: number; readonly fence: number } {
    const row = this.#run().get<{ readonly key: number; readonly fence: number }>(run);
    if (row === undefined) throw runNotFound(run);
    return row;
  }
}

const MOST_ROWS = 4_294_967_295;
