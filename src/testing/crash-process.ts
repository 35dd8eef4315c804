/**
 * A process that can die, played inside this one. From the moment of its death nothing it asks for is answered, and
 * nothing it does reaches the store or the world.
 */
import type { Clock } from '#core';

export class CrashProcess {
  /** What it reached, in order: the moments at which it could have died. */
  readonly points: string[] = [];
  readonly died: Promise<void>;
  readonly #dieAt: number | undefined;
  readonly #underWay = new Set<Promise<unknown>>();
  #alive = true;
  #activity = 0;
  #busy = 0;
  #announceDeath: () => void = () => {};

  /** @param dieAt index of the point at which it dies; absent: it lives. */
  constructor(dieAt?: number) {
    this.#dieAt = dieAt;
    this.died = new Promise((resolve) => {
      this.#announceDeath = resolve;
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Grows with everything that happens in it. */
  get activity(): number {
    return this.#activity;
  }

  /** Something is under way that does not wait for the clock. */
  get busy(): boolean {
    return this.#busy > 0;
  }

  /** Resolves when it may go on: at once, or never. */
  reach(point: string): Promise<void> {
    if (!this.#alive) return never();
    this.#activity += 1;
    this.points.push(point);
    if (this.points.length - 1 !== this.#dieAt) return Promise.resolve();
    this.kill();
    return never();
  }

  kill(): void {
    this.#alive = false;
    this.#announceDeath();
  }

  /** `work` as the process sees it: a dead one starts nothing and hears of nothing. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#alive) return never();
    const leave = this.enter();
    const made = work();
    this.#underWay.add(made);
    try {
      const value = await made;
      if (this.#alive) return value;
    } catch (error) {
      if (this.#alive) throw error;
    } finally {
      this.#underWay.delete(made);
      leave();
    }
    return never();
  }

  /** Busy until the returned function is called. */
  enter(): () => void {
    this.#busy += 1;
    this.#activity += 1;
    return () => {
      this.#busy -= 1;
      this.#activity += 1;
    };
  }

  /** Waits for guarded work that was under way at its death: a store may still finish it. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** `clock` as the process sees it: its timers die with it. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      after: (delayMs, wake) =>
        clock.after(delayMs, () => {
          if (this.#alive) wake();
        }),
    };
  }
}

export function never<T>(): Promise<T> {
  return new Promise(() => {});
}
