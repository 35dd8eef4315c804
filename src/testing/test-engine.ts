/** An engine in memory, as small as one can be: it wakes runs when they are due, one at a time each, in any process that works. */
import type { Advance, Advanced, Driver } from '#runtime';

interface Worker {
  readonly advance: Advance;
  readonly under: Set<Promise<void>>;
}

export class TestEngine {
  readonly #workers: Worker[] = [];
  /** Due runs that no process takes yet. */
  readonly #due = new Set<string>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Runs that are being advanced; true: they were woken meanwhile. */
  readonly #under = new Map<string, boolean>();

  /** The driver of one process. */
  driver(): Driver {
    let worker: Worker | undefined;
    return {
      start: (advance) => {
        worker = { advance, under: new Set() };
        this.#workers.push(worker);
        this.#next();
      },
      wake: async (run, at = 0) => this.#wake(run, at),
      stop: async () => {
        if (worker === undefined) return;
        this.#workers.splice(this.#workers.indexOf(worker), 1);
        await Promise.all(worker.under);
      },
    };
  }

  /** Wakes nobody any more. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#due.clear();
  }

  #wake(run: string, at: number): void {
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        this.#due.add(run);
        this.#next();
      },
      Math.max(0, at - Date.now()),
    );
    this.#timers.add(timer);
  }

  #next(): void {
    for (const run of this.#due) {
      // Each process has its turn.
      const worker = this.#workers.shift();
      if (worker === undefined) return;
      this.#workers.push(worker);
      this.#due.delete(run);
      if (this.#under.has(run)) {
        this.#under.set(run, true);
        continue;
      }
      this.#under.set(run, false);
      const advanced = worker.advance(run).then((next) => this.#answered(run, next));
      worker.under.add(advanced);
      void advanced.finally(() => worker.under.delete(advanced));
    }
  }

  #answered(run: string, advanced: Advanced): void {
    const isWoken = this.#under.get(run) === true;
    this.#under.delete(run);
    if (advanced.next === 'again' || isWoken) this.#wake(run, 0);
    if (advanced.next === 'wait' && advanced.at !== undefined) this.#wake(run, advanced.at);
    if (advanced.next === 'busy') this.#wake(run, advanced.until);
  }
}
