/**
 * Many time limits over one timer. Nearly every limit is lifted before it is reached, so lifting one only forgets it: the
 * timer stays armed, and finds nothing to do.
 */
import { type Clock, steadyMs } from '#core';

interface Limit {
  readonly at: number;
  readonly wake: () => void;
}

export class SharedTimer implements Clock {
  readonly #clock: Clock;
  readonly #limits = new Set<Limit>();
  #armed: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  after(delayMs: number, wake: () => void): () => void {
    const limit = { at: this.steady() + delayMs, wake };
    this.#limits.add(limit);
    if (this.#armed === undefined || limit.at < this.#armed.at) this.#arm(limit.at, delayMs);
    return () => this.#limits.delete(limit);
  }

  /** A limit is a length of time: that somebody sets the clock makes it neither longer nor shorter. */
  steady(): number {
    return steadyMs(this.#clock);
  }

  /** Forgets all limits and the timer. */
  stop(): void {
    this.#limits.clear();
    this.#armed?.cancel();
    this.#armed = undefined;
  }

  #arm(at: number, delayMs: number): void {
    this.#armed?.cancel();
    this.#armed = { at, cancel: this.#clock.after(delayMs, () => this.#fire()) };
  }

  #fire(): void {
    this.#armed = undefined;
    const now = this.steady();
    for (const limit of this.#limits) {
      if (limit.at > now || !this.#limits.delete(limit)) continue;
      limit.wake();
    }
    if (this.#limits.size === 0 || this.#armed !== undefined) return;
    const at = Math.min(...[...this.#limits].map((limit) => limit.at));
    this.#arm(at, at - now);
  }
}
