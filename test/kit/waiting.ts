/** Waiting for a condition, and gates that hold others until a test opens them. */
import type { VirtualClock } from '#testing';

export interface Gate<T = void> {
  readonly opened: Promise<T>;
  open(value: T): void;
}

export function gate<T = void>(): Gate<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { opened: promise, open: resolve };
}

/** Rejects when the signal aborts: what a well-behaved tool waits for. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Turns of the event loop until the condition holds. A condition that never does is found by the test's time limit. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await turn();
}

/** Enough turns for everything that can go on without a gate or the clock. */
export async function quiet(): Promise<void> {
  for (let count = 0; count < 25; count += 1) await turn();
}

/** Moves the clock on, step by step, until the condition holds. */
export async function advanceUntil(clock: VirtualClock, holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await quiet();
    if (!(await holds())) clock.advance(250);
  }
}
