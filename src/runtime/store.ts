/** The long-term store as the program has it: every namespace, and those of one user. What it writes is there when the promise resolves. */
import {
  assertKey,
  assertNamespace,
  assertOptions,
  assertOwnPlace,
  assertStoreWrite,
  assertTenantAndUser,
  type Clock,
  capture,
  defined,
  type Identity,
  type Namespace,
  type OptionShape,
  type Redaction,
  type Store,
  type StoreHit,
  type StoreItem,
  type StoreListOptions,
  type StoreWrite,
} from '#core';
import { assertStoreIndex, type Journal, patiently, type StoreIndex, StoreView } from '#journal';
import { asked, queryText } from '../calls/call-store.ts';
import type { LongTermMemory } from '../loop/driver-deps.ts';

export interface StoreOptions {
  /** Finds by meaning, with vectors that the program's own function makes. Default: items are found by their words. */
  readonly index?: StoreIndex;
  /**
   * Where the memory of a user lies: tools of their runs reach what is in this namespace, and nothing else. Default `[tenant, user]`. With
   * `({ tenant }) => [tenant]` all users of a tenant share one memory.
   */
  readonly namespace?: (owner: StoreOwner) => Namespace;
}

export type StoreOwner = Pick<Identity, 'tenant' | 'user'>;

const OPTIONS: OptionShape<StoreOptions> = { index: 'object?', namespace: 'function?' };
const PUT: OptionShape<{ ttlMs?: number }> = { ttlMs: 'any?' };
const LIST: OptionShape<StoreListOptions & { after?: object }> = { filter: 'any?', limit: 'any?', after: 'object?' };
const SEARCH: OptionShape<StoreListOptions> = { filter: 'any?', limit: 'any?' };
const LISTED = 50;
const FOUND = 10;

/** @throws PilotageError `invalid_config`. */
export function assertStoreOptions(options: StoreOptions): void {
  assertOptions('store', options, OPTIONS);
  if (options.index !== undefined) assertStoreIndex(options.index);
}

export function longTermMemory(journal: Journal, clock: Clock, { index, namespace }: StoreOptions): LongTermMemory {
  return {
    view: new StoreView(journal.store, index, clock),
    rootOf: ({ tenant, user }) => {
      const root = namespace === undefined ? [tenant, user] : namespace({ tenant, user });
      assertNamespace(root);
      return Object.freeze([...root]);
    },
  };
}

interface Deps {
  readonly memory: LongTermMemory;
  readonly journal: Pick<Journal, 'store'>;
  readonly redaction: Pick<Redaction, 'item'>;
  readonly clock: Clock;
}

/** The store on a journal beside a runtime, without its index: nothing is searched there by meaning. */
export function storeOn(
  deps: Omit<Deps, 'memory'> & { readonly journal: Journal },
  options: StoreOptions = {},
): ProgramStore {
  const memory = longTermMemory(deps.journal, deps.clock, options);
  return new ProgramStore(() => ({ ...deps, memory }));
}

const EVERYTHING: Namespace = Object.freeze([]);

/** The store of a runtime, or the part of it that belongs to one user. */
export class ProgramStore implements Store {
  /** @throws PilotageError `runtime_closed`. */
  readonly #deps: () => Deps;
  readonly #root: () => Namespace;

  constructor(deps: () => Deps, root: () => Namespace = () => EVERYTHING) {
    this.#deps = deps;
    this.#root = root;
  }

  /**
   * The memory of a user, as tools of their runs have it: its namespaces are inside that of the tenant and the user.
   * @throws PilotageError `identity_required`.
   */
  of(owner: StoreOwner): Store {
    assertTenantAndUser(owner);
    const { tenant, user } = owner;
    return new ProgramStore(this.#deps, () => this.#deps().memory.rootOf({ tenant, user }));
  }

  async put(
    namespace: Namespace,
    key: string,
    value: unknown,
    options: { readonly ttlMs?: number } = {},
  ): Promise<void> {
    assertOptions('store.put', options, PUT);
    const json = this.#deps().redaction.item(capture(value, 'value').json);
    return this.#write({ namespace: this.#whole(namespace), key, value: json, ...defined({ ttlMs: options.ttlMs }) });
  }

  async delete(namespace: Namespace, key: string): Promise<void> {
    return this.#write({ namespace: this.#whole(namespace), key });
  }

  async get(namespace: Namespace, key: string): Promise<StoreItem | undefined> {
    const whole = this.#whole(namespace);
    assertKey(key);
    const item = await this.#deps().memory.view.get(whole, key);
    return item && this.#told(item);
  }

  async list(namespace: Namespace, options: Parameters<Store['list']>[1] = {}): Promise<StoreItem[]> {
    assertOptions('store.list', options, LIST);
    const query = { namespace: this.#whole(namespace), ...asked(options, LISTED) };
    const { after } = options;
    const from = after && { namespace: this.#whole(after.namespace), key: after.key };
    const found = await this.#deps().memory.view.list(query, from);
    return found.map((item) => this.#told(item));
  }

  async search(namespace: Namespace, text: string, options: StoreListOptions = {}): Promise<StoreHit[]> {
    assertOptions('store.search', options, SEARCH);
    const query = { namespace: this.#whole(namespace), ...asked(options, FOUND) };
    const found = await this.#deps().memory.view.search(query, queryText(text));
    return found.map((hit) => this.#told(hit));
  }

  async #write(write: StoreWrite): Promise<void> {
    assertStoreWrite(write);
    const { clock, journal } = this.#deps();
    await patiently(clock, () => journal.store.write([write]));
  }

  #whole(namespace: Namespace): Namespace {
    assertNamespace(namespace, 0);
    const whole = [...this.#root(), ...namespace];
    assertOwnPlace(whole);
    return whole;
  }

  #told<Item extends StoreItem>(item: Item): Item {
    return Object.freeze({ ...item, namespace: Object.freeze(item.namespace.slice(this.#root().length)) });
  }
}
