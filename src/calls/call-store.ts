/** The long-term store as one attempt of a call has it: what it writes waits for the call's value, and what it reads is noted. */
import {
  type ArtifactRef,
  assertKey,
  assertNamespace,
  assertOptions,
  assertOwnPlace,
  assertStoreFilter,
  assertStoreWrite,
  capture,
  deepFreeze,
  defined,
  encodedBytes,
  type FoundItem,
  type Json,
  LARGE_VALUE_BYTES,
  MOST_ITEMS,
  type Namespace,
  type OptionShape,
  PilotageError,
  type Redaction,
  type Store,
  type StoreItem,
  type StoreListOptions,
  type StoreRead,
  type StoreSource,
  type StoreUse,
  type StoreWrite,
} from '#core';
import { addToLayer, type StoreLayer, type StoreView } from '#journal';
import type { RunState } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';

/** What the stores of a run's calls share. */
export interface CallStorePorts {
  readonly view: StoreView;
  readonly root: Namespace;
  readonly redaction: Pick<Redaction, 'item' | 'known'>;
  /** What the run has written that the store does not have: it is a fork. */
  layer(): StoreLayer;
  now(): number;
}

const PUT: OptionShape<{ ttlMs?: number }> = { ttlMs: 'any?' };
const LIST: OptionShape<StoreListOptions & { after?: object }> = { filter: 'any?', limit: 'any?', after: 'object?' };
const SEARCH: OptionShape<StoreListOptions> = { filter: 'any?', limit: 'any?' };
const LISTED = 50;
const FOUND = 10;
/** Bytes of JSON: what a call writes stands in its entry. */
const MOST_WRITTEN = 262_144;
/** Bytes of JSON of what is read that are recorded. */
const MOST_NOTED = 1_048_576;

export class CallStore implements Store {
  readonly #ports: CallStorePorts;
  readonly #source: StoreSource;
  /** Refuses what comes after the end of the attempt. */
  readonly #assertOpen: () => void;
  readonly #writes: StoreWrite[] = [];
  readonly #reads: StoreRead[] = [];
  #layer: StoreLayer | undefined;
  #written = 0;
  #noted = 0;

  constructor(ports: CallStorePorts, source: StoreSource, assertOpen: () => void) {
    this.#ports = ports;
    this.#source = source;
    this.#assertOpen = assertOpen;
  }

  // Functions of their own: tools take them out of the store.

