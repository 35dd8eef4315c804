/** Who wants to hear that a run, or a session, has news. */
import { type Scope, scopeKey } from '#core';

export class Watchers {
  readonly #wakes = new Map<string, Set<() => void>>();

  get size(): number {
    return this.#wakes.size;
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

  /** Wakes later in this turn, so that a watcher that throws cannot harm the write that woke it. */
  wake(run: string): void {
    for (const watch of this.#wakes.get(run) ?? []) queueMicrotask(watch);
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
    for (const run of this.#wakes.keys()) this.wake(run);
  }

  clear(): void {
    for (const watches of this.#wakes.values()) watches.clear();
    this.#wakes.clear();
  }
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
