/**
 * What this process knows of a lease that it has: until when the run is certainly its own, and for how long somebody who had
 * the run before may be at it still.
 */
import { type Clock, PilotageError, steadyMs } from '#core';
import type { Claim, Journal } from '#journal';
import { patiently } from '#journal';

/** A moment by two clocks: the one may be set, the other may stand still while the machine sleeps. */
export interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { wallMs: clock.now(), steadyMs: steadyMs(clock) };
}

/** A store that counts whole milliseconds may let a lease end by a part of one too early. */
const STORE_TICK_MS = 1;
/** The heartbeat renews a lease that often. */
export const RENEWALS_A_LEASE = 3;

export interface HeldLeaseDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly leaseMs: number;
  /** How long an owner that is not known to be dead may be at its calls after the run was taken from it. */
  readonly takeoverGraceMs: number;
}

export class HeldLease {
  readonly run: string;
  readonly fence: number;
  readonly #deps: HeldLeaseDeps;
  /** By the steady clock: one that is set forward makes no process done with its calls. */
  readonly #graceEndsAt: number | undefined;
  /** When the last commit that renewed it was asked for: the lease lasts at least that long from then on. */
  #renewedAt: Moment;

  /** @param askedAt before the claim was sent. */
  constructor(deps: HeldLeaseDeps, { run, fence, workLeftMsAgo }: Claim, askedAt: Moment) {
    this.run = run;
    this.fence = fence;
    this.#deps = deps;
    this.#renewedAt = askedAt;
    this.#graceEndsAt =
      workLeftMsAgo === undefined ? undefined : steadyMs(deps.clock) + deps.takeoverGraceMs - workLeftMsAgo;
  }

  /** @param askedAt before the renewal was sent. */
  renewed(askedAt: Moment): void {
    // Not `>`: the steady clock may stand at the same moment still, as it does while the machine sleeps, and the wall clock not.
    if (askedAt.steadyMs >= this.#renewedAt.steadyMs) this.#renewedAt = askedAt;
  }

  /** Nobody else can have claimed the run by now, as far as this process's clocks say: it did not stand still too long. */
  get isCertain(): boolean {
    return this.#ageMs < this.#deps.leaseMs - STORE_TICK_MS;
  }

  /**
   * With what an append begins an effect: the same commit renews the lease, so that the run is certainly this process's for a while from
   * then on. Absent while the last renewal is so fresh that the heartbeat owes none.
   */
  get toRenew(): number | undefined {
    const { leaseMs } = this.#deps;
    return this.#ageMs < leaseMs / RENEWALS_A_LEASE ? undefined : leaseMs;
  }

  get #ageMs(): number {
    const { clock } = this.#deps;
    const { wallMs, steadyMs: steady } = this.#renewedAt;
    return Math.max(clock.now() - wallMs, steadyMs(clock) - steady);
  }

  /**
   * Renews the lease, which only its owner can.
   * @returns how many signals the run has had.
   * @throws PilotageError `lease_lost`, or the error of the store.
   */
  async prove(): Promise<number> {
    const { journal, clock, leaseMs } = this.#deps;
    const { run, fence } = this;
    let askedAt = momentOf(clock);
    const [signals] = await patiently(clock, () => {
      askedAt = momentOf(clock);
      return journal.renew([{ run, fence }], leaseMs);
    });
    if (signals === undefined) {
      throw new PilotageError('lease_lost', `Run ${run} has been claimed by somebody else. Stop working on it.`, {
        data: { run, fence },
      });
    }
    this.renewed(askedAt);
    return signals;
  }

  /** How long what an earlier owner had under way may still take effect. 0: no longer. */
  get graceLeftMs(): number {
    if (this.#graceEndsAt === undefined) return 0;
    return Math.max(0, this.#graceEndsAt - steadyMs(this.#deps.clock));
  }
}
