/** Long-term memory in the memory of this process. */
import {
  assertStoreWrite,
  bestHits,
  compareTexts,
  cosine,
  deepFreeze,
  defined,
  fitsFilter,
  liesIn,
  type Namespace,
  namespaceKey,
  type StoreHit,
  type StoreItem,
  type StoreWrite,
  searchText,
  timeAfter,
  wordScore,
} from '#core';
import type { LongTermStore, RevisedItem, SeenItem, StoreLookup, StoreQuery } from './port.ts';
import { assertCounts, isAsSeen } from './rules.ts';
import { SortedTexts } from './sorted-texts.ts';
import { itemsKey, type Watchers } from './watchers.ts';

interface Kept {
  readonly item: StoreItem;
  readonly revision: number;
  indexed: { readonly index: string; readonly vector: Float32Array } | undefined;
}

type Place = Pick<StoreItem, 'namespace' | 'key'>;

interface Access {
  readonly assertOpen: () => void;
  readonly now: () => number;
  readonly watchers: Watchers;
}

export class MemoryItems implements LongTermStore {
  readonly #access: Access;
  /** By the text of the namespace, then by the key. */
  readonly #namespaces = new SortedTexts<SortedTexts<Kept>>();
  #revisions = 0;
  /** When the next item expires. */
  #nextExpiry = Number.POSITIVE_INFINITY;

  constructor(access: Access) {
    this.#access = access;
  }

  async write(writes: readonly StoreWrite[]): Promise<void> {
    this.#access.assertOpen();
    for (const write of writes) assertStoreWrite(write);
    this.apply(writes);
    this.#access.watchers.wakeItems(writes);
  }

  async writeIf(seen: SeenItem, writes: readonly StoreWrite[]): Promise<boolean> {
    this.#access.assertOpen();
    for (const write of writes) assertStoreWrite(write);
    const kept = this.#namespaces.get(namespaceKey(seen.namespace))?.get(seen.key);
    const there = kept === undefined || isOver(kept, this.#access.now()) ? undefined : kept.item;
    if (!isAsSeen(there, seen)) return false;
    this.apply(writes);
    this.#access.watchers.wakeItems(writes);
    return true;
  }

  watch(root: string, wake: () => void): () => void {
    this.#access.assertOpen();
    return this.#access.watchers.add(itemsKey(root), wake);
  }

  /** What was found fit to be written before. */
  apply(writes: readonly StoreWrite[]): void {
    const now = Math.floor(this.#access.now());
    this.#sweep(now);
    for (const write of writes) this.#apply(write, now);
  }

  #apply({ namespace, key, value, ttlMs, source }: StoreWrite, now: number): void {
    const within = namespaceKey(namespace);
    const items = this.#namespaces.get(within) ?? new SortedTexts<Kept>();
    const before = items.get(key);
    if (value === undefined) items.delete(key);
    else {
      const createdAt = before === undefined || isOver(before, now) ? now : before.item.createdAt;
      const expiresAt = ttlMs === undefined ? undefined : timeAfter(now, ttlMs);
      const item = {
        namespace: [...namespace],
        key,
        value,
        createdAt,
        updatedAt: now,
        ...defined({ expiresAt, source }),
      };
      this.#revisions += 1;
      items.set(key, { item: deepFreeze(item), revision: this.#revisions, indexed: undefined });
      this.#nextExpiry = Math.min(this.#nextExpiry, expiresAt ?? this.#nextExpiry);
    }
    if (items.size === 0) this.#namespaces.delete(within);
    else this.#namespaces.set(within, items);
  }

  #sweep(now: number): void {
    if (now < this.#nextExpiry) return;
    this.#nextExpiry = Number.POSITIVE_INFINITY;
    for (const [within, items] of [...this.#namespaces.from('')]) {
      for (const [key, kept] of [...items.from('')]) {
        if (isOver(kept, now)) items.delete(key);
        else this.#nextExpiry = Math.min(this.#nextExpiry, kept.item.expiresAt ?? this.#nextExpiry);
      }
      if (items.size === 0) this.#namespaces.delete(within);
    }
  }

  async get(namespace: Namespace, key: string): Promise<StoreItem | undefined> {
    this.#access.assertOpen();
    const kept = this.#namespaces.get(namespaceKey(namespace))?.get(key);
    return kept === undefined || isOver(kept, this.#access.now()) ? undefined : kept.item;
  }

  async list(query: StoreQuery, after?: Place): Promise<StoreItem[]> {
    const found: StoreItem[] = [];
    for (const { item } of this.#in(query, after)) {
      if (found.length === query.limit) break;
      found.push(item);
    }
    return found;
  }

  async search(query: StoreQuery, lookup: StoreLookup): Promise<StoreHit[]> {
    const hits = [...this.#in(query)].flatMap((kept): StoreHit[] => {
      const score = scoreOf(kept, lookup);
      return score === undefined ? [] : [{ ...kept.item, score }];
    });
    return bestHits(hits, query.limit);
  }

  async unindexed(namespace: Namespace, index: string, limit: number): Promise<RevisedItem[]> {
    const kept = [...this.#in({ namespace, limit })].filter(({ indexed }) => indexed?.index !== index);
    return kept.slice(0, limit).map(({ item, revision }) => ({ ...item, revision }));
  }

  async setVectors(
    index: string,
    vectors: readonly { readonly revision: number; readonly vector: Float32Array }[],
  ): Promise<void> {
    this.#access.assertOpen();
    const given = new Map(vectors.map(({ revision, vector }) => [revision, vector]));
    for (const [, items] of this.#namespaces.from('')) {
      for (const [, kept] of items.from('')) {
        const vector = given.get(kept.revision);
        if (vector !== undefined) kept.indexed = { index, vector: vector.slice() };
      }
    }
  }

  /** In the order of namespace and key. */
  *#in({ namespace, filter, limit }: StoreQuery, after?: Place): Generator<Kept, void> {
    this.#access.assertOpen();
    assertCounts({ limit });
    const now = this.#access.now();
    const within = namespaceKey(namespace);
    const last = after && namespaceKey(after.namespace);
    const isBehind = last !== undefined && compareTexts(last, within) > 0;
    for (const [own, items] of this.#namespaces.from(isBehind ? last : within)) {
      if (!liesIn(own, within)) {
        // What is the runtime's own stands in the middle of all.
        if (namespace.length === 0) continue;
        return;
      }
      for (const [key, kept] of items.from(own === last ? (after?.key ?? '') : '')) {
        const isLast = own === last && key === after?.key;
        if (!isLast && !isOver(kept, now) && fitsFilter(kept.item.value, filter)) yield kept;
      }
    }
  }
}

function isOver({ item: { expiresAt } }: Kept, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}

function scoreOf({ item, indexed }: Kept, lookup: StoreLookup): number | undefined {
  if ('words' in lookup) return wordScore(lookup.words, searchText(item.value, lookup.fields)) || undefined;
  return indexed?.index === lookup.index ? cosine(indexed.vector, lookup.vector) : undefined;
}
