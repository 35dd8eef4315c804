/** Who wants to hear that a run, or a session, has news. */
import { type Scope, type StoreWrite, scopeKey } from '#core';

export class Watchers {
  readonly #wakes = new Map<string, Set<() => void>>();
  /** Those who want to hear of whichever run. */
  readonly #ofRuns = new Set<(run?: string) => void>();

  get size(): number {
    return this.#wakes.size + this.#ofRuns.size;
  }

  get names(): string[] {
    return [...this.#wakes.keys()];
  }

  has(name: string): boolean {
    return this.#wakes.has(name);
  }

  add(run: string, wake: () => void): () => void {
    const watches = this.#wakes.get(run) ?? new Set();
    // The same function may watch twice, and a watch may end between the news and its wake.
    const watch = (): void => {
      if (watches.has(watch)) wake();
    };
    this.#wakes.set(run, watches.add(watch));
    return () => {
      watches.delete(watch);
      if (watches.size === 0 && this.#wakes.get(run) === watches) this.#wakes.delete(run);
    };
  }

  addRuns(wake: (run?: string) => void): () => void {
    const watch = (run?: string): void => {
      if (this.#ofRuns.has(watch)) wake(run);
    };
    this.#ofRuns.add(watch);
    return () => void this.#ofRuns.delete(watch);
  }

  /** Wakes later in this turn, so that a watcher that throws cannot harm the write that woke it. */
  wake(name: string): void {
    this.#wakeName(name);
    if (this.#ofRuns.size > 0 && isRun(name)) this.wakeRuns(name);
  }

  #wakeName(name: string): void {
    for (const watch of this.#wakes.get(name) ?? []) queueMicrotask(watch);
  }

  /** Those who hear of every run hear of this one; without one, that any may have news. */
  wakeRuns(run?: string): void {
    for (const watch of this.#ofRuns) queueMicrotask(() => watch(run));
  }

  /** Items were written there. */
  wakeItems(writes: readonly Pick<StoreWrite, 'namespace'>[]): void {
    for (const name of itemNames(writes)) this.wake(name);
  }

  addSession(scope: Scope, wake: () => void): () => void {
    return this.add(sessionKey(scope), wake);
  }

  wakeSession(scope: Scope): void {
    if (this.#wakes.size > 0) this.wake(sessionKey(scope));
  }

  addDue(wake: () => void): () => void {
    return this.add(DUE, wake);
  }

  wakeAll(): void {
    for (const name of this.#wakes.keys()) this.#wakeName(name);
    this.wakeRuns();
  }

  clear(): void {
    for (const watches of this.#wakes.values()) watches.clear();
    this.#wakes.clear();
    this.#ofRuns.clear();
  }
}

/** All other names begin with a slash, as no id of a run does. */
export function isRun(name: string): boolean {
  return !name.startsWith('/');
}

/** The name under which those watch who want to know of items below this first part of their namespaces. */
export function itemsKey(root: string): string {
  return `/items/${root}`;
}

export function itemNames(writes: readonly Pick<StoreWrite, 'namespace'>[]): ReadonlySet<string> {
  return new Set(writes.map(({ namespace: [root = ''] }) => itemsKey(root)));
}

/** The name under which those watch who carry out runs. No id of a run begins like this. */
export const DUE = '/due';

/** The name under which those watch who want to know which runs are read. */
export const READERS = '/readers';

/** The name under which those watch who want what passes in a run. */
export function passingKey(run: string): string {
  return `/passing/${run}`;
}

/** No id of a run begins like this. */
export function sessionKey(scope: Scope): string {
  return `/session/${scopeKey(scope)}`;
}
