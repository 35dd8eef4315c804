/** A clock on which nobody waits. */
import type { Clock } from '#core';

/** A clock whose waits are over as soon as they begin, and kept. A limit of over a minute is never reached. */
export class ImpatientClock implements Clock {
  readonly waits: number[] = [];
  #now = Date.UTC(2026, 0, 1);

  now(): number {
    return this.#now;
  }

  after(delayMs: number, wake: () => void): () => void {
    let cancelled = delayMs > 60_000;
    setImmediate(() => {
      if (cancelled) return;
      this.waits.push(delayMs);
      this.#now += delayMs;
      wake();
    });
    return () => {
      cancelled = true;
    };
  }
}
