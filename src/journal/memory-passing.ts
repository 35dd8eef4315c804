/** What passes in runs, in the memory of this process: for two runtimes on one journal. */
import { type NewPassing, type PassingRow, type PassingStore, READ_LATELY_MS, type ReadRun } from './port-passing.ts';
import { passingKey, READERS, type Watchers } from './watchers.ts';

/** How the journal lends its state. */
interface Access {
  /** Throws that the journal is closed. */
  readonly assertOpen: () => void;
  /** `undefined`: there is no such run. */
  readonly fenceOf: (run: string) => number | undefined;
  readonly now: () => number;
  readonly watchers: Watchers;
}

export class MemoryPassing implements PassingStore {
  readonly #access: Access;
  readonly #until = new Map<string, number>();
  readonly #rows = new Map<string, PassingRow[]>();
  #numbers = 0;

  constructor(access: Access) {
    this.#access = access;
  }

  async want(runs: readonly string[], forMs: number): Promise<void> {
    this.#access.assertOpen();
    const now = this.#access.now();
    for (const [run, until] of this.#until) if (until < now - READ_LATELY_MS) this.drop(run);
    for (const run of runs) {
      if (this.#access.fenceOf(run) === undefined) continue;
      this.#until.set(run, Math.max(this.#until.get(run) ?? 0, now + forMs));
    }
    this.#access.watchers.wake(READERS);
  }

  async wanted(): Promise<readonly ReadRun[]> {
    this.#access.assertOpen();
    const now = this.#access.now();
    return [...this.#until].map(([run, until]) => ({ run, leftMs: until - now }));
  }

  watchWanted(wake: () => void): () => void {
    this.#access.assertOpen();
    return this.#access.watchers.add(READERS, wake);
  }

  async put(rows: readonly NewPassing[]): Promise<void> {
    this.#access.assertOpen();
    for (const { run, fence, clears = false, value } of rows) {
      if (this.#access.fenceOf(run) !== fence) continue;
      const before = clears ? [] : (this.#rows.get(run) ?? []);
      this.#numbers += 1;
      const added = value === undefined ? [] : [Object.freeze({ number: this.#numbers, fence, value })];
      this.#rows.set(run, [...before, ...added]);
      this.#access.watchers.wake(passingKey(run));
    }
  }

  async read(run: string, after: number): Promise<readonly PassingRow[]> {
    this.#access.assertOpen();
    if (this.#access.fenceOf(run) === undefined) return [];
    return (this.#rows.get(run) ?? []).filter(({ number }) => number > after);
  }

  watch(run: string, wake: () => void): () => void {
    this.#access.assertOpen();
    return this.#access.watchers.add(passingKey(run), wake);
  }

  drop(run: string): void {
    this.#until.delete(run);
    this.#rows.delete(run);
  }
}
