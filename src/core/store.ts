/**
 * Long-term memory as data: items with a key in a namespace, what is asked of them, and how they are found. Pure, so that every store,
 * and what a call or a fork has written before a store has it, gives the same answers.
 */
import type { ArtifactRef } from './artifact.ts';
import { PilotageError } from './errors.ts';
import { encodedBytes, isJsonObject, type Json, LARGE_VALUE_BYTES } from './json.ts';

/** Where an item lies: a list of texts, each of which is taken as it stands. What lies in `['a', 'b']` is found in `['a']` too. */
export type Namespace = readonly string[];

/** The call that has written an item. */
export interface StoreSource {
  readonly run: string;
  readonly step: number;
  readonly call?: number;
}

export interface StoreItem {
  readonly namespace: Namespace;
  readonly key: string;
  readonly value: Json;
  /** By the store's clock, in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** From then on it is not read any more. */
  readonly expiresAt?: number;
  /** The call of a run that has written it. Absent: the program or a person has. */
  readonly source?: StoreSource;
}

export interface StoreHit extends StoreItem {
  /** By words: the share of them that the item has, from 0 to 1. By vectors: their cosine, from -1 to 1. */
  readonly score: number;
}

/** Puts an item in the place of the one that is there, or deletes it: then there is no value. */
export interface StoreWrite {
  readonly namespace: Namespace;
  readonly key: string;
  readonly value?: Json;
  /** How long the item is read, from the commit on. Absent: for ever. */
  readonly ttlMs?: number;
  readonly source?: StoreSource;
}

/** What a call has read. */
export interface StoreRead {
  readonly op: 'get' | 'list' | 'search';
  readonly namespace: Namespace;
  /** Whose value was asked for. */
  readonly key?: string;
  /** What was searched for. */
  readonly query?: string;
  readonly found: readonly FoundItem[];
}

export interface FoundItem extends Pick<StoreItem, 'namespace' | 'key'> {
  readonly value?: Json;
  readonly score?: number;
}

type Scalar = null | boolean | number | string;

/** A value that the field equals, or bounds between which it lies: numbers by size, texts by their characters. */
export type StoreCondition =
  | Scalar
  | {
      readonly eq?: Scalar;
      readonly ne?: Scalar;
      readonly gt?: number | string;
      readonly gte?: number | string;
      readonly lt?: number | string;
      readonly lte?: number | string;
    };

/** Conditions by the field of the value, which all hold. A dot leads into a field: `address.city`. */
export type StoreFilter = Readonly<Record<string, StoreCondition>>;

/** Stands beside the parts of a namespace in every message about one. */
const PART_CHARS = 256;
const MAX_PARTS = 16;
const KEY_CHARS = 512;

/** @throws PilotageError `store_refused` for a place where nothing can lie. */
export function assertNamespace(given: unknown, least: number = 1): asserts given is Namespace {
  const parts: readonly unknown[] = Array.isArray(given) ? given : [];
  // A hole in the list counts as a part of another kind.
  const isFit = Array.isArray(given) && Array.from(parts).every((part) => isName(part, PART_CHARS));
  if (isFit && parts.length >= least && parts.length <= MAX_PARTS) return;
  throw refused(
    `A namespace is a list of ${least} to ${MAX_PARTS} texts, each of 1 to ${PART_CHARS} characters, without the character 0 and halves of characters, such as ['acme', 'ann', 'notes'].`,
  );
}

/**
 * What a namespace of the runtime's own begins with. Neither tools nor the program reach what lies there, and what is asked of everything does not
 * find it: only whoever names it does.
 */
export const RESERVED_PART = 'pilotage:';

/** @throws PilotageError `store_refused` for a place that is the runtime's own. */
export function assertOwnPlace([first]: Namespace): void {
  if (first?.startsWith(RESERVED_PART) !== true) return;
  throw refused(
    `Namespaces that begin with ${JSON.stringify(RESERVED_PART)} are the runtime's own. Use another first part; rules of approvals are read and revoked by runtime.rules.`,
  );
}

/** @throws PilotageError `store_refused`. */
export function assertKey(given: unknown): asserts given is string {
  if (isName(given, KEY_CHARS)) return;
  throw refused(
    `A key of the store is a text of 1 to ${KEY_CHARS} characters, without the character 0 and halves of characters, such as 'favourite_colour'.`,
  );
}

