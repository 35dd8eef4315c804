import { SharedTimer } from './shared-timer.ts';

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

export interface TimerOptions {
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
