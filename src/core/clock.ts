/** Time enters by this port only. A timer may fire early when the delay is very long: whoever waits looks at `now` again. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `wake` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, wake: () => void): () => void;
}

// setTimeout fires at once for delays over 2^31 - 1 ms.
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, wake) {
    const timer = setTimeout(wake, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};
