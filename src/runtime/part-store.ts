/**
 * A place in the long-term store for what a part of Pilotage keeps beside runs, such as the subscriptions of webhooks: neither tools nor the program's own
 * store reach it, and nothing of it is found by searching everything.
 */
import { type Namespace, RESERVED_PART, type StoreFilter, type StoreItem, type StoreWrite } from '#core';
import { type Journal, patiently, type SeenItem } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { isDeadOwner, ownerName } from './leases.ts';

type PartDeps = () => Pick<DriverDeps, 'clock'> & { readonly journal: Pick<Journal, 'store'> };
type Place = Pick<StoreItem, 'namespace' | 'key'>;

/** What all parts keep. Items with the fields `tenant` and `user` are erased with that user. */
export const PARTS: Namespace = Object.freeze([`${RESERVED_PART}parts`]);

export class PartStore {
  readonly #name: string;
  readonly #deps: PartDeps;

  /** @param deps throws `runtime_closed`. */
  constructor(name: string, deps: PartDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  /** By what the store counts time, milliseconds since the epoch. */
  now(): number {
    return this.#deps().clock.now();
  }

  async get(path: Namespace, key: string): Promise<StoreItem | undefined> {
    const { clock, journal } = this.#deps();
    return patiently(clock, () => journal.store.get(this.#at(path), key));
  }

  /** All that lies there and below, in the order of their places. */
  async *list(path: Namespace, filter?: StoreFilter): AsyncGenerator<StoreItem> {
    const { clock, journal } = this.#deps();
    const query = { namespace: this.#at(path), limit: PAGE, ...(filter === undefined ? {} : { filter }) };
    for (let after: Place | undefined; ; ) {
      const page = await patiently(clock, () => journal.store.list(query, after));
      for (const item of page) yield { ...item, namespace: item.namespace.slice(PARTS.length + 1) };
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }

  /**
   * Writes in one commit. @param seen writes only as long as that item is as it was seen.
   * @returns whether it was.
   */
  async write(writes: readonly StoreWrite[], seen?: SeenItem): Promise<boolean> {
    const { clock, journal } = this.#deps();
    const placed = writes.map((write) => ({ ...write, namespace: this.#at(write.namespace) }));
    if (seen !== undefined) {
      const of = { ...seen, namespace: this.#at(seen.namespace) };
      return patiently(clock, () => journal.store.writeIf(of, placed));
    }
    await patiently(clock, () => journal.store.write(placed));
    return true;
  }

  #at(path: Namespace): Namespace {
    return [...PARTS, this.#name, ...path];
  }
}

const PAGE = 500;
const LEASE = 'lease';

/** What one process at a time does, whichever: it has a lease in a place of the store, which is over when it is not renewed. */
export class PartLease {
  readonly #store: PartStore;
  readonly #leaseMs: number;
  readonly #own = { owner: ownerName() };
  #isHeld = false;

  constructor(store: PartStore, leaseMs: number) {
    this.#store = store;
    this.#leaseMs = leaseMs;
  }

  /** What has to be there for what this process writes as its holder. */
  get seen(): SeenItem {
    return { namespace: [], key: LEASE, value: this.#own };
  }

  /** Takes it, or renews it. @returns whether this process has it. */
  async hold(): Promise<boolean> {
    const write: StoreWrite = { namespace: [], key: LEASE, value: this.#own, ttlMs: this.#leaseMs };
    if (this.#isHeld && (await this.#store.write([write], this.seen))) return true;
    const there = await this.#store.get([], LEASE);
    const { owner } = (there?.value ?? {}) as { readonly owner?: unknown };
    const isFree = there === undefined || (typeof owner === 'string' && isDeadOwner(owner));
    const seen: SeenItem = { namespace: [], key: LEASE, ...(there === undefined ? {} : { value: there.value }) };
    this.#isHeld = isFree && (await this.#store.write([write], seen));
    return this.#isHeld;
  }

  async release(): Promise<void> {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    await this.#store.write([{ namespace: [], key: LEASE }], this.seen);
  }
}
