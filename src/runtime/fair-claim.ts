/**
 * Claims the due run that comes next here, so that no tenant waits for another's backlog: while one has more than its share of the slots,
 * those of the others are looked for first.
 */
import { type Clock, steadyMs } from '#core';
import type { Claim } from '#journal';
import type { Slots } from './slots.ts';

/** So long it is not asked again whether others wait, when none did. It is the most that a backlog delays them, beside a slot that must be free. */
const ALONE_MS = 200;

export class FairClaim {
  readonly #clock: Clock;
  readonly #slots: Slots;
  readonly #claim: (exceptTenants: readonly string[]) => Promise<Claim | undefined>;
  /** By the steady clock: when nobody else waited. */
  #aloneAt = Number.NEGATIVE_INFINITY;

  /** @param claim claims the first that is due, of none of these tenants. */
  constructor(clock: Clock, slots: Slots, claim: (exceptTenants: readonly string[]) => Promise<Claim | undefined>) {
    this.#clock = clock;
    this.#slots = slots;
    this.#claim = claim;
  }

  async next(): Promise<Claim | undefined> {
    const full = this.#slots.fullTenants();
    const greedy = this.#slots.tenantsOverShare();
    const now = steadyMs(this.#clock);
    if (greedy.length > full.length && now - this.#aloneAt >= ALONE_MS) {
      const others = await this.#claim(greedy);
      if (others !== undefined) return others;
      this.#aloneAt = now;
    }
    return this.#claim(full);
  }
}
