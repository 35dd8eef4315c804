/** The store's side of what outlives runs and sessions: items in namespaces. */
import type { Json, Namespace, StoreFilter, StoreHit, StoreItem, StoreWrite } from '#core';

export interface StoreQuery {
  /** What lies there and below. Empty: everything. */
  readonly namespace: Namespace;
  readonly filter?: StoreFilter;
  readonly limit: number;
}

/** Which items fit best. */
export type StoreLookup =
  /** By words, as `searchText` and `wordScore` of the core say. Items with none of the words are left out. */
  | { readonly words: readonly string[]; readonly fields?: readonly string[] }
  /** By the cosine of vectors. Items that have no vector of this index are left out: `unindexed` finds them. */
  | { readonly index: string; readonly vector: Float32Array };

/** An item as it was written once: writing it again gives it another revision, also after it was deleted. */
export interface RevisedItem extends StoreItem {
  readonly revision: number;
}

/** An item as it was read; without `value`: there was none. */
export interface SeenItem {
  readonly namespace: Namespace;
  readonly key: string;
  readonly value?: Json;
}

/**
 * Items in namespaces that outlive runs and sessions. What has expired by the store's clock is not read any more, and is
 * deleted with some later write. Texts are compared by their bytes. The store makes no vectors: it keeps those that it is given, and
 * compares them exactly or with an index of its own.
 */
export interface LongTermStore {
  /** All of them in one commit, in order. @throws PilotageError `store_refused` before anything is written. */
  write(writes: readonly StoreWrite[]): Promise<void>;
  /**
   * The same as long as the item of a place has this value; without a `value`, as long as there is none: of several who see the same, one writes.
   * @returns false when it has another one: nothing was written.
   */
  writeIf(seen: SeenItem, writes: readonly StoreWrite[]): Promise<boolean>;
  get(namespace: Namespace, key: string): Promise<StoreItem | undefined>;
  /** In the order of namespace and key. @param after the last item of the page before. */
  list(query: StoreQuery, after?: Pick<StoreItem, 'namespace' | 'key'>): Promise<StoreItem[]>;
  /** The best first. */
  search(query: StoreQuery, lookup: StoreLookup): Promise<StoreHit[]>;
  /** Items there and below that have no vector of this index yet. */
  unindexed(namespace: Namespace, index: string, limit: number): Promise<RevisedItem[]>;
  /** Gives vectors to items that have not been written since; each replaces the item's vector of any other index. */
  setVectors(
    index: string,
    vectors: readonly { readonly revision: number; readonly vector: Float32Array }[],
  ): Promise<void>;
  /**
   * Calls `wake` when `write` or `writeIf` has written items whose namespace begins with this part, which is reserved for the runtime, from any process. It may
   * be called without news, and news may be lost. Returns a function that stops the watch.
   */
  watch(root: string, wake: () => void): () => void;
}
