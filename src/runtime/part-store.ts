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

/** Places of parts whose items have the fields `tenant` and `user`, and are erased with that user. */
export const OF_USERS: readonly string[] = ['webhooks.hooks', 'webhooks.ended'].map(
  (name) => `${RESERVED_PART}${name}`,
);

/** Paths are a kind of item, a tenant, and what the part likes: databases that keep tenants apart go by the second part of a namespace. */
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
  async *list(path: Namespace, filter?: StoreFilter): AsyncGenerator<Pick<StoreItem, 'key' | 'value'>> {
    const { clock, journal } = this.#deps();
    const query = { namespace: this.#at(path), limit: PAGE, ...(filter === undefined ? {} : { filter }) };
    for (let after: Place | undefined; ; ) {
      const page = await patiently(clock, () => journal.store.list(query, after));
      yield* page;
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

  #at([kind, ...path]: Namespace): Namespace {
    return [`${RESERVED_PART}${this.#name}.${kind}`, ...path];
  }
}

const PAGE = 500;
const LEASE = 'lease';

/** What one process at a time does for a tenant, whichever: it has a lease in a place of the store, which is over when it is not renewed. */
export class PartLease {
  readonly #store: PartStore;
  readonly #place: { readonly namespace: Namespace; readonly key: string };
  readonly #leaseMs: number;
  readonly #own = { owner: ownerName() };
  /** When it was taken or renewed, by the clock of this process; absent: it is not held. */
  #heldAt: number | undefined;

  constructor(store: PartStore, tenant: string, leaseMs: number) {
    this.#store = store;
    this.#place = { namespace: [LEASE, tenant], key: LEASE };
    this.#leaseMs = leaseMs;
  }

  /** What has to be there for what this process writes as its holder. */
  get seen(): SeenItem {
    return { ...this.#place, value: this.#own };
  }

  /** Takes it, or renews it in time. @returns whether this process has it. */
  async hold(): Promise<boolean> {
    const now = performance.now();
    if (this.#heldAt !== undefined && now - this.#heldAt < this.#leaseMs / 3) return true;
    const write: StoreWrite = { ...this.#place, value: this.#own, ttlMs: this.#leaseMs };
    if (this.#heldAt !== undefined && (await this.#store.write([write], this.seen))) return this.#hold(now);
    const there = await this.#store.get(this.#place.namespace, LEASE);
    const { owner } = (there?.value ?? {}) as { readonly owner?: unknown };
    const isFree = there === undefined || (typeof owner === 'string' && isDeadOwner(owner));
    const seen: SeenItem = { ...this.#place, ...(there === undefined ? {} : { value: there.value }) };
    if (isFree && (await this.#store.write([write], seen))) return this.#hold(now);
    this.#heldAt = undefined;
    return false;
  }

  #hold(at: number): true {
    this.#heldAt = at;
    return true;
  }

  async release(): Promise<void> {
    if (this.#heldAt === undefined) return;
    this.#heldAt = undefined;
    await this.#store.write([this.#place], this.seen);
  }
}