/** Two texts that are not well formed may be the same bytes in a store, and a character 0 may end them there. */
function isName(given: unknown, most: number): boolean {
  if (typeof given !== 'string' || given === '' || given.length > most) return false;
  return given.isWellFormed() && !given.includes('\0');
}

/** @throws PilotageError `store_refused` for what no store takes. */
export function assertStoreWrite({ namespace, key, value, ttlMs }: StoreWrite): void {
  assertNamespace(namespace);
  assertKey(key);
  if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs > 0)) {
    throw refused(`The option ttlMs is ${ttlMs}; give whole milliseconds from 1 up, or leave it out.`);
  }
  if (value === undefined) return;
  const bytes = encodedBytes(value);
  if (bytes < LARGE_VALUE_BYTES) return;
  throw refused(
    `The value of ${JSON.stringify(key)} has ${bytes} bytes of JSON; the store takes values of fewer than ${LARGE_VALUE_BYTES}. Store it as an artifact, and its reference here.`,
  );
}

function refused(message: string): PilotageError {
  return new PilotageError('store_refused', message);
}

const BOUNDS: ReadonlySet<string> = new Set(['eq', 'ne', 'gt', 'gte', 'lt', 'lte']);

/** @throws PilotageError `store_refused` for a filter that nothing could be asked with. */
export function assertStoreFilter(given: unknown): asserts given is StoreFilter {
  const conditions = isJsonObject(given) ? Object.entries(given) : undefined;
  const isFit = conditions?.every(([, condition]) => {
    if (!isJsonObject(condition)) return isScalar(condition);
    const bounds = Object.entries(condition);
    return bounds.length > 0 && bounds.every(([name, bound]) => BOUNDS.has(name) && isScalar(bound));
  });
  if (isFit === true) return;
  throw refused(
    "A filter has a condition for each field: a value, or bounds of eq, ne, gt, gte, lt and lte, such as { status: 'open', age: { gte: 18 } }.",
  );
}

function isScalar(value: unknown): value is Scalar {
  return value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value);
}

/** Whether the value has all that is asked for. A field that is not there equals nothing, and lies between no bounds. */
export function fitsFilter(value: Json, filter: StoreFilter | undefined): boolean {
  if (filter === undefined) return true;
  for (const path of Object.keys(filter)) {
    if (!fitsCondition(fieldAt(value, path), filter[path] as StoreCondition)) return false;
  }
  return true;
}

function fitsCondition(field: Json | undefined, condition: StoreCondition): boolean {
  if (!isJsonObject(condition)) return field === condition;
  return Object.entries(condition).every(([name, bound]) => {
    if (name === 'eq') return field === bound;
    if (name === 'ne') return field !== bound;
    const order = orderOf(field, bound as Scalar);
    if (order === undefined) return false;
    return name === 'gt' ? order > 0 : name === 'gte' ? order >= 0 : name === 'lt' ? order < 0 : order <= 0;
  });
}

/** `undefined` for what has no order: a number and a text, or anything else. */
function orderOf(field: Json | undefined, bound: Scalar): number | undefined {
  if (typeof field === 'number' && typeof bound === 'number') return field - bound;
  if (typeof field !== 'string' || typeof bound !== 'string') return undefined;
  return field < bound ? -1 : field > bound ? 1 : 0;
}

