/**
 * The time by the database's clock, as this process knows it. Each answer that tells the time lies between two moments of this machine, so it bounds
 * how far the machine's clock may be from the database's. Within the bounds the machine's clock counts: one that is right stays what it is, and one
 * that is wrong, or was set, is put right by as much as it is certainly wrong.
 */
import { type Clock, systemClock } from '#core';

/** A clock that counts whole milliseconds stands still for so long. */
const TICK_MS = 1;

export class StoreTime {
  readonly #machine: Pick<Clock, 'now'>;
  #aheadMs = 0;

  constructor(machine: Pick<Clock, 'now'> = systemClock) {
    this.#machine = machine;
  }

  now(): number {
    return Math.round(this.#machine.now() + this.#aheadMs);
  }

  /** Asks somebody who answers with the time of the database. */
  async during<T>(ask: () => Promise<T>, timeIn: (answer: T) => number): Promise<T> {
    const askedAt = this.#machine.now();
    const answer = await ask();
    const [time, answeredAt] = [timeIn(answer), this.#machine.now()];
    const [least, most] = [time - answeredAt - TICK_MS, time - askedAt];
    // A machine whose clock was set back in between says nothing.
    if (least <= most) this.#aheadMs = Math.min(Math.max(this.#aheadMs, least), most);
    return answer;
  }
}
