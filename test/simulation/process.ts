/** The processes that live in simulated time: each can die, stand still without knowing of it, and has clocks of its own. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '#core';
import type { ProcessSurroundings } from '#runtime';
import { never } from '#testing';
import type { SimulatedTime } from './time.ts';

/** The process whose code runs now, also behind an `await` and in a timer. */
const running = new AsyncLocalStorage<SimulatedProcess>();

/** `undefined` for what belongs to no process: the store, and whoever plays the history. */
export function runningProcess(): SimulatedProcess | undefined {
  return running.getStore();
}

export class SimulatedProcess {
  readonly name: string;
  /** What a runtime in it is given: the wall clock, and timers that go by the other one. */
  readonly clock: Clock;
  /** What it can find out about itself and its neighbours. Absent: nothing. */
  readonly surroundings: ProcessSurroundings | undefined;
  /** It has a newer version of the program than others. */
  readonly isNewer: boolean;
  readonly #time: SimulatedTime;
  #alive = true;
  #asleepUntil = 0;
  #wallAheadMs: number;
  #sleptMs = 0;
  /** What came while it stood still. */
  readonly #held: (() => void)[] = [];
  /** What goes on when it stands still no more, although it is dead. */
  readonly #after = new Set<() => void>();

  /** @param wallAheadMs by how much its wall clock is ahead of the store's; negative: behind. */
  constructor(name: string, time: SimulatedTime, wallAheadMs = 0, surroundings?: ProcessSurroundings, isNewer = false) {
    this.isNewer = isNewer;
    this.name = name;
    this.#time = time;
    this.#wallAheadMs = wallAheadMs;
    this.surroundings = surroundings;
    this.clock = {
      now: () => this.wallMs(),
      steady: () => this.steadyMs(),
      after: (delayMs, wake) => {
        let cancelled = false;
        const cancel = time.after(delayMs, () => {
          this.deliver(() => {
            if (!cancelled) wake();
          });
        });
        return () => {
          cancelled = true;
          cancel();
        };
      },
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** For so long it stands still from now on; a dead one does not. */
  get sleepsMs(): number {
    return this.#alive ? Math.max(0, this.#asleepUntil - this.#time.now()) : 0;
  }

  /** The clock that people and servers set. */
  wallMs(): number {
    return this.#time.now() + this.#wallAheadMs;
  }

  /** The clock that nobody sets, and that stands still while the machine sleeps. */
  steadyMs(): number {
    return this.#time.now() - this.#sleptMs;
  }

  /** Somebody sets its wall clock. */
  setWall(aheadMs: number): void {
    this.#wallAheadMs = aheadMs;
  }

  kill(): void {
    this.#alive = false;
    this.#goOn();
  }

  /** @param machineSleeps its steady clock stands still too. */
  stall(ms: number, machineSleeps = false): void {
    const before = Math.max(this.#asleepUntil, this.#time.now());
    this.#asleepUntil = Math.max(before, this.#time.now() + ms);
    if (machineSleeps) this.#sleptMs += this.#asleepUntil - before;
  }

  wake(): void {
    const leftMs = this.#asleepUntil - this.#time.now();
    if (leftMs > 0) this.#sleptMs = Math.max(0, this.#sleptMs - leftMs);
    this.#asleepUntil = 0;
    this.#time.after(0, () => this.#thaw());
    this.#goOn();
  }

  /** Does this when it stands still no more: it has stood still for long enough, is woken, or has died. Gives the way to leave it. */
  whenAwake(act: () => void): () => void {
    const goesOn = (): void => {
      if (leave()) act();
    };
    const leave = (): boolean => {
      cancel();
      return this.#after.delete(goesOn);
    };
    const cancel = this.#time.after(this.sleepsMs, goesOn);
    this.#after.add(goesOn);
    return leave;
  }

  #goOn(): void {
    for (const goesOn of [...this.#after]) this.#time.after(0, goesOn);
  }

  /** Does this as the process, now. */
  within<T>(act: () => T): T {
    return running.run(this, act);
  }

  /** Does this in the process: now, when it wakes up, or never. */
  deliver(act: () => void): void {
    if (!this.#alive) return;
    if (this.#asleepUntil <= this.#time.now() && this.#held.length === 0) {
      running.run(this, act);
      return;
    }
    this.#held.push(act);
    if (this.#held.length === 1) this.#time.after(this.#asleepUntil - this.#time.now(), () => this.#thaw());
  }

  #thaw(): void {
    const leftMs = this.#asleepUntil - this.#time.now();
    if (leftMs > 0) {
      if (this.#held.length > 0) this.#time.after(leftMs, () => this.#thaw());
      return;
    }
    for (const act of this.#held.splice(0)) this.deliver(act);
  }

  /** Resolves in the process after so long. */
  wait(delayMs: number): Promise<void> {
    if (!this.#alive) return never();
    if (delayMs <= 0 && this.#asleepUntil <= this.#time.now()) return Promise.resolve();
    return new Promise((resolve) => this.#time.after(delayMs, () => this.deliver(resolve)));
  }
}
