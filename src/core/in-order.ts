/** Keeps what a process does with one thing, such as a run or a schedule, in the order in which it was asked. */

export class InOrder {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Does it when all that was asked before under one of these names is done. It never waits for what is asked later. */
  after<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = names.flatMap((name) => this.#last.get(name) ?? []);
    const done = before.length === 0 ? work() : Promise.allSettled(before).then(work);
    for (const name of names) {
      this.#last.set(name, done);
      const forget = (): void => {
        if (this.#last.get(name) === done) this.#last.delete(name);
      };
      done.then(forget, forget);
    }
    return done;
  }

  /** All that was asked is done. */
  async settled(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values());
  }
}
