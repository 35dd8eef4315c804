/**
 * Runs that were parked go on wherever a runtime is open that knows their agent, when their time has come or they were told something: over one timer,
 * for the earliest time that the store knows, and a look now and then for what other processes park. What nobody has begun, or whose process
 * died, is left to those who `work()`.
 */
import { describeThrown, PilotageError } from '#core';
import { type ClaimedRun, isJournalGone, isTransientStoreError } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { Agents } from './agents.ts';
import type { Claiming } from './claiming.ts';
import type { Slots } from './slots.ts';

/** Other processes park runs, and what they say of it may be lost. */
const POLL_MS = 2_000;
/** The store's clock may be behind this clock. */
const LEAST_DELAY_MS = 5;
/** Claims up to so many that are due; or of these, whose time has come by the own clock. */
type ClaimParked = (limit: number, runs?: readonly string[]) => Promise<ClaimedRun[]>;

export class ParkedRuns {
  readonly #deps: Pick<DriverDeps, 'journal' | 'clock' | 'onFault'>;
  readonly #agents: Pick<Agents, 'takenOver'>;
  readonly #slots: Slots;
  readonly #claiming: Claiming;
  readonly #claim: ClaimParked;
  #cancel = (): void => {};
  readonly #stopListening: () => void;
  #sweeping: Promise<void> | undefined;
  /** Asked to look again while it looks. */
  #again = false;
  #waitsForRoom = false;
  /** Parked here, and their time has come by the own clock. */
  readonly #rung = new Set<string>();
  #stopped = false;
  /** What was told last: a store that stays broken is told of once. */
  #told: string | undefined;

  constructor(
    deps: Pick<DriverDeps, 'journal' | 'clock' | 'onFault'>,
    agents: Pick<Agents, 'takenOver'>,
    slots: Slots,
    claiming: Claiming,
    claim: ClaimParked,
  ) {
    this.#deps = deps;
    this.#agents = agents;
    this.#slots = slots;
    this.#claiming = claiming;
    this.#claim = claim;
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
      if (this.#again) this.look();
      else if (delayMs !== undefined) this.#arm(delayMs);
    });
  }

  /** The time of a run has come that was parked here. */
  ring(run: string): void {
    this.#rung.add(run);
    this.look();
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
    let hasFound = false;
    while (!this.#stopped) {
      let hasRung = false;
      const { room, found } = await this.#claiming.some((most) => {
        hasRung = this.#rung.size > 0;
        return hasRung ? this.#claimRung(most) : this.#claim(most);
      });
      hasFound ||= found > 0;
      if (room === 0 || (!hasRung && found < room)) break;
    }
    return hasFound;
  }

  async #claimRung(most: number): Promise<ClaimedRun[]> {
    const rung = [...this.#rung].slice(0, most);
    for (const run of rung) this.#rung.delete(run);
    try {
      return await this.#claim(most, rung);
    } catch (error) {
      for (const run of rung) this.#rung.add(run);
      throw error;
    }
  }

  /**
   * The process need not stay alive for it. Nor does the timer keep a runtime in memory that was dropped without `close`: what needs it holds it, which is
   * a handle, the time for which a run of it waits, or a journal that other processes share.
   */
  #arm(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancel();
    const self = new WeakRef(this);
    const look = (): void => self.deref()?.look();
    this.#cancel = this.#deps.clock.after(Math.max(delayMs, LEAST_DELAY_MS), look, { holds: false });
  }
}
