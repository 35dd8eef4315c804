/**
 * A place in the long-term store for what a part of Pilotage keeps beside runs, such as the subscriptions of webhooks: neither tools nor the program's own
 * store reach it, and nothing of it is found by searching everything.
 */
import { type Identity, type Namespace, RESERVED_PART, type StoreFilter, type StoreItem, type StoreWrite } from '#core';
import { type Journal, patiently, type SeenItem } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';

type PartDeps = () => Pick<DriverDeps, 'clock'> & { readonly journal: Pick<Journal, 'store' | 'watchRuns'> };
type Place = Pick<StoreItem, 'namespace' | 'key'>;

/** The kind of item in which `webhooks` finds runs that have gone on after their end. */
export const REOPENED = 'reopened';
/** Places of parts whose items have the fields `tenant` and `user`, and are erased with that user. */
export const OF_USERS: readonly string[] = ['hooks', 'ended', REOPENED].map((kind) => placeOf('webhooks', kind));

function placeOf(part: string, kind: string): string {
  return `${RESERVED_PART}${part}.${kind}`;
}

const NOTED_MS = 24 * 3_600_000;

/**
 * Before a run goes on after its end. Whoever looks now and then at what is new and what is unfinished would not see it when it has ended again until then,
 * and news are not always heard.
 */
export async function noteReopened(
  { store }: Pick<Journal, 'store'>,
  { tenant, user, run }: Pick<Identity, 'tenant' | 'user' | 'run'>,
): Promise<void> {
  const namespace = [placeOf('webhooks', REOPENED), tenant];
  await store.write([{ namespace, key: run, value: { tenant, user }, ttlMs: NOTED_MS }]);
}

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

  /** What lies there under keys that begin with this text, in their order. */
  async *beginningWith(path: Namespace, text: string): AsyncGenerator<Pick<StoreItem, 'key' | 'value'>> {
    const { clock, journal } = this.#deps();
    const namespace = this.#at(path);
    // All of them stand behind the text itself.
    for (let after: Place = { namespace, key: text }; ; ) {
      const from = after;
      const page = await patiently(clock, () => journal.store.list({ namespace, limit: FEW }, from));
      for (const item of page) {
        if (item.namespace.length !== namespace.length || !item.key.startsWith(text)) return;
        yield item;
        after = item;
      }
      if (page.length < FEW) return;
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

  /** Calls `wake` when items of this kind may have been written, by any process. News may be lost. Returns a function that stops the watch. */
  watch(kind: string, wake: () => void): () => void {
    const [root = ''] = this.#at([kind]);
    return this.#deps().journal.store.watch(root, wake);
  }

  /** `watchRuns` of the journal. */
  watchRuns(wake: (run?: string) => void): () => void {
    return this.#deps().journal.watchRuns(wake);
  }

  #at([kind = '', ...path]: Namespace): Namespace {
    return [placeOf(this.#name, kind), ...path];
  }
}

const PAGE = 500;
const FEW = 25;
