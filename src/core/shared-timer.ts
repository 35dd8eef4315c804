/**
 * Many time limits over one timer. Nearly every limit is lifted before it is reached, so lifting one only forgets it: the
 * timer stays armed, and finds nothing to do. It holds no process: whoever waits within a limit is waited for.
 */

interface Limit {
  readonly at: number;
  readonly wake: () => void;
}

/** What it counts time by: a limit is a length of time, so that somebody sets the clock makes it neither longer nor shorter. */
interface Time {
  steady(): number;
  after(delayMs: number, wake: () => void): () => void;
}

export class SharedTimer {
  readonly #time: Time;
  readonly #limits = new Set<Limit>();
  #armed: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(time: Time) {
    this.#time = time;
  }

  /** Calls `wake` after `delayMs`, unless the limit is lifted before, with the function that is returned. */
  limit(delayMs: number, wake: () => void): () => void {
    const limit = { at: this.#time.steady() + delayMs, wake };
    this.#limits.add(limit);
    if (this.#armed === undefined || limit.at < this.#armed.at) this.#arm(limit.at, delayMs);
    return () => this.#limits.delete(limit);
  }

  #arm(at: number, delayMs: number): void {
    this.#armed?.cancel();
    this.#armed = { at, cancel: this.#time.after(delayMs, () => this.#fire()) };
  }

  #fire(): void {
    this.#armed = undefined;
    const now = this.#time.steady();
    try {
      // Those that are set meanwhile have their own turn.
      for (const limit of [...this.#limits]) {
        if (limit.at > now || !this.#limits.delete(limit)) continue;
        limit.wake();
      }
    } finally {
      this.#armForNext();
    }
  }

  /** What was woken may have armed the timer already, but for its own limit: an earlier one of somebody else counts all the same. */
  #armForNext(): void {
    let at = Number.POSITIVE_INFINITY;
    for (const limit of this.#limits) at = Math.min(at, limit.at);
    if (at < (this.#armed?.at ?? Number.POSITIVE_INFINITY)) this.#arm(at, at - this.#time.steady());
  }
}
