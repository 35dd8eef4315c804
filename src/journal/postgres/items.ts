/** Long-term memory: a row for each item, with its vector. What is asked by words, by vectors or by fields is read page by page. */
import {
  assertStoreWrite,
  bestHits,
  comparePlaces,
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
import { type Database, NOW_1, type Sql, type SqlValue } from './database.ts';
import type { PostgresNews } from './news.ts';
import { piecesOf } from './pieces.ts';
import { MOST_DIMENSIONS } from './vectors.ts';

type VectorLookup = Extract<StoreLookup, { readonly vector: Float32Array }>;
type LikenedRow = ItemRow & { readonly score: string | null };

interface Scored {
  readonly item: StoreItem;
  /** Absent: it is not found. */
  readonly score: number | undefined;
}

type Place = Pick<StoreItem, 'namespace' | 'key'>;

const COLUMNS = 'revision, namespace, key, value, created_at, updated_at, expires_at, source';
const IS_LIVE = `(expires_at IS NULL OR expires_at > ${NOW_1})`;
// What is the runtime's own lies in nothing but itself: the semicolon is the character behind the colon that its first part ends with.
const IS_WITHIN = `namespace >= $2 AND namespace < $3
  AND NOT ($4::boolean AND namespace >= '["pilotage:' AND namespace < '["pilotage;') AND ${IS_LIVE}`;
/** So many items that have expired are deleted with each write: more than one write can add. */
const SWEPT_AT_ONCE = 1_000;
/** How many rows are read at once where more may have to be looked at than are asked for. */
const PAGE = 500;

const FIND = `SELECT ${COLUMNS} FROM {store_items} WHERE namespace = $2 AND key = $3 AND ${IS_LIVE}`;
const LIST = `
  SELECT ${COLUMNS} FROM {store_items} WHERE ${IS_WITHIN} AND (namespace, key) > ($5, $6)
  ORDER BY namespace, key LIMIT $7::bigint`;
const VECTORS = `
  SELECT ${COLUMNS}, vector FROM {store_items} WHERE ${IS_WITHIN} AND (namespace, key) > ($5, $6) AND vector_index = $8
  ORDER BY namespace, key LIMIT $7::bigint`;
/** What is wanted as a vector of pgvector, and how much an item is like it: nothing for a vector of another length, or without a direction. */
const LIKE = `{likeness}(embedding, (SELECT {vector_of}($9::bytea))) AS score`;
const IS_LIKENED = `${IS_WITHIN} AND (namespace, key) > ($5, $6) AND vector_index = $8 AND octet_length(vector) = octet_length($9::bytea)`;
const LIKENED = `SELECT ${COLUMNS}, ${LIKE} FROM {store_items} WHERE ${IS_LIKENED} ORDER BY namespace, key LIMIT $7::bigint`;
const MOST_LIKE = `
  SELECT ${COLUMNS}, ${LIKE} FROM {store_items} WHERE ${IS_LIKENED} ORDER BY score DESC NULLS LAST, namespace, key LIMIT $7::bigint`;
const UNINDEXED = `
  SELECT ${COLUMNS} FROM {store_items} WHERE ${IS_WITHIN} AND vector_index IS DISTINCT FROM $6
  ORDER BY namespace, key LIMIT $5::bigint`;
// An item that is written meanwhile has another revision, and no vector of what it was before.
const SET_VECTORS = `
  UPDATE {store_items} AS item SET vector_index = $1, vector = substring($2::bytea FROM given.first::int FOR given.size::int)
  FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS given (first, size, revision)
  WHERE item.revision = given.revision`;
/**
 * Takes away what has no value, or puts what has one in the place of what is there or anew, in the order of the keys: whoever writes one
 * of them at the same time waits until the other has committed, and two never wait for each other. What is swept is left alone while
 * somebody else has hold of it. The parts of the statement see the same rows, of which each part changes others.
 */
const WRITE = `
  WITH given AS (
    SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[]) AS given (namespace, key, value, expires_at, source)
  ),
  held AS MATERIALIZED (
    SELECT item.revision FROM {store_items} AS item JOIN given ON item.namespace = given.namespace AND item.key = given.key
    WHERE given.value IS NULL ORDER BY item.namespace, item.key FOR UPDATE OF item
  ),
  gone AS (
    DELETE FROM {store_items} AS item USING given
    WHERE (SELECT count(*) FROM held) >= 0 AND given.value IS NULL AND item.namespace = given.namespace AND item.key = given.key
  ),
  swept AS (
    DELETE FROM {store_items} WHERE revision = ANY(ARRAY(
      SELECT revision FROM {store_items} AS item WHERE expires_at <= $1::bigint
        AND NOT EXISTS (SELECT FROM given WHERE given.namespace = item.namespace AND given.key = item.key)
      LIMIT $7::bigint FOR UPDATE SKIP LOCKED
    ))
  )
  INSERT INTO {store_items} AS item (namespace, key, value, created_at, updated_at, expires_at, source)
  SELECT namespace, key, value, $1::bigint, $1::bigint, expires_at, source FROM given WHERE value IS NOT NULL
  ORDER BY namespace COLLATE "C", key COLLATE "C"
  ON CONFLICT (namespace, key) DO UPDATE SET revision = DEFAULT, value = excluded.value, updated_at = excluded.updated_at,
    created_at = CASE WHEN item.expires_at <= $1::bigint THEN excluded.created_at ELSE item.created_at END,
    expires_at = excluded.expires_at, source = excluded.source, vector_index = NULL, vector = NULL`;

/** The writes of an append, in its transaction, in order. They were found fit to be written before. */
export async function writeItems(sql: Sql, writes: readonly StoreWrite[], now: number): Promise<void> {
  const parts = roundsOf(writes).flatMap(partsOf);
  for (const part of parts) {
    const swept = part === parts.at(-1) ? SWEPT_AT_ONCE : 0;
    await sql.run(WRITE, now, ...columnsOf(part, now), swept);
  }
}

/** Parts of the writes in which no key stands twice: nearly always one. */
function roundsOf(writes: readonly StoreWrite[]): StoreWrite[][] {
  const rounds: StoreWrite[][] = [];
  let keys = new Set<string>();
  for (const write of writes) {
    const place = JSON.stringify([write.namespace, write.key]);
    const round = keys.has(place) ? undefined : rounds.at(-1);
    if (round === undefined) {
      rounds.push([write]);
      keys = new Set([place]);
    } else {
      round.push(write);
      keys.add(place);
    }
  }
  return rounds;
}

/** The writes in the order of their keys, those that delete apart from those that put. */
function partsOf(round: readonly StoreWrite[]): StoreWrite[][] {
  const parts: StoreWrite[][] = [];
  for (const write of round.toSorted(comparePlaces)) {
    const part = parts.at(-1);
    const isAlike = part !== undefined && (part[0]?.value === undefined) === (write.value === undefined);
    if (isAlike) part.push(write);
    else parts.push([write]);
  }
  return parts;
}

function columnsOf(writes: readonly StoreWrite[], now: number): readonly SqlValue[] {
  return [
    writes.map(({ namespace }) => namespaceKey(namespace)),
    writes.map(({ key }) => key),
    writes.map(({ value }) => (value === undefined ? null : JSON.stringify(value))),
    writes.map(({ ttlMs }) => (ttlMs === undefined ? null : timeAfter(now, ttlMs))),
    writes.map(({ source }) => (source === undefined ? null : JSON.stringify(source))),
  ];
}

export class PostgresItems implements LongTermStore {
  readonly #database: Database;
  readonly #news: PostgresNews;

  /** Whether the database compares vectors. */
  readonly #compares: boolean;

  constructor(database: Database, news: PostgresNews, compares: boolean) {
    this.#database = database;
    this.#news = news;
    this.#compares = compares;
  }

  async write(writes: readonly StoreWrite[]): Promise<void> {
    for (const write of writes) assertStoreWrite(write);
    if (writes.length === 0) return;
    await this.#database.write([], (sql, { now }) => writeItems(sql, writes, now));
    this.#news.tellItems(writes);
  }

  async writeIf(seen: SeenItem, writes: readonly StoreWrite[]): Promise<boolean> {
    for (const write of writes) assertStoreWrite(write);
    const within = namespaceKey(seen.namespace);
    // An item that is not there cannot be held: whoever asks for the same one waits at the lock.
    const isWritten = await this.#database.write([['item', within, seen.key]], async (sql, { now }) => {
      const row = await sql.row<ItemRow>(`${FIND} FOR UPDATE`, this.#database.given, within, seen.key);
      if (!isAsSeen(row && itemOf(row), seen)) return false;
      await writeItems(sql, writes, now);
      return true;
    });
    if (isWritten) this.#news.tellItems(writes);
    return isWritten;
  }

  watch(root: string, wake: () => void): () => void {
    return this.#news.watchItems(root, wake);
  }

  async get(namespace: Namespace, key: string): Promise<StoreItem | undefined> {
    const { given } = this.#database;
    const row = await this.#database.read((sql) => sql.row<ItemRow>(FIND, given, namespaceKey(namespace), key));
    return row && itemOf(row);
  }

  async list(query: StoreQuery, after?: Place): Promise<StoreItem[]> {
    assertCounts({ limit: query.limit });
    const { filter, limit } = query;
    if (filter === undefined) return (await this.#page<ItemRow>(LIST, query, after, limit)).map(itemOf);
    const found: StoreItem[] = [];
    for (let from = after; found.length < limit; ) {
      const page = (await this.#page<ItemRow>(LIST, query, from, PAGE)).map(itemOf);
      found.push(...page.filter(({ value }) => fitsFilter(value, filter)));
      from = page.at(-1);
      if (page.length < PAGE) break;
    }
    return found.slice(0, limit);
  }

  async search(query: StoreQuery, lookup: StoreLookup): Promise<StoreHit[]> {
    assertCounts({ limit: query.limit });
    // The best of all are asked for, unless what fits the filter is only known here.
    const compared = this.#comparedBy(lookup);
    if (query.filter === undefined && compared !== undefined) {
      return (await this.#likened(MOST_LIKE, query, compared, undefined, query.limit)).flatMap(({ item, score }) =>
        score === undefined ? [] : [{ ...item, score }],
      );
    }
    let hits: StoreHit[] = [];
    for (let from: Place | undefined; ; ) {
      const page = await this.#scored(query, lookup, from);
      const better = page.flatMap(({ item, score }): StoreHit[] =>
        score !== undefined && fitsFilter(item.value, query.filter) ? [{ ...item, score }] : [],
      );
      hits = bestHits([...hits, ...better], query.limit);
      from = page.at(-1)?.item;
      if (page.length < PAGE) return hits;
    }
  }

  /** A page of items with how well each fits, if it does. */
  async #scored(query: StoreQuery, lookup: StoreLookup, after: Place | undefined): Promise<readonly Scored[]> {
    if ('words' in lookup) {
      const { words, fields } = lookup;
      const items = (await this.#page<ItemRow>(LIST, query, after, PAGE)).map(itemOf);
      return items.map((item) => ({ item, score: wordScore(words, searchText(item.value, fields)) || undefined }));
    }
    const compared = this.#comparedBy(lookup);
    if (compared !== undefined) return this.#likened(LIKENED, query, compared, after, PAGE);
    const rows = await this.#page<VectorRow>(VECTORS, query, after, PAGE, lookup.index);
    return rows.map((row) => ({
      item: itemOf(row),
      score: row.vector === null ? undefined : cosine(vectorOf(row.vector), lookup.vector),
    }));
  }

  /** What the database compares. */
  #comparedBy(lookup: StoreLookup): VectorLookup | undefined {
    return this.#compares && 'vector' in lookup && lookup.vector.length <= MOST_DIMENSIONS ? lookup : undefined;
  }

  async #likened(
    statement: string,
    query: StoreQuery,
    { index, vector }: VectorLookup,
    after: Place | undefined,
    limit: number,
  ): Promise<readonly Scored[]> {
    const rows = await this.#page<LikenedRow>(statement, query, after, limit, index, bytesOf(vector));
    return rows.map((row) => ({ item: itemOf(row), score: row.score === null ? undefined : Number(row.score) }));
  }

  async unindexed(namespace: Namespace, index: string, limit: number): Promise<RevisedItem[]> {
    assertCounts({ limit });
    const values = [...this.#within(namespace), limit, index] as const;
    const rows = await this.#database.read((sql) => sql.rows<ItemRow>(UNINDEXED, ...values));
    return rows.map((row) => ({ ...itemOf(row), revision: row.revision }));
  }

  async setVectors(
    index: string,
    vectors: readonly { readonly revision: number; readonly vector: Float32Array }[],
  ): Promise<void> {
    const byRevision = new Map(vectors.map(({ revision, vector }) => [revision, bytesOf(vector)]));
    const revisions = [...byRevision.keys()].sort((one, other) => one - other);
    if (revisions.length === 0) return;
    const pieces = piecesOf(revisions.map((revision) => byRevision.get(revision) as Uint8Array));
    await this.#database.write([], (sql) => sql.run(SET_VECTORS, index, ...pieces, revisions));
  }

  #page<Row extends ItemRow>(
    statement: string,
    { namespace }: StoreQuery,
    after: Place | undefined,
    limit: number,
    ...more: readonly SqlValue[]
  ): Promise<Row[]> {
    const place = [after === undefined ? '' : namespaceKey(after.namespace), after?.key ?? '', limit];
    return this.#database.read((sql) => sql.rows<Row>(statement, ...this.#within(namespace), ...place, ...more));
  }

  /**
   * The first four parameters of what looks at a namespace and below. Below it are the texts that go on with a comma, and the hyphen is the
   * character behind the comma; below the root are all, which begin with a bracket, and the backslash is the character behind that.
   */
  #within(namespace: Namespace): readonly SqlValue[] {
    const within = namespaceKey(namespace);
    const isRoot = namespace.length === 0;
    return [this.#database.given, within, isRoot ? '\\' : `${within}-`, isRoot];
  }
}
