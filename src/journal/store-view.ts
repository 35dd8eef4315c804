/**
 * The long-term store as it is asked: with vectors that are made where a search needs them, and below what a call, or a fork, has written
 * that the store does not have.
 */
import {
  assertOptions,
  bestHits,
  type Clock,
  comparePlaces,
  cosine,
  describeThrown,
  fitsFilter,
  liesIn,
  limitTime,
  type Namespace,
  namespaceKey,
  type OptionShape,
  PilotageError,
  type StoreHit,
  type StoreItem,
  type StoreWrite,
  searchText,
  timeAfter,
  wordScore,
  wordsOf,
} from '#core';
import type { LongTermStore, StoreQuery } from './port.ts';

export interface StoreIndex {
  /** Makes a vector of each text, as `embedMany` of the AI SDK does. Vectors of one index have one length. */
  embed(texts: string[]): Promise<readonly (readonly number[] | Float32Array)[]>;
  /** The fields whose texts are found; a dot leads into a field. Default: all texts of the value. */
  readonly fields?: readonly string[];
  /** Change it with the model that `embed` asks: items that have a vector of another name are given a new one. Default `default`. */
  readonly name?: string;
}

const INDEX: OptionShape<StoreIndex> = { embed: 'function', fields: 'list?', name: 'text?' };

/** @throws PilotageError `invalid_config`. */
export function assertStoreIndex(index: StoreIndex): void {
  assertOptions('store.index', index, INDEX);
  if (index.fields === undefined || index.fields.every((field) => typeof field === 'string' && field !== '')) return;
  const message =
    "The option fields of store.index must be a list of the names of fields, such as ['text', 'about.city'].";
  throw new PilotageError('invalid_config', message);
}

/** What was written over the store, by `placeOf`, in the order of the writes. `undefined`: it was deleted. */
export type StoreLayer = Map<string, StoreItem | undefined>;

const NO_LAYER: StoreLayer = new Map();
/** How many texts are given to the embedding function at once. */
const EMBEDDED_AT_ONCE = 64;
const EMBED_MS = 30_000;

function placeOf({ namespace, key }: Pick<StoreItem, 'namespace' | 'key'>): string {
  return JSON.stringify([namespace, key]);
}

/** Puts writes over what is in the layer. */
export function addToLayer(layer: StoreLayer, writes: readonly StoreWrite[], at: number): void {
  for (const { namespace, key, value, ttlMs, source } of writes) {
    const place = placeOf({ namespace, key });
    const over = source === undefined ? {} : { source };
    const expiry = ttlMs === undefined ? {} : { expiresAt: timeAfter(at, ttlMs) };
    const item =
      value === undefined ? undefined : { namespace, key, value, createdAt: at, updatedAt: at, ...expiry, ...over };
    layer.set(place, item && Object.freeze(item));
  }
}

export class StoreView {
  readonly #store: LongTermStore;
  readonly #index: StoreIndex | undefined;
  readonly #clock: Clock;

  constructor(store: LongTermStore, index: StoreIndex | undefined, clock: Clock) {
    this.#store = store;
    this.#index = index;
    this.#clock = clock;
  }

  async get(namespace: Namespace, key: string, layer: StoreLayer = NO_LAYER): Promise<StoreItem | undefined> {
    const place = placeOf({ namespace, key });
    if (!layer.has(place)) return this.#store.get(namespace, key);
    const item = layer.get(place);
    return item !== undefined && this.#isLive(item) ? item : undefined;
  }

  async list(
    query: StoreQuery,
    after?: Pick<StoreItem, 'namespace' | 'key'>,
    layer: StoreLayer = NO_LAYER,
  ): Promise<StoreItem[]> {
    const stored = await this.#store.list({ ...query, limit: query.limit + layer.size }, after);
    if (layer.size === 0) return stored;
    const own = this.#inLayer(layer, query).filter((item) => after === undefined || comparePlaces(item, after) > 0);
    return [...stored.filter((item) => !layer.has(placeOf(item))), ...own].sort(comparePlaces).slice(0, query.limit);
  }

  /** @throws PilotageError `embedding_failed`. */
  async search(query: StoreQuery, text: string, layer: StoreLayer = NO_LAYER): Promise<StoreHit[]> {
    const index = this.#index;
    return index === undefined ? this.searchWords(query, text, layer) : this.#searchVectors(query, text, layer, index);
  }

