/**
 * Claims the due runs that come next here, so that no tenant waits for another's backlog: while one has more than its share of the slots,
 * those of the others are looked for first.
 */
import { type Clock, steadyMs } from '#core';
import type { ClaimedRun } from '#journal';
import type { Slots } from './slots.ts';

/** So long it is not asked again whether others wait, when none did. It is the most that a backlog delays them, beside a slot that must be free. */
const ALONE_MS = 200;

/** Claims up to so many that are due, those that come first, of none of these tenants. */
type Claim = (which: {
  readonly exceptTenants: readonly string[];
  readonly limit: number;
}) => Promise<readonly ClaimedRun[]>;

export class FairClaim {
  readonly #clock: Clock;
  readonly #slots: Slots;
  readonly #claim: Claim;
  /** By the steady clock: when nobody else waited. */
  #aloneAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, slots: Slots, claim: Claim) {
    this.#clock = clock;
    this.#slots = slots;
    this.#claim = claim;
  }

  /** Up to so many. */
  async next(room: number): Promise<readonly ClaimedRun[]> {
    const { perTenant } = this.#slots;
    const share = this.#slots.shareWith(0);
    const full = this.#slots.tenantsWith(perTenant);
    const greedy = this.#slots.tenantsWith(share);
    const now = steadyMs(this.#clock);
    const hasGreedy = greedy.length > full.length;
    if (hasGreedy && now - this.#aloneAt >= ALONE_MS) {
      const others = await this.#shared(greedy, room);
      if (others.length > 0) return others;
      this.#aloneAt = now;
    }
    return hasGreedy ? this.#upTo(perTenant - this.#slots.mostOfOne(full), full, room) : this.#shared(full, room);
  }

  /** So few that none of the others has more than its share then, whosever the runs are, also if they are all of a tenant that has none here yet. */
  #shared(exceptTenants: readonly string[], room: number): Promise<readonly ClaimedRun[]> {
    const ofOne = this.#slots.shareWith(0) - this.#slots.mostOfOne(exceptTenants);
    return this.#upTo(Math.min(ofOne, this.#slots.shareWith(1)), exceptTenants, room);
  }

  #upTo(most: number, exceptTenants: readonly string[], room: number): Promise<readonly ClaimedRun[]> {
    return this.#claim({ exceptTenants, limit: Math.min(room, Math.max(1, most)) });
  }
}
