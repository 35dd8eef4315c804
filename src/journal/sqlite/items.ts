/** Long-term memory in the file: a row for each item, with its vector. What is asked by words, by vectors or by fields is read row by row. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import {
  assertStoreWrite,
  bestHits,
  cosine,
  fitsFilter,
  type Namespace,
  namespaceKey,
  type StoreHit,
  type StoreItem,
  type StoreWrite,
  searchText,
  timeAfter,
  wordScore,
} from '#core';
import type { LongTermStore, RevisedItem, SeenItem, StoreLookup, StoreQuery } from '../port.ts';
import { assertCounts, isAsSeen } from '../rules.ts';
import { bytesOf, type ItemRow, itemOf, type VectorRow, vectorOf } from '../stored-rows.ts';
import { itemsKey } from '../watchers.ts';
import { atMost, type PreparedStatement, prepared } from './statements.ts';
import type { FileWatch, StoreAccess } from './stores.ts';

type Place = Pick<StoreItem, 'namespace' | 'key'>;

const COLUMNS = 'revision, namespace, key, value, created_at, updated_at, expires_at, source';
// What is the runtime's own lies in nothing but itself: the semicolon is the character behind the colon that its first part ends with.
const BEFORE_END = `namespace < :behind AND NOT (:all AND namespace >= '["pilotage:' AND namespace < '["pilotage;')`;
const IS_WITHIN = `namespace >= :within AND ${BEFORE_END}`;
// The plus keeps the index from beginning each page where the namespace begins, and not where the page does.
const IS_BEHIND = `+namespace >= :within AND ${BEFORE_END} AND (namespace, key) > (:afterNamespace, :afterKey)`;
const IS_LIVE = '(expires_at IS NULL OR expires_at > :now)';
/** So many items that have expired are deleted with each write: more than one write can add. */
const SWEPT_AT_ONCE = 1_000;

/** The statements that write; they run inside the transaction of whoever writes. */
export class ItemWriter {
  readonly #createdAt: PreparedStatement;
  readonly #delete: PreparedStatement;
  readonly #insert: PreparedStatement;
  readonly #sweep: PreparedStatement;

