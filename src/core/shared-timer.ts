/**
 * Many time limits over one timer. Nearly every limit is lifted before it is reached, so lifting one only forgets it: the
 * timer stays armed, and finds nothing to do. It holds no process: whoever waits within a limit is waited for.
 */

/** In a list of its own links: to set a limit and to lift it, once a step and more, needs no table. */
interface Limit {
  readonly at: number;
  readonly wake: () => void;
  isSet: boolean;
  before: Limit | undefined;
  after: Limit | undefined;
}

/** What it counts time by: a limit is a length of time, so that somebody sets the clock makes it neither longer nor shorter. */
interface Time {
  steady(): number;
  after(delayMs: number, wake: () => void): () => void;
}

export class SharedTimer {
  readonly #time: Time;
  #first: Limit | undefined;
  #last: Limit | undefined;
  #armed: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(time: Time) {
    this.#time = time;
  }

  /** Calls `wake` after `delayMs`, unless the limit is lifted before, with the function that is returned. */
  limit(delayMs: number, wake: () => void): () => void {
    const limit: Limit = { at: this.#time.steady() + delayMs, wake, isSet: true, before: this.#last, after: undefined };
    if (this.#last === undefined) this.#first = limit;
    else this.#last.after = limit;
    this.#last = limit;
    if (this.#armed === undefined || limit.at < this.#armed.at) this.#arm(limit.at, delayMs);
    return () => this.#lift(limit);
  }

  #lift(limit: Limit): void {
    if (!limit.isSet) return;
    limit.isSet = false;
    const { before, after } = limit;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // What is lifted holds no other limit: the collector would keep a chain of them.
    limit.before = undefined;
    limit.after = undefined;
  }

  *#set(): Generator<Limit> {
    for (let limit = this.#first; limit !== undefined; limit = limit.after) yield limit;
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
      for (const limit of [...this.#set()]) {
        if (limit.at > now || !limit.isSet) continue;
        this.#lift(limit);
        limit.wake();
      }
    } finally {
      this.#armForNext();
    }
  }

  /** What was woken may have armed the timer already, but for its own limit: an earlier one of somebody else counts all the same. */
  #armForNext(): void {
    let at = Number.POSITIVE_INFINITY;
    for (const limit of this.#set()) at = Math.min(at, limit.at);
    if (at < (this.#armed?.at ?? Number.POSITIVE_INFINITY)) this.#arm(at, at - this.#time.steady());
  }
}
