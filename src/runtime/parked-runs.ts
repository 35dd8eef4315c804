/**
 * Runs that were parked go on wherever a runtime is open that knows their agent, when their time has come or they were told something: over one timer,
 * for the earliest time that the store knows, and a look now and then for what other processes park. What nobody has begun, or whose process
 * died, is left to those who `work()`.
 */
import { describeThrown, PilotageError } from '#core';
import { isJournalGone, isTransientStoreError } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { Slots } from './slots.ts';

/** Other processes park runs, and tell them something, without a word to this one. */
const POLL_MS = 2_000;
/** The store's clock may be behind this clock. */
const LEAST_DELAY_MS = 5;
/** How many are claimed side by side, so that their claims share a commit. */
const MOST_AT_ONCE = 64;

export class ParkedRuns {
  readonly #deps: Pick<DriverDeps, 'journal' | 'clock' | 'onFault'>;
  readonly #agents: readonly string[];
  readonly #slots: Slots;
  readonly #driveNext: () => Promise<boolean>;
  #cancel = (): void => {};
  #sweeping: Promise<void> | undefined;
  /** Asked to look again while it looks. */
  #again = false;
  #waitsForRoom = false;
  /** How many are asked for at once: more and more while each is found, as many as before when the next are due. */
  #count = 1;
  #stopped = false;
  /** What was told last: a store that stays broken is told of once. */
  #told: string | undefined;

  /** @param driveNext takes over one that is due. False when none is, or no slot is free. */
  constructor(
    deps: Pick<DriverDeps, 'journal' | 'clock' | 'onFault'>,
    agents: readonly string[],
    slots: Slots,
    driveNext: () => Promise<boolean>,
  ) {
    this.#deps = deps;
    this.#agents = agents;
    this.#slots = slots;
    this.#driveNext = driveNext;
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
      if (this.#again) this.look();
      else if (delayMs !== undefined) this.#arm(delayMs);
    });
  }

  /** Begins nothing more, and waits for what it has begun. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#sweeping;
  }

  /** @returns when it looks again; `undefined`: never. */
  async #sweep(): Promise<number | undefined> {
    this.#again = false;
    const slots = this.#slots;
    try {
      const dueMs = await this.#deps.journal.nextDue(this.#agents);
      const isDue = dueMs !== undefined && dueMs <= 0;
      const found = isDue && (await this.#driveDue());
      this.#told = undefined;
      if (!isDue) return Math.min(dueMs ?? POLL_MS, POLL_MS);
      if (!slots.hasRoom && !this.#waitsForRoom) {
        this.#waitsForRoom = true;
        slots.onRoom(() => {
          this.#waitsForRoom = false;
          this.look();
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
      const count = Math.min(this.#count, this.#slots.room);
      if (count === 0) break;
      const drives = await Promise.allSettled(Array.from({ length: count }, () => this.#driveNext()));
      let driven = 0;
      for (const drive of drives) {
        if (drive.status === 'rejected') throw drive.reason;
        if (drive.value) driven += 1;
      }
      found ||= driven > 0;
      this.#count = driven < count ? Math.max(1, driven) : Math.min(2 * this.#count, MOST_AT_ONCE);
      if (driven < count) break;
    }
    return found;
  }

  /** The process need not stay alive for it. */
  #arm(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancel = this.#deps.clock.after(Math.max(delayMs, LEAST_DELAY_MS), () => this.look(), { holds: false });
  }
}