  constructor(db: DatabaseSync) {
    const sql = prepared(db);
    this.#createdAt = sql(`SELECT created_at FROM store_items WHERE namespace = :within AND key = :key AND ${IS_LIVE}`);
    this.#delete = sql('DELETE FROM store_items WHERE namespace = ? AND key = ?');
    this.#insert = sql(`
      INSERT INTO store_items (namespace, key, value, created_at, updated_at, expires_at, source)
      VALUES (:within, :key, :value, :createdAt, :now, :expiresAt, :source)`);
    this.#sweep = sql(`
      DELETE FROM store_items WHERE revision IN (
        SELECT revision FROM store_items WHERE expires_at <= ? LIMIT ${SWEPT_AT_ONCE}
      )`);
  }

  write(writes: readonly StoreWrite[], now: number): void {
    for (const write of writes) this.#write(write, now);
    this.#sweep().run(now);
  }

  #write({ namespace, key, value, ttlMs, source }: StoreWrite, now: number): void {
    const within = namespaceKey(namespace);
    const before = this.#createdAt().get<Pick<ItemRow, 'created_at'>>({ within, key, now });
    this.#delete().run(within, key);
    if (value === undefined) return;
    this.#insert().run({
      within,
      key,
      value: JSON.stringify(value),
      createdAt: before?.created_at ?? now,
      now,
      expiresAt: ttlMs === undefined ? null : timeAfter(now, ttlMs),
      source: source === undefined ? null : JSON.stringify(source),
    });
  }
}

export class SqliteItems implements LongTermStore {
  readonly #access: StoreAccess;
  readonly #now: () => number;
  readonly #watch: FileWatch;
  readonly #writer: ItemWriter;
  readonly #find: PreparedStatement;
  readonly #list: PreparedStatement;
  readonly #vectors: PreparedStatement;
  readonly #unindexed: PreparedStatement;
  readonly #setVector: PreparedStatement;

  constructor(db: DatabaseSync, access: StoreAccess, now: () => number, watch: FileWatch) {
    const sql = prepared(db);
    this.#access = access;
    this.#now = now;
    this.#watch = watch;
    this.#writer = new ItemWriter(db);
    this.#find = sql(`SELECT ${COLUMNS} FROM store_items WHERE namespace = :within AND key = :key AND ${IS_LIVE}`);
    this.#list = sql(`
      SELECT ${COLUMNS} FROM store_items
      WHERE ${IS_BEHIND} AND ${IS_LIVE}
      ORDER BY namespace, key ${atMost(':limit')}`);
    this.#vectors = sql(`
      SELECT ${COLUMNS}, vector FROM store_items
      WHERE ${IS_WITHIN} AND ${IS_LIVE} AND vector_index = :index ORDER BY namespace, key`);
    this.#unindexed = sql(`
      SELECT ${COLUMNS} FROM store_items
      WHERE ${IS_WITHIN} AND ${IS_LIVE} AND vector_index IS NOT :index ORDER BY namespace, key ${atMost(':limit')}`);
    this.#setVector = sql('UPDATE store_items SET vector_index = ?, vector = ? WHERE revision = ?');
  }

  async write(writes: readonly StoreWrite[]): Promise<void> {
    for (const write of writes) assertStoreWrite(write);
    await this.#access.write((now) => this.#writer.write(writes, now));
    this.#watch.watchers.wakeItems(writes);
  }

  async writeIf(seen: SeenItem, writes: readonly StoreWrite[]): Promise<boolean> {
    for (const write of writes) assertStoreWrite(write);
    const within = namespaceKey(seen.namespace);
    const isWritten = await this.#access.write((now) => {
      const row = this.#find().get<ItemRow>({ within, key: seen.key, now });
      if (!isAsSeen(row && itemOf(row), seen)) return false;
      this.#writer.write(writes, now);
      return true;
    });
    if (isWritten) this.#watch.watchers.wakeItems(writes);
    return isWritten;
  }

  watch(root: string, wake: () => void): () => void {
    return this.#watch.watching(() => this.#watch.watchers.add(itemsKey(root), wake));
  }

  async get(namespace: Namespace, key: string): Promise<StoreItem | undefined> {
    const within = namespaceKey(namespace);
    const row = await this.#access.read(() => this.#find().get<ItemRow>({ within, key, now: this.#now() }));
    return row && itemOf(row);
  }

  async list(query: StoreQuery, after?: Place): Promise<StoreItem[]> {
    assertCounts({ limit: query.limit });
    const { filter, limit } = query;
    if (filter === undefined) return this.#page(query, after, limit);
    const found: StoreItem[] = [];
    for (let from = after; found.length < limit; ) {
      const page = await this.#page(query, from, PAGE);
      found.push(...page.filter(({ value }) => fitsFilter(value, filter)));
      from = page.at(-1);
      if (page.length < PAGE) break;
    }
    return found.slice(0, limit);
  }

  async search(query: StoreQuery, lookup: StoreLookup): Promise<StoreHit[]> {
    assertCounts({ limit: query.limit });
    const hits = await ('words' in lookup ? this.#byWords(query, lookup) : this.#byVector(query, lookup));
    return bestHits(hits, query.limit);
  }

  async #byWords(query: StoreQuery, { words, fields }: Extract<StoreLookup, { words: unknown }>): Promise<StoreHit[]> {
    const hits: StoreHit[] = [];
    for (let from: Place | undefined; ; ) {
      const page = await this.#page(query, from, PAGE);
      for (const item of page) {
        const score = fitsFilter(item.value, query.filter) ? wordScore(words, searchText(item.value, fields)) : 0;
        if (score > 0) hits.push({ ...item, score });
      }
      from = page.at(-1);
      if (page.length < PAGE) return hits;
    }
  }

  async #byVector(query: StoreQuery, { index, vector }: Extract<StoreLookup, { index: unknown }>): Promise<StoreHit[]> {
    const rows = await this.#access.read(() =>
      this.#vectors().all<VectorRow>({ ...this.#within(query.namespace), index }),
    );
    return rows.flatMap((row): StoreHit[] => {
      const score = row.vector === null ? undefined : cosine(vectorOf(row.vector), vector);
      if (score === undefined) return [];
      const item = itemOf(row);
      return fitsFilter(item.value, query.filter) ? [{ ...item, score }] : [];
    });
  }

  async unindexed(namespace: Namespace, index: string, limit: number): Promise<RevisedItem[]> {
    assertCounts({ limit });
    const rows = await this.#access.read(() =>
      this.#unindexed().all<ItemRow>({ ...this.#within(namespace), index, limit }),
    );
    return rows.map((row) => ({ ...itemOf(row), revision: row.revision }));
  }

  async setVectors(
    index: string,
    vectors: readonly { readonly revision: number; readonly vector: Float32Array }[],
  ): Promise<void> {
    await this.#access.write(() => {
      for (const { revision, vector } of vectors) this.#setVector().run(index, bytesOf(vector), revision);
    });
  }

  async #page({ namespace }: StoreQuery, after: Place | undefined, limit: number): Promise<StoreItem[]> {
    const within = this.#within(namespace);
    // Keys are not empty. A page begins where the one before has ended, and the first where the namespace begins.
    const afterNamespace = after === undefined ? within.within : namespaceKey(after.namespace);
    const place = { afterNamespace, afterKey: after?.key ?? '', limit };
    const rows = await this.#access.read(() => this.#list().all<ItemRow>({ ...within, ...place }));
    return rows.map(itemOf);
  }

  /**
   * Below a namespace are the texts that go on with a comma, and the hyphen is the character behind the comma; below the root are all, which begin with a
   * bracket, and the backslash is the character behind that.
   */
  #within(namespace: Namespace): Record<'all' | 'within' | 'behind' | 'now', SQLInputValue> {
    const within = namespaceKey(namespace);
    const isRoot = namespace.length === 0;
    return { all: isRoot ? 1 : 0, within, behind: isRoot ? '\\' : `${within}-`, now: this.#now() };
  }
}

/** How many rows are read at once where more may have to be looked at than are asked for. */
const PAGE = 500;
