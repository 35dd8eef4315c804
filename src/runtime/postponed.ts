/** What is to be done about runs soon, one thing for each run. */
import type { Clock } from '#core';

export class Postponed {
  readonly #clock: Clock;
  readonly #cancels = new Map<string, () => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** In place of what was to be done about the run before. @param holds the process stays alive for it. */
  after(delayMs: number, run: string, act: () => void, holds: boolean = true): void {
    this.forget(run);
    const go = (): void => {
      this.#cancels.delete(run);
      act();
    };
    this.#cancels.set(run, this.#clock.after(delayMs, go, { holds }));
  }

  forget(run: string): void {
    this.#cancels.get(run)?.();
    this.#cancels.delete(run);
  }

  stop(): void {
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
  }
}
