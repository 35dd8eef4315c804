/** Time and chance for tests: a clock that stands still until a test moves it, and random numbers that come again. */
import type { Clock } from '#core';

interface Timer {
  readonly at: number;
  readonly wake: () => void;
  readonly holds: boolean;
}

/** A clock that stands still until a test moves it. */
export class VirtualClock implements Clock {
  #now: number;
  readonly #timers = new Set<Timer>();

  /** @param startMs milliseconds since the epoch. Default: 2026-01-01T00:00:00Z. */
  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  after(delayMs: number, wake: () => void, { holds = true }: { readonly holds?: boolean } = {}): () => void {
    const timer = { at: this.#now + Math.max(delayMs, 0), wake, holds };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that have not fired yet, and for which a process would stay alive. */
  get pending(): number {
    return [...this.#timers].filter(({ holds }) => holds).length;
  }

  /**
   * Moves time on and fires what becomes due, the earliest first, at its own time; also timers that are set meanwhile.
   * Promises that those timers resolve are continued after this call.
   */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let timer = this.#earliest(end); timer !== undefined; timer = this.#earliest(end)) {
      this.#timers.delete(timer);
      this.#now = timer.at;
      timer.wake();
    }
    this.#now = end;
  }

  /** The timer that fires next, if it is due at `end`; of equal ones the one that was set first. */
  #earliest(end: number): Timer | undefined {
    let earliest: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (earliest === undefined || timer.at < earliest.at)) earliest = timer;
    }
    return earliest;
  }
}

/** Random numbers that come again: the same seed gives the same row (mulberry32). From 0 up to, not including, 1. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