  readonly put: Store['put'] = async (namespace, key, value, options = {}) => {
    assertOptions('store.put', options, PUT);
    const { redaction } = this.#ports;
    this.#write({
      namespace: this.#whole(namespace),
      key,
      value: redaction.item(capture(value, 'value').json),
      ...defined({ ttlMs: options.ttlMs }),
      source: this.#source,
    });
  };

  readonly delete: Store['delete'] = async (namespace, key) => {
    this.#write({ namespace: this.#whole(namespace), key, source: this.#source });
  };

  #write(write: StoreWrite): void {
    this.#assertOpen();
    assertStoreWrite(write);
    if (this.#ports.redaction.known(write.key) !== write.key) {
      throw new PilotageError('store_refused', 'The key of an item of the store holds a secret. Use another key.');
    }
    this.#written += encodedBytes([...write.namespace, write.key, write.value ?? null]);
    if (this.#written > MOST_WRITTEN) {
      throw new PilotageError(
        'store_refused',
        `One call writes at most ${MOST_WRITTEN} bytes of JSON to the store. Store what is larger as an artifact, and its reference here.`,
      );
    }
    this.#writes.push(deepFreeze(write));
    if (this.#layer !== undefined) addToLayer(this.#layer, [write], this.#ports.now());
  }

  readonly get: Store['get'] = async (namespace, key) => {
    this.#assertOpen();
    const whole = this.#whole(namespace);
    assertKey(key);
    const item = await this.#ports.view.get(whole, key, this.#over());
    this.#note({ op: 'get', namespace: whole, key, found: item === undefined ? [] : [item] });
    return item && this.#told(item);
  };

  readonly list: Store['list'] = async (namespace, options = {}) => {
    this.#assertOpen();
    assertOptions('store.list', options, LIST);
    const query = { namespace: this.#whole(namespace), ...asked(options, LISTED) };
    const { after } = options;
    const from = after && { namespace: this.#whole(after.namespace), key: after.key };
    const found = await this.#ports.view.list(query, from, this.#over());
    this.#note({ op: 'list', namespace: query.namespace, found });
    return found.map((item) => this.#told(item));
  };

  readonly search: Store['search'] = async (namespace, text, options = {}) => {
    this.#assertOpen();
    assertOptions('store.search', options, SEARCH);
    const query = { namespace: this.#whole(namespace), ...asked(options, FOUND) };
    const found = await this.#ports.view.search(query, queryText(text), this.#over());
    this.#note({ op: 'search', namespace: query.namespace, query: text, found });
    return found.map((hit) => this.#told(hit));
  };

  get isUsed(): boolean {
    return this.#reads.length > 0 || this.#writes.length > 0;
  }

  /**
   * What the call's entry says of it; `undefined` when that is nothing. @param hasValue the call has ended with a value: what it
   * wrote counts. @param storeIfLarge stores the list of reads, when it is too large for the entry.
   */
  async use(
    hasValue: boolean,
    storeIfLarge: (reads: Json) => Promise<ArtifactRef | undefined>,
  ): Promise<StoreUse | undefined> {
    const writes = hasValue && this.#writes.length > 0 ? this.#writes : undefined;
    if (this.#reads.length === 0) return writes && Object.freeze({ writes: Object.freeze([...writes]) });
    const reads = this.#reads as unknown as Json;
    const readsStored = this.#noted < LARGE_VALUE_BYTES / 2 ? undefined : await storeIfLarge(reads);
    return deepFreeze({
      ...(readsStored === undefined ? { reads: [...this.#reads] } : { readsStored }),
      ...(writes === undefined ? {} : { writes: [...writes] }),
    });
  }

  /** What lies over the store for this call: what its fork has written, and then itself. */
  #over(): StoreLayer | undefined {
    if (this.#layer === undefined) {
      const layer = this.#ports.layer();
      if (layer.size === 0 && this.#writes.length === 0) return undefined;
      this.#layer = layer;
      addToLayer(layer, this.#writes, this.#ports.now());
    }
    return this.#layer;
  }

  #note(read: StoreRead): void {
    const found = read.found.map(({ namespace, key, value, score }): FoundItem => {
      this.#noted += encodedBytes([...namespace, key, value ?? null]);
      const isNoted = this.#noted <= MOST_NOTED;
      return { namespace, key, ...(isNoted ? defined({ value }) : {}), ...defined({ score }) };
    });
    this.#reads.push(deepFreeze({ ...read, found }));
  }

  #whole(namespace: Namespace): Namespace {
    assertNamespace(namespace, 0);
    const whole = [...this.#ports.root, ...namespace];
    assertOwnPlace(whole);
    return whole;
  }

  /** As the tool names it. */
  #told<Item extends StoreItem>(item: Item): Item {
    return Object.freeze({ ...item, namespace: Object.freeze(item.namespace.slice(this.#ports.root.length)) });
  }
}

/** Made once a run; where its memory lies is asked when a call needs it. */
export class RunStore implements CallStorePorts {
  readonly #deps: Pick<DriverDeps, 'memory' | 'redaction' | 'clock'>;
  readonly #state: RunState;

  constructor(deps: Pick<DriverDeps, 'memory' | 'redaction' | 'clock'>, state: RunState) {
    this.#deps = deps;
    this.#state = state;
  }

  get view(): StoreView {
    return this.#deps.memory.view;
  }

  get redaction(): CallStorePorts['redaction'] {
    return this.#deps.redaction;
  }

  get root(): Namespace {
    return this.#deps.memory.rootOf(this.#state.identity);
  }

  layer(): StoreLayer {
    return layerOf(this.#state);
  }

  now(): number {
    return this.#deps.clock.now();
  }
}

/** What a fork has written lies over the store for it alone: it is read off the calls that have ended. */
export function layerOf({ fork, steps, open }: Pick<RunState, 'fork' | 'steps' | 'open'>): StoreLayer {
  const layer: StoreLayer = new Map();
  if (fork === null) return layer;
  const calls = [...steps.flatMap((step) => step.calls), ...(open?.calls ?? [])];
  for (const call of calls) if (call?.store?.writes !== undefined) addToLayer(layer, call.store.writes, call.endedAt);
  return layer;
}

/** @throws PilotageError `store_refused`. */
export function queryText(text: unknown): string {
  if (typeof text === 'string') return text;
  throw new PilotageError('store_refused', "The query of a search is a text: store.search(['notes'], 'green tea').");
}

/** @throws PilotageError `store_refused`. */
export function asked(
  { filter, limit }: StoreListOptions,
  usual: number,
): { filter?: StoreListOptions['filter'] & {}; limit: number } {
  const most = limit ?? usual;
  if (!Number.isInteger(most) || most < 1 || most > MOST_ITEMS) {
    throw new PilotageError(
      'store_refused',
      `The option limit is ${limit}; give a whole number from 1 to ${MOST_ITEMS}.`,
    );
  }
  if (filter === undefined) return { limit: most };
  assertStoreFilter(filter);
  return { filter: capture<NonNullable<StoreListOptions['filter']>>(filter, 'filter').json, limit: most };
}
