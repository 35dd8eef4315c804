/** Reading what is there already, without keeping others waiting: between so much of it the event loop goes round. */
import type { Clock } from '#core';

/**
 * The work of one turn of the event loop, for all streams of a process together: this many short parts, or 64 KiB. The shortest
 * events take about 20 ms of work then.
 */
const UNITS_A_TURN = 256;
/** What is longer counts as several. */
const UNIT_CHARS = 256;

export class Pace {
  #left = UNITS_A_TURN;
  #nextTurn: Promise<void> | undefined;

  /**
   * Asked before so many characters or bytes, in one part, are worked on. `undefined`: at once, as nearly always for what comes bit by bit.
   */
  take(chars: number): Promise<void> | undefined {
    const units = 1 + Math.floor(chars / UNIT_CHARS);
    if (this.#left <= 0) return this.#wait(units);
    this.#left -= units;
    return undefined;
  }

  /** Who has waited longest comes first, and may leave nothing of the turn for those behind. */
  async #wait(units: number): Promise<void> {
    do {
      this.#nextTurn ??= new Promise((resolve) => {
        setImmediate(() => {
          this.#left = UNITS_A_TURN;
          this.#nextTurn = undefined;
          resolve();
        });
      });
      await this.#nextTurn;
    } while (this.#left <= 0);
    this.#left -= units;
  }
}

/** A process has one clock, and a simulated process one of its own. */
const PACES = new WeakMap<Clock, Pace>();

/** The one that all streams of the process share. */
export function paceOf(clock: Clock): Pace {
  const found = PACES.get(clock);
  if (found !== undefined) return found;
  const pace = new Pace();
  PACES.set(clock, pace);
  return pace;
}
