/** Time: the clock, many time limits over one timer, and signals that are made when somebody asks for them. */

/** The clock: the only source of time. A timer with a very long delay may fire early, so that its caller must check `now` again. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `wake` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, wake: () => void, options?: TimerOptions): () => void;
  /** `after` for a time limit, which nearly always is cancelled before its time, and holds no process. Absent: `after` is one. */
  limit?(delayMs: number, wake: () => void): () => void;
  /** Milliseconds on a monotonic clock, which nobody sets. Absent: `now` is monotonic. */
  steady?(): number;
}

interface TimerOptions {
  /** True: the timer keeps the process alive. Default true. */
  readonly holds?: boolean;
}

/** The monotonic time, for measuring durations. `now` may be set meanwhile, and is for points in time. */
export function steadyMs(clock: Pick<Clock, 'now' | 'steady'>): number {
  return clock.steady?.() ?? clock.now();
}

/** Calls `wake` after `delayMs`, unless the returned function is called before, as it nearly always is. */
export function limitTime(clock: Clock, delayMs: number, wake: () => void): () => void {
  return clock.limit?.(delayMs, wake) ?? clock.after(delayMs, wake);
}

/**
 * The longest single wait for a time of the wall clock, in milliseconds: the clock may have been set, or the machine may have
 * slept.
 */
export const LONGEST_NAP_MS = 10_000;

/** In a list of its own links: to set a limit and to lift it, once a step and more, needs no table. */
interface Limit {
  readonly at: number;
  /** Absent: it is lifted. */
  wake: (() => void) | undefined;
  before: Limit | undefined;
  after: Limit | undefined;
}

/** What it counts time by: a limit is a length of time, so that somebody sets the clock makes it neither longer nor shorter. */
interface Time {
  steady(): number;
  after(delayMs: number, wake: () => void): () => void;
}

/**
 * Many time limits over one timer. Nearly every limit is lifted before it is reached, so lifting one only forgets it: the
 * timer stays armed, and finds nothing to do. It holds no process: whoever waits within a limit is waited for.
 */
class SharedTimer {
  readonly #time: Time;
  #first: Limit | undefined;
  #last: Limit | undefined;
  #armed: { readonly at: number; readonly cancel: () => void } | undefined;

  constructor(time: Time) {
    this.#time = time;
  }

  /** Calls `wake` after `delayMs`, unless the limit is lifted before, with the function that is returned. */
  limit(delayMs: number, wake: () => void): () => void {
    const limit: Limit = { at: this.#time.steady() + delayMs, wake, before: this.#last, after: undefined };
    if (this.#last === undefined) this.#first = limit;
    else this.#last.after = limit;
    this.#last = limit;
    if (this.#armed === undefined || limit.at < this.#armed.at) this.#arm(limit.at, delayMs);
    return () => this.#lift(limit);
  }

  #lift(limit: Limit): void {
    if (limit.wake === undefined) return;
    const { before, after } = limit;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // What is lifted holds nothing: where the engine has placed it among what is old, young collections would keep all that hangs on it,
    // which is a whole step.
    limit.wake = undefined;
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
        const { at, wake } = limit;
        if (at > now || wake === undefined) continue;
        this.#lift(limit);
        wake();
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

// setTimeout fires at once for delays over 2^31 - 1 ms.
const MAX_TIMER_MS = 2 ** 31 - 1;

const limits = new SharedTimer({
  steady: () => performance.now(),
  after: (delayMs, wake) => systemClock.after(delayMs, wake, { holds: false }),
});

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.now(),
  limit: (delayMs, wake) => limits.limit(delayMs, wake),
  after(delayMs, wake, { holds = true } = {}) {
    const timer = setTimeout(wake, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS));
    if (!holds) timer.unref();
    return () => clearTimeout(timer);
  },
};

/** A signal that is made when somebody asks for it: many never do, and an AbortController is not cheap. */
export class LazySignal {
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#aborted !== undefined;
  }

  /** @param reason `undefined`: an AbortError. */
  abort(reason?: unknown): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}
