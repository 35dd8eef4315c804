/**
 * Leases that a process wrote whose clock was ahead: by the clock of everybody else they are over long after their owner may have died. No
 * lease is longer than `MAX_LEASE_MS`, so one that ends later by the own clock is such a lease. It is over when it was seen for so long
 * without a renewal, by a clock that nobody sets: its owner renews it more often, whatever its wall clock says.
 */
import { type Clock, steadyMs } from '#core';

/** A lease is renewed every third of its length, and so need not be long. */
export const MAX_LEASE_MS = 300_000;

interface Lease {
  readonly fence: number;
  readonly until: number;
}

interface Seen extends Lease {
  /** By the steady clock. */
  readonly since: number;
}

export class LeaseWatch<Run> {
  readonly #clock: Clock;
  readonly #seen = new Map<Run, Seen>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The runs whose leases were seen for long enough, as they were then. */
  get ripe(): Run[] {
    if (this.#seen.size === 0) return [];
    const now = steadyMs(this.#clock);
    return [...this.#seen].flatMap(([run, { since }]) => (now - since >= MAX_LEASE_MS ? [run] : []));
  }

  /** Whether the lease, which is not over yet by the wall clock, is over all the same. Looks at it, and remembers it. */
  isOver(run: Run, { fence, until }: Lease, now: number): boolean {
    if (until - now <= MAX_LEASE_MS) {
      this.#seen.delete(run);
      return false;
    }
    const seen = this.#seen.get(run);
    const steadyNow = steadyMs(this.#clock);
    if (seen?.fence === fence && seen.until === until) return steadyNow - seen.since >= MAX_LEASE_MS;
    this.#seen.set(run, { fence, until, since: steadyNow });
    return false;
  }

  forget(run: Run): void {
    this.#seen.delete(run);
  }
}
