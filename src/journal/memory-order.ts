/** The runs of a journal in memory: by their ids, by their sessions, by the runs that have started them, and in the order of their age. */
import { type Scope, scopeKey } from '#core';
import type { StoredRun } from './memory-runs.ts';
import type { RunQuery } from './port.ts';

const NONE: ReadonlySet<StoredRun> = new Set();

export class StoredRuns {
  readonly #byId = new Map<string, StoredRun>();
  readonly #bySession = new Map<string, Set<StoredRun>>();
  readonly #byParent = new Map<string, Set<StoredRun>>();
  /** By age. Runs that were deleted stand in it until they are more than those that are there. */
  #inOrder: StoredRun[] = [];

  get(id: string): StoredRun | undefined {
    return this.#byId.get(id);
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** Runs are added in the order of their age. */
  add(run: StoredRun): void {
    const { identity, first } = run;
    this.#byId.set(identity.run, run);
    this.#inOrder.push(run);
    addTo(this.#bySession, scopeKey(identity), run);
    if (first.task !== undefined) addTo(this.#byParent, first.task.parent, run);
  }

  delete(run: StoredRun): void {
    const { identity, first } = run;
    this.#byId.delete(identity.run);
    deleteFrom(this.#bySession, scopeKey(identity), run);
    if (first.task !== undefined) deleteFrom(this.#byParent, first.task.parent, run);
    if (this.#inOrder.length > 2 * this.#byId.size) this.#inOrder = this.#inOrder.filter((each) => this.#isThere(each));
  }

  /** All runs of a session, by age. */
  ofSession(scope: Scope): ReadonlySet<StoredRun> {
    return this.#bySession.get(scopeKey(scope)) ?? NONE;
  }

  /** The tasks of a run, by age. */
  tasksOf(run: string): ReadonlySet<StoredRun> {
    return this.#byParent.get(run) ?? NONE;
  }

  /** Those of this age and younger, by age. */
  *from(age: number): Generator<StoredRun, void> {
    const runs = this.#inOrder;
    for (let at = this.#place(age); at < runs.length; at += 1) {
      const run = runs[at];
      if (run !== undefined && this.#isThere(run)) yield run;
    }
  }

  /** Runs among which are all that the query asks for, the youngest first, and none of this age or younger. */
  *newestFirst({ parent, tenant, user, session }: RunQuery, age: number): Generator<StoredRun, void> {
    const isOfSession = tenant !== undefined && user !== undefined && session !== undefined;
    const among =
      typeof parent === 'string'
        ? this.tasksOf(parent)
        : isOfSession
          ? this.ofSession({ tenant, user, session })
          : undefined;
    if (among !== undefined) yield* [...among].filter((run) => run.age < age).reverse();
    else {
      const runs = this.#inOrder;
      for (let at = this.#place(age) - 1; at >= 0; at -= 1) {
        const run = runs[at];
        if (run !== undefined && this.#isThere(run)) yield run;
      }
    }
  }

  #isThere(run: StoredRun): boolean {
    return this.#byId.get(run.identity.run) === run;
  }

  /** Where in the order the first run of this age or younger stands. */
  #place(age: number): number {
    let [low, high] = [0, this.#inOrder.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#inOrder[middle]?.age ?? 0) < age) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function addTo(index: Map<string, Set<StoredRun>>, name: string, run: StoredRun): void {
  const runs = index.get(name) ?? new Set();
  index.set(name, runs.add(run));
}

function deleteFrom(index: Map<string, Set<StoredRun>>, name: string, run: StoredRun): void {
  const runs = index.get(name);
  runs?.delete(run);
  if (runs?.size === 0) index.delete(name);
}
