/** Claims runs that are due, no more than there are slots for, and goes on with each of them. */
import type { Clock } from '#core';
import type { Claim, ClaimedRun } from '#journal';
import { type Moment, momentOf } from '../loop/held-lease.ts';
import type { Slot, Slots } from './slots.ts';

/** How many are claimed in one commit. */
const MOST_AT_ONCE = 256;

export interface ClaimingPorts {
  /** Goes on with a run that was claimed, in this slot. `hasNews`: it was told something since its claim was asked for, which the claim may not count. */
  drive(run: ClaimedRun, slot: Slot, askedAt: Moment, hasNews: () => boolean): Promise<void>;
  giveBack(claim: Claim): Promise<void>;
  /** Slots that were taken may be free again. */
  freed(): void;
}

export class Claiming {
  readonly #clock: Clock;
  readonly #slots: Slots;
  readonly #ports: ClaimingPorts;
  /** Runs that were told something while some were being claimed. */
  readonly #heard = new Set<string>();
  #underWay = 0;
  /** Claims whose runs are not known yet. */
  readonly #asked = new Set<Promise<unknown>>();

  constructor(clock: Clock, slots: Slots, ports: ClaimingPorts) {
    this.#clock = clock;
    this.#slots = slots;
    this.#ports = ports;
  }

  /** A run that is not driven here was told something. */
  hear(run: string): void {
    if (this.#underWay > 0) this.#heard.add(run);
  }

  /**
   * A slot first, then the claim. @param claim claims up to so many.
   * @returns how many slots there were, and how many runs were found for them.
   */
  async some(claim: (room: number) => Promise<readonly ClaimedRun[]>): Promise<{ room: number; found: number }> {
    let room = 0;
    while (room < MOST_AT_ONCE && this.#slots.takeAny()) room += 1;
    if (room === 0) return { room, found: 0 };
    this.#underWay += 1;
    try {
      const askedAt = momentOf(this.#clock);
      const claimed = await this.#known(this.#claimed(room, claim));
      const drives = await Promise.allSettled(claimed.map((run) => this.#goOn(run, askedAt)));
      for (const drive of drives) if (drive.status === 'rejected') throw drive.reason;
      return { room, found: claimed.length };
    } finally {
      this.#underWay -= 1;
      this.#ports.freed();
      if (this.#underWay === 0) this.#heard.clear();
    }
  }

  async #known<T>(asked: Promise<T>): Promise<T> {
    this.#asked.add(asked);
    try {
      return await asked;
    } finally {
      this.#asked.delete(asked);
    }
  }

  /** Until those that are being claimed now are being looked at. `undefined`: none are. */
  untilKnown(): Promise<unknown> | undefined {
    return this.#asked.size === 0 ? undefined : Promise.allSettled(this.#asked);
  }

  async #claimed(
    room: number,
    claim: (room: number) => Promise<readonly ClaimedRun[]>,
  ): Promise<readonly ClaimedRun[]> {
    let claimed: readonly ClaimedRun[] = [];
    try {
      claimed = await claim(room);
      return claimed;
    } finally {
      for (let left = room - claimed.length; left > 0; left -= 1) this.#slots.freeAny();
    }
  }

  /** A slot was taken for it. A tenant that has no more room has its run back as it was. */
  async #goOn(run: ClaimedRun, askedAt: Moment): Promise<void> {
    const slot = this.#slots.assign(run.tenant);
    if (slot !== undefined) return this.#ports.drive(run, slot, askedAt, () => this.#heard.has(run.claim.run));
    this.#slots.freeAny();
    await this.#ports.giveBack(run.claim);
  }
}
