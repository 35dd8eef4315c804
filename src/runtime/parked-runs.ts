/**
 * Runs that were parked go on wherever a runtime is open that knows their agent, when their time has come or they were told something: over one timer,
 * for the earliest time that the store knows, and a look now and then for what other processes park. What nobody has begun, or whose process
 * died, is left to those who `work()`.
 */
import { describeThrown, PilotageError } from '#core';
import { type Claim, type ClaimedRun, isJournalGone, isTransientStoreError } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { type Moment, momentOf } from '../loop/held-lease.ts';
import type { Agents } from './agents.ts';
import type { Slot, Slots } from './slots.ts';

/** Other processes park runs, and what they say of it may be lost. */
const POLL_MS = 2_000;
/** The store's clock may be behind this clock. */
const LEAST_DELAY_MS = 5;
/** How many are claimed in one commit. */
const MOST_AT_ONCE = 256;

export interface ParkedPorts {
  /** Claims up to so many that are due; or of these, whose time has come by the own clock. */
  claim(limit: number, runs?: readonly string[]): Promise<ClaimedRun[]>;
  /** Goes on with a run that was claimed, in this slot. */
  drive(run: ClaimedRun, slot: Slot, askedAt: Moment): Promise<void>;
  giveBack(claim: Claim): Promise<void>;
}

export class ParkedRuns {
  readonly #deps: Pick<DriverDeps, 'journal' | 'clock' | 'onFault'>;
  readonly #agents: Pick<Agents, 'takenOver'>;
  readonly #slots: Slots;
  readonly #ports: ParkedPorts;
  #cancel = (): void => {};
  readonly #stopListening: () => void;
  #sweeping: Promise<void> | undefined;
  /** Asked to look again while it looks. */
  #again = false;
  #waitsForRoom = false;
  /** Parked here, and their time has come by the own clock. */
  readonly #rung = new Set<string>();
  /** Runs that were told something while it looks: they may have been claimed before. */
  readonly #heard = new Set<string>();
  #stopped = false;
  /** What was told last: a store that stays broken is told of once. */
  #told: string | undefined;

  constructor(
    deps: Pick<DriverDeps, 'journal' | 'clock' | 'onFault'>,
    agents: Pick<Agents, 'takenOver'>,
    slots: Slots,
    ports: ParkedPorts,
  ) {
    this.#deps = deps;
    this.#agents = agents;
    this.#slots = slots;
    this.#ports = ports;
    this.#stopListening = deps.journal.watchDue(() => this.look());
    this.#arm(0);
  }

  /** Some may be due now. */
  look(): void {
    if (this.#stopped) return;
    if (this.#sweeping !== undefined) {
      this.#again = true;
      return;
    }
    this.#cancel();
    this.#sweeping = this.#sweep().then((delayMs) => {
      this.#sweeping = undefined;
      this.#heard.clear();
      if (this.#again) this.look();
      else if (delayMs !== undefined) this.#arm(delayMs);
    });
  }

  /** The time of a run has come that was parked here. */
  ring(run: string): void {
    this.#rung.add(run);
    this.look();
  }

  /** A run that is not driven here was told something. */
  hear(run: string): void {
    if (this.#sweeping !== undefined) this.#heard.add(run);
  }

  /** The run was told something since its claim was asked for, which the claim may not count. */
  hasHeard(run: string): boolean {
    return this.#heard.has(run);
  }

  /** Begins nothing more, and waits for what it has begun. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopListening();
    this.#cancel();
    await this.#sweeping;
  }

  /** @returns when it looks again; `undefined`: never. */
  async #sweep(): Promise<number | undefined> {
    this.#again = false;
    const slots = this.#slots;
    try {
      const dueMs = await this.#deps.journal.nextDue(this.#agents.takenOver);
      const isDue = dueMs !== undefined && dueMs <= 0;
      const found = (isDue || this.#rung.size > 0) && (await this.#driveDue());
      this.#told = undefined;
      if (!isDue && this.#rung.size === 0) return Math.min(dueMs ?? POLL_MS, POLL_MS);
      // Nor have those of a tenant that has as many here as one may have.
      const isFull = !slots.hasRoom || slots.fullTenants().length > 0;
      if (isFull && !this.#waitsForRoom) {
        this.#waitsForRoom = true;
        slots.onRoom(() => {
          this.#waitsForRoom = false;
          // With those that become free just after it. While it looks, it is its own room that it gives back.
          if (this.#sweeping === undefined) this.#arm(LEAST_DELAY_MS);
        });
      }
      // What is due, and could not be had, is left to others, or waits for room.
      return found && slots.hasRoom ? LEAST_DELAY_MS : POLL_MS;
    } catch (error) {
      if (isJournalGone(error) || PilotageError.is(error, 'journal_read_only')) return undefined;
      // It looks again soon; whoever wants something of the store hears that it cannot be had.
      if (isTransientStoreError(error)) return POLL_MS;
      const words = describeThrown(error);
      if (words !== this.#told) this.#deps.onFault(error);
      this.#told = words;
      return POLL_MS;
    }
  }

  /** As long as all that are asked for are found, and there is room. @returns whether one was found. */
  async #driveDue(): Promise<boolean> {
    let found = false;
    while (!this.#stopped) {
      let free = 0;
      // A slot first, then the claim: no more are claimed than can be driven.
      while (free < MOST_AT_ONCE && this.#slots.takeAny()) free += 1;
      if (free === 0) break;
      const askedAt = momentOf(this.#deps.clock);
      const rung = [...this.#rung].slice(0, free);
      for (const run of rung) this.#rung.delete(run);
      let claimed: readonly ClaimedRun[] = [];
      try {
        claimed = await (rung.length === 0 ? this.#ports.claim(free) : this.#ports.claim(free, rung));
      } catch (error) {
        for (const run of rung) this.#rung.add(run);
        throw error;
      } finally {
        for (let left = free - claimed.length; left > 0; left -= 1) this.#slots.freeAny();
      }
      const drives = await Promise.allSettled(claimed.map((run) => this.#goOn(run, askedAt)));
      for (const drive of drives) if (drive.status === 'rejected') throw drive.reason;
      found ||= claimed.length > 0;
      if (rung.length === 0 && claimed.length < free) break;
    }
    return found;
  }

  /** A slot was taken for it. A tenant that has no more room has its run back as it was. */
  async #goOn(run: ClaimedRun, askedAt: Moment): Promise<void> {
    const slot = this.#slots.assign(run.tenant);
    if (slot !== undefined) return this.#ports.drive(run, slot, askedAt);
    this.#slots.freeAny();
    await this.#ports.giveBack(run.claim);
  }

  /** The process need not stay alive for it. */
  #arm(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancel();
    this.#cancel = this.#deps.clock.after(Math.max(delayMs, LEAST_DELAY_MS), () => this.look(), { holds: false });
  }
}
