/** Lets the event loop go round once: timers, signals and other runs have their turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Large values are read and stored one a turn, so that many that are ready at once do not keep everybody else waiting. */
export class LargeTurns {
  #isTaken = false;
  #stored: Promise<unknown> = Promise.resolve();

  /** Something large was read: what comes next waits for the next turn. */
  take(): void {
    if (this.#isTaken) return;
    this.#isTaken = true;
    setImmediate(() => {
      this.#isTaken = false;
    });
  }

  /** Now, when nothing large was read in this turn; else in a later one. */
  read<T>(work: () => T | Promise<T>): T | Promise<T> {
    return this.#isTaken ? this.#free().then(work) : work();
  }

  /** Runs the pieces one after the other, each in a turn of its own. */
  store<T>(work: () => Promise<T>): Promise<T> {
    const stored = this.#stored.then(async () => {
      await this.#free();
      this.take();
      return work();
    });
    this.#stored = stored.catch(() => {});
    return stored;
  }

  async #free(): Promise<void> {
    while (this.#isTaken) await turn();
  }
}
