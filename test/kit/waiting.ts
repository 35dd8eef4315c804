/** Waiting for a condition, and gates that hold others until a test opens them. */
import { setTimeout as delay } from 'node:timers/promises';
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

/**
 * Turns of the event loop until the condition holds. A condition that never does is found by the test's time limit. What takes more
 * turns than `quiet` is awaited from another process, or from a clock, and looking for it must not take the time that it needs.
 */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let turns = 0; !(await holds()); turns += 1) await (turns < QUIET_TURNS ? turn() : delay(1));
}

const QUIET_TURNS = 25;

/** Enough turns for everything that can go on without a gate or the clock. */
export async function quiet(): Promise<void> {
  for (let count = 0; count < QUIET_TURNS; count += 1) await turn();
}

/** Moves the clock on, step by step, until the condition holds. */
export async function advanceUntil(clock: VirtualClock, holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await quiet();
    if (!(await holds())) clock.advance(250);
  }
}