function fieldAt(value: Json, path: string): Json | undefined {
  let at: Json | undefined = value;
  for (const name of path.split('.')) {
    if (!isJsonObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

/** The words by which an item is found, and that its vector is made of: those of the fields, or all texts of the value. */
export function searchText(value: Json, fields: readonly string[] | undefined): string {
  const parts = fields === undefined ? [value] : fields.map((field) => fieldAt(value, field) ?? null);
  return parts.flatMap(textsIn).join('\n');
}

function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number' || typeof value === 'boolean') return [String(value)];
  if (value === null) return [];
  return Object.values(value).flatMap((part: Json) => textsIn(part));
}

/** Words of a query beyond these are not looked for. */
const MAX_WORDS = 64;

export function wordsOf(text: string): readonly string[] {
  return [
    ...new Set(
      text
        .normalize('NFKC')
        .toLowerCase()
        .match(/[\p{L}\p{N}]+/gu),
    ),
  ].slice(0, MAX_WORDS);
}

/** The share of the words that the text has; one with which a longer word begins counts half. */
export function wordScore(words: readonly string[], text: string): number {
  if (words.length === 0) return 0;
  const there = new Set(
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu),
  );
  const beginsWith = (word: string): boolean => [...there].some((other) => other.startsWith(word));
  return words.reduce((sum, word) => sum + (there.has(word) ? 1 : beginsWith(word) ? 0.5 : 0), 0) / words.length;
}

/** The cosine of the angle between two vectors; `undefined` for vectors of other lengths, and for one without a direction. */
export function cosine(one: Float32Array, other: Float32Array): number | undefined {
  if (one.length !== other.length) return undefined;
  let product = 0;
  let squares = 0;
  let otherSquares = 0;
  for (let at = 0; at < one.length; at += 1) {
    const a = one[at] as number;
    const b = other[at] as number;
    product += a * b;
    squares += a * a;
    otherSquares += b * b;
  }
  const length = Math.sqrt(squares) * Math.sqrt(otherSquares);
  return length > 0 ? product / length : undefined;
}

/** The best first; what is as good in the order of namespace and key. */
export function bestHits<Hit extends StoreHit>(hits: readonly Hit[], limit: number): Hit[] {
  return hits.toSorted((one, other) => other.score - one.score || comparePlaces(one, other)).slice(0, limit);
}

type Place = Pick<StoreItem, 'namespace' | 'key'>;

/** One text for a namespace. What lies below it has a text that begins with this one and a comma. */
export function namespaceKey(namespace: Namespace): string {
  return JSON.stringify(namespace).slice(0, -1);
}

/** Whether a namespace, by its text, lies in another one or is it. What is the runtime's own lies in nothing but itself. */
export function liesIn(own: string, within: string): boolean {
  if (within === '[') return !own.startsWith(RESERVED_TEXT);
  return own === within || own.startsWith(`${within},`);
}

const RESERVED_TEXT = `["${RESERVED_PART}`;

/** In the order of their bytes, as databases sort texts. */
export function comparePlaces(one: Place, other: Place): number {
  const [own, others] = [namespaceKey(one.namespace), namespaceKey(other.namespace)];
  return compareTexts(own, others) || compareTexts(one.key, other.key);
}

/** In the order of their bytes. */
export function compareTexts(one: string, other: string): number {
  return one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** How many items a list or a search gives at most, in one answer. */
export const MOST_ITEMS = 1_000;

export interface StoreListOptions {
  readonly filter?: StoreFilter;
  /** 1 to 1,000. Default 50, of a search 10. */
  readonly limit?: number;
}

/** Long-term memory as programs and tools use it. A namespace, where only one is meant, is that of the item; lists and searches find what lies below it too. */
export interface Store {
  /**
   * Puts a JSON value in the place of the one that is there, or anew. @param options `ttlMs`: how long it is read, in milliseconds.
   * @throws PilotageError `store_refused` for a namespace, a key or a value that no store takes, `unserializable`.
   */
  put(namespace: Namespace, key: string, value: unknown, options?: { readonly ttlMs?: number }): Promise<void>;
  /** `undefined` for what is not there, and for what has expired. */
  get(namespace: Namespace, key: string): Promise<StoreItem | undefined>;
  /**
   * In the order of namespace and key. @param options `after`: the last item of the page before.
   * @throws PilotageError `store_refused` for a filter that cannot be.
   */
  list(
    namespace: Namespace,
    options?: StoreListOptions & { readonly after?: Pick<StoreItem, 'namespace' | 'key'> },
  ): Promise<StoreItem[]>;
  /**
   * What fits the query best, best first: by meaning, where the runtime's `store.index` has an embedding function; otherwise by its words.
   * @throws PilotageError `store_refused`, `embedding_failed`.
   */
  search(namespace: Namespace, query: string, options?: StoreListOptions): Promise<StoreHit[]>;
  /** Deletes the item, if it is there. */
  delete(namespace: Namespace, key: string): Promise<void>;
}

/** What a call has read and written, by whole namespaces. */
export interface StoreUse {
  /** In order. Of more than 1 MiB, what is beyond it comes without values. */
  readonly reads?: readonly StoreRead[];
  /** The artifact with the list of reads, where it is too large to stand here. */
  readonly readsStored?: ArtifactRef;
  /** What was put into the store with this entry; of a fork, what lies over the store for it alone. */
  readonly writes?: readonly StoreWrite[];
}
