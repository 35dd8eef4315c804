/** Rings when a run's time is over. Limits are replaced when somebody raises them, and the timer with them. */
import { type Clock, LONGEST_NAP_MS, type RunLimits } from '#core';

export class Deadline {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #limits: RunLimits | undefined;
  #cancel = (): void => {};

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** May ring at once. */
  arm(limits: RunLimits): void {
    if (this.#limits === limits) return;
    this.#cancel();
    this.#limits = limits;
    if (limits.deadlineAt !== undefined && limits.onCeiling !== 'pause') this.#check(limits.deadlineAt);
  }

  cancel(): void {
    this.#cancel();
  }

  #check(deadlineAt: number): void {
    const left = deadlineAt - this.#clock.now();
    if (left <= 0) this.#ring();
    else this.#cancel = this.#clock.after(Math.min(left, LONGEST_NAP_MS), () => this.#check(deadlineAt));
  }
}