  /** By words, also where there is an index. */
  async searchWords(query: StoreQuery, text: string, layer: StoreLayer = NO_LAYER): Promise<StoreHit[]> {
    const { fields } = this.#index ?? {};
    const words = wordsOf(text);
    const lookup = fields === undefined ? { words } : { words, fields };
    const stored = await this.#store.search({ ...query, limit: query.limit + layer.size }, lookup);
    const own = this.#inLayer(layer, query).map((item) => ({
      ...item,
      score: wordScore(words, searchText(item.value, fields)),
    }));
    return merged(
      stored,
      own.filter(({ score }) => score > 0),
      layer,
      query.limit,
    );
  }

  async #searchVectors(query: StoreQuery, text: string, layer: StoreLayer, index: StoreIndex): Promise<StoreHit[]> {
    if (text.trim() === '') return [];
    const own = this.#inLayer(layer, query);
    const [vector, ...vectors] = await this.#embed(index, [
      text,
      ...own.map((item) => searchText(item.value, index.fields)),
    ]);
    await this.#indexAll(query.namespace, index);
    if (vector === undefined) return [];
    const lookup = { index: nameOf(index), vector };
    const stored = await this.#store.search({ ...query, limit: query.limit + layer.size }, lookup);
    const hits = own.flatMap((item, at): StoreHit[] => {
      const score = cosine(vectors[at] ?? NO_VECTOR, vector);
      return score === undefined ? [] : [{ ...item, score }];
    });
    return merged(stored, hits, layer, query.limit);
  }

  /** What was written since the last search, by whomever, gets its vector before it is looked for. */
  async #indexAll(namespace: Namespace, index: StoreIndex): Promise<void> {
    const name = nameOf(index);
    for (;;) {
      const items = await this.#store.unindexed(namespace, name, EMBEDDED_AT_ONCE);
      if (items.length === 0) return;
      const vectors = await this.#embed(
        index,
        items.map(({ value }) => searchText(value, index.fields)),
      );
      const given = items.map(({ revision }, at) => ({ revision, vector: vectors[at] ?? NO_VECTOR }));
      await this.#store.setVectors(name, given);
      if (items.length < EMBEDDED_AT_ONCE) return;
    }
  }

  /** Nothing is made of a text without words: such an item is not found. @throws PilotageError `embedding_failed`. */
  async #embed(index: StoreIndex, texts: readonly string[]): Promise<Float32Array[]> {
    const asked = texts.filter((text) => text.trim() !== '');
    const made: Float32Array[] = [];
    for (let from = 0; from < asked.length; from += EMBEDDED_AT_ONCE) {
      made.push(...(await this.#embedSome(index, asked.slice(from, from + EMBEDDED_AT_ONCE))));
    }
    let at = 0;
    return texts.map((text) => (text.trim() === '' ? NO_VECTOR : (made[at++] ?? NO_VECTOR)));
  }

  async #embedSome(index: StoreIndex, texts: string[]): Promise<Float32Array[]> {
    let given: unknown;
    try {
      given = await this.#inTime(index.embed([...texts]));
    } catch (cause) {
      throw embeddingFailed(describeThrown(cause), cause);
    }
    const vectors: readonly unknown[] = Array.isArray(given) ? given : [];
    const made = vectors.map(vectorOf);
    const length = made[0]?.length;
    if (made.length === texts.length && made.every((vector) => vector !== undefined && vector.length === length)) {
      return made as Float32Array[];
    }
    throw embeddingFailed(`it must give ${texts.length} lists of numbers of one length, one for each text`);
  }

  #inTime<T>(asked: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new Error(`It did not answer within ${EMBED_MS} ms.`));
      const cancelTimer = limitTime(this.#clock, EMBED_MS, late);
      Promise.resolve(asked).then(resolve, reject).finally(cancelTimer);
    });
  }

  #inLayer(layer: StoreLayer, { namespace, filter }: StoreQuery): StoreItem[] {
    if (layer.size === 0) return [];
    const within = namespaceKey(namespace);
    return [...layer.values()].filter(
      (item): item is StoreItem =>
        item !== undefined &&
        this.#isLive(item) &&
        liesIn(namespaceKey(item.namespace), within) &&
        fitsFilter(item.value, filter),
    );
  }

  #isLive({ expiresAt }: StoreItem): boolean {
    return expiresAt === undefined || expiresAt > this.#clock.now();
  }
}

const NO_VECTOR = new Float32Array(0);

function nameOf({ name = 'default', fields }: StoreIndex): string {
  return JSON.stringify([name, ...(fields ?? [])]);
}

function merged(stored: readonly StoreHit[], own: readonly StoreHit[], layer: StoreLayer, limit: number): StoreHit[] {
  if (layer.size === 0) return [...stored];
  return bestHits([...stored.filter((hit) => !layer.has(placeOf(hit))), ...own], limit);
}

function vectorOf(given: unknown): Float32Array | undefined {
  if (!(given instanceof Float32Array) && !Array.isArray(given)) return undefined;
  const vector = Float32Array.from(given as ArrayLike<number>);
  return vector.length > 0 && vector.every((number) => Number.isFinite(number)) ? vector : undefined;
}

function embeddingFailed(why: string, cause?: unknown): PilotageError {
  return new PilotageError('embedding_failed', `The embedding function of the store failed: ${why}.`, { cause });
}
