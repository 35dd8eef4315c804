/** Snapshots of runs: one row for the newest of each, and one for each block. */
import type { DatabaseSync } from 'node:sqlite';
import type { NewSnapshot, SnapshotStore, StoredSnapshot } from '../port.ts';
import { runNotFound } from '../rules.ts';
import { type PreparedStatement, prepared } from './statements.ts';
import type { StoreAccess } from './stores.ts';

interface RunRow {
  readonly key: number;
  readonly fence: number;
}

interface SnapshotRow {
  readonly version: number;
  readonly head: number;
}

export class SqliteSnapshots implements SnapshotStore {
  readonly #access: StoreAccess;
  readonly #run: PreparedStatement;
  readonly #newest: PreparedStatement;
  readonly #body: PreparedStatement;
  readonly #blocks: PreparedStatement;
  readonly #count: PreparedStatement;
  readonly #set: PreparedStatement;
  readonly #dropFrom: PreparedStatement;
  readonly #add: PreparedStatement;
  readonly #forget: PreparedStatement;

  constructor(db: DatabaseSync, access: StoreAccess) {
    const sql = prepared(db);
    this.#access = access;
    this.#run = sql('SELECT key, fence FROM runs WHERE id = ?');
    this.#newest = sql('SELECT version, head FROM snapshots WHERE run = ?');
    this.#body = sql('SELECT head, body FROM snapshots WHERE run = ? AND version = ?');
    this.#blocks = sql('SELECT body FROM snapshot_blocks WHERE run = ? ORDER BY number');
    this.#count = sql('SELECT count(*) AS blocks FROM snapshot_blocks WHERE run = ? AND number < ?');
    this.#set = sql(`
      INSERT INTO snapshots (run, version, head, body) VALUES (:key, :version, :head, :body)
      ON CONFLICT (run) DO UPDATE SET version = excluded.version, head = excluded.head, body = excluded.body`);
    this.#dropFrom = sql('DELETE FROM snapshot_blocks WHERE run = ? AND number >= ?');
    this.#forget = sql('DELETE FROM snapshots WHERE run = ?');
    this.#add = sql('INSERT INTO snapshot_blocks (run, number, body) VALUES (?, ?, ?)');
  }

  async newest(run: string, version: number): Promise<StoredSnapshot | undefined> {
    return this.#access.read(() => {
      const { key } = this.#find(run);
      const stored = this.#body().get(key, version) as Omit<StoredSnapshot, 'blocks'> | undefined;
      if (stored === undefined) return undefined;
      const blocks = this.#blocks().all<{ readonly body: Uint8Array }>(key);
      return { head: stored.head, body: stored.body, blocks: blocks.map(({ body }) => body) };
    });
  }

  async keep({ run, fence, version, head, body, from, blocks }: NewSnapshot): Promise<boolean> {
    return this.#access.write(() => {
      const { key, fence: present } = this.#find(run);
      if (present !== fence) return false;
      const stored = this.#newest().get(key) as SnapshotRow | undefined;
      const isSame = stored?.version === version;
      if (isSame && stored.head >= head) return false;
      const there = isSame ? Number(this.#count().get(key, from)?.['blocks']) : 0;
      if (there < from) return false;
      this.#dropFrom().run(key, from);
      for (const [index, block] of blocks.entries()) this.#add().run(key, from + index, block);
      this.#set().run({ key, version, head, body });
      return true;
    });
  }

  async forget(run: string): Promise<void> {
    await this.#access.write(() => void this.#forget().run(this.#find(run).key));
  }

  #find(run: string): RunRow {
    const row = this.#run().get(run) as RunRow | undefined;
    if (row === undefined) throw runNotFound(run);
    return row;
  }
}
