/**
 * Runs under a driver that was given. Runs that are due are handed to it; it calls `advance`, here or in another process. While it takes nothing, or
 * has let a run lie, processes that work carry runs out by themselves, a slice at a time, and hand them to it again after each.
 */
import { assertOptions, type Clock, type OptionShape, steadyMs } from '#core';
import { hasEnded, isJournalGone, isTransientStoreError, type Journal, type RunRecord } from '#journal';
import type { RunDriver } from '../loop/driver.ts';
import { TRY_AGAIN_MS } from '../loop/let-go.ts';
import type { Advanced, Driver } from './driver-port.ts';
import { isDeadOwner } from './leases.ts';
import type { QueuedRun } from './run-queue.ts';

/** After so long nothing more begins in a slice. */
const SLICE_MS = 5_000;
/** Between two tries to hand something over, while nothing is taken. */
const AWAY_MS = 1_000;
/** A run that was handed over, and is due after this time, is not left to the driver any more. */
const LEFT_MS = 3_000;
/** So many are known as handed over. Of more, some are handed over again sooner. */
const MOST_HANDED = 1_000;
/** What could not be done now is asked for again. */
const SOON_MS = 1_000;

const DRIVER: OptionShape<Driver> = { start: 'function', wake: 'function', stop: 'function' };

/** @throws PilotageError `invalid_config`. */
export function assertDriver(driver: Driver): void {
  // A class may have more, and has its methods on its prototype.
  const { start, wake, stop } = driver;
  assertOptions('driver', { start, wake, stop }, DRIVER);
}

interface AdvancePorts {
  readonly journal: Pick<Journal, 'get'>;
  /** The name of this process as the owner of leases. */
  readonly owner: string;
  readonly clock: Clock;
  /** Drives the run here as soon as there is a slot; `over` says when that is done with. */
  queue(waiting: QueuedRun): void;
  /** Looks at a run that is driven here for news. @returns when it is let go of; `undefined`: it is not driven here. */
  letGoOf(run: string): Promise<void> | undefined;
  /** Until when the run is left to other processes. */
  refusedUntil(run: string): number | undefined;
  /** The names of those whose runs are taken over here. */
  takenOver(): readonly string[];
  /** Has the run looked at here at that time. */
  remind(run: string, at: number): void;
  onFault(error: unknown): void;
}

export class Advances {
  readonly #driver: Driver;
  readonly #ports: AdvancePorts;
  /** Runs that are being advanced. */
  readonly #under = new Map<string, Promise<Advanced>>();
  /** Those of them that wait for a slot, or are driven. */
  readonly #asked = new Map<string, () => void>();
  /** Runs whose wakes are under way; true: one more is to follow, for what has come meanwhile. */
  readonly #handing = new Map<string, boolean>();
  readonly #wakes = new Set<Promise<void>>();
  /** Runs that were found due here and handed over, and when, by the steady clock. */
  readonly #handed = new Map<string, number>();
  #isAway = false;
  /** By the steady clock. */
  #triedAt = Number.NEGATIVE_INFINITY;
  #works = false;
  #stopped: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(driver: Driver, ports: AdvancePorts) {
    this.#driver = driver;
    this.#ports = ports;
  }

  /** The driver took nothing when it was last tried. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** This process carries out runs from now on. */
  start(): void {
    this.#works = true;
    const started = this.#stopped.then(() => this.#driver.start((run) => this.advance(run)));
    started.catch((error: unknown) => this.#ports.onFault(error));
  }

  /** This process carries out no more than it has. */
  stop(): Promise<void> {
    if (this.#works) {
      this.#works = false;
      this.#stopped = this.#driver.stop().catch((error: unknown) => this.#ports.onFault(error));
    }
    return this.#stopped;
  }

  /** Nothing more is driven here. Resolves when the driver has all its answers. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const stopped = this.stop();
    for (const [run, tell] of this.#asked) if (this.#ports.letGoOf(run) === undefined) tell();
    await stopped;
    await Promise.all([...this.#under.values(), ...this.#wakes]);
  }

  /** Hands a run over that is to be driven. False: it has to be driven here, whose caller accepts its changes. */
  takes({ run, acceptChanges }: QueuedRun): boolean {
    if (acceptChanges === true) return false;
    this.hand(run);
    return true;
  }

  /** The run is due, or is at this time. */
  hand(run: string, at?: number): void {
    if (this.#isClosing) return;
    if (at === undefined && this.#handing.has(run)) {
      this.#handing.set(run, true);
      return;
    }
    const now = steadyMs(this.#ports.clock);
    if (this.#isAway && now - this.#triedAt < AWAY_MS) {
      void this.#goOnHere(run, at);
      return;
    }
    this.#triedAt = now;
    if (at === undefined) this.#handing.set(run, false);
    const waking = this.#wake(run, at).finally(() => {
      this.#wakes.delete(waking);
      if (at !== undefined) return;
      const again = this.#handing.get(run) === true;
      this.#handing.delete(run);
      if (again) this.hand(run);
    });
    this.#wakes.add(waking);
  }

  async #wake(run: string, at: number | undefined): Promise<void> {
    try {
      await this.#driver.wake(run, at);
      this.#isAway = false;
    } catch (error) {
      // Told once, and not with each run.
      if (!this.#isAway) this.#ports.onFault(error);
      this.#isAway = true;
      await this.#goOnHere(run, at);
    }
  }

  /** The driver does not take it. Where nobody works it stays due, for those who do. */
  async #goOnHere(run: string, at: number | undefined): Promise<void> {
    if (!this.#works) return;
    try {
      const record = await this.#ports.journal.get(run);
      if (record === undefined || !this.#works || !this.#ports.takenOver().includes(record.agent)) return;
      if (at !== undefined) this.#ports.remind(run, at);
      else if (this.#standing(record) === undefined) this.#queue(record);
    } catch (error) {
      // The sweep finds it.
      if (!isTransientStoreError(error) && !isJournalGone(error)) this.#ports.onFault(error);
    }
  }

  /** Whether a run that the sweep has found due is left to the driver. */
  isForDriver(run: string): boolean {
    if (this.#isAway) return false;
    const now = steadyMs(this.#ports.clock);
    const before = this.#handed.get(run);
    this.#handed.delete(run);
    // It was left lying, and is seldom of no use twice: nothing reaches the driver's processes, or they cannot go on with it.
    if (before !== undefined && now - before < 2 * LEFT_MS) return false;
    this.#handed.set(run, now);
    const [oldest] = this.#handed.keys();
    if (this.#handed.size > MOST_HANDED && oldest !== undefined) this.#handed.delete(oldest);
    return true;
  }

  /** Runs that the sweep has handed over a moment ago, and does not look at. */
  handed(): readonly string[] {
    if (this.#handed.size === 0 || this.#isAway) return [];
    const since = steadyMs(this.#ports.clock) - LEFT_MS;
    return [...this.#handed].flatMap(([run, at]) => (at > since ? [run] : []));
  }

  /** See `Advance`. */
  advance(run: string): Promise<Advanced> {
    const under = this.#under.get(run);
    if (under !== undefined) {
      // Perhaps it was told something.
      void this.#ports.letGoOf(run);
      return under;
    }
    const advanced = this.#advance(run)
      .catch((error: unknown): Advanced => {
        if (!isTransientStoreError(error)) this.#ports.onFault(error);
        return this.#busy(isTransientStoreError(error) ? SOON_MS : TRY_AGAIN_MS);
      })
      .finally(() => this.#under.delete(run));
    this.#under.set(run, advanced);
    return advanced;
  }

  async #advance(run: string): Promise<Advanced> {
    await this.#ports.letGoOf(run);
    const record = await this.#ports.journal.get(run);
    const standing = this.#standing(record);
    if (record === undefined || standing !== undefined) return standing ?? { next: 'done' };
    if (this.#isClosing || !this.#works) return this.#busy(SOON_MS);
    const refusedUntil = this.#ports.refusedUntil(run);
    if (refusedUntil !== undefined) return { next: 'busy', until: refusedUntil };
    if (!this.#ports.takenOver().includes(record.agent)) return this.#busy(TRY_AGAIN_MS);
    this.#handed.delete(run);
    await new Promise<void>((resolve) => {
      this.#asked.set(run, resolve);
      this.#queue(record);
    });
    this.#asked.delete(run);
    return this.#after(run);
  }

  async #after(run: string): Promise<Advanced> {
    const record = await this.#ports.journal.get(run);
    const standing = this.#standing(record);
    if (standing !== undefined) return standing;
    const until = this.#ports.refusedUntil(run);
    if (until !== undefined) return { next: 'busy', until };
    // A turn that was told something, which waits for the turns before it.
    return record?.waits === true ? { next: 'wait' } : { next: 'again' };
  }

  /** `undefined`: the run is due. */
  #standing(record: RunRecord | undefined): Advanced | undefined {
    if (record === undefined || hasEnded(record.status)) return { next: 'done' };
    const { lease, readAt, waits } = record;
    // A turn that waits for the turns before it is looked at whenever it was told something: it may have been cancelled.
    const wakeAt = waits === true ? undefined : record.wakeAt;
    // What this process has and does not drive, its sweep gives back in this moment.
    if (lease?.owner === this.#ports.owner) return this.#busy(SOON_MS);
    if (lease !== undefined && !isDeadOwner(lease.owner)) return this.#busy(Math.max(1, lease.until - readAt));
    if (wakeAt === null) return { next: 'wait' };
    // Times of the store are not those of this clock.
    const leftMs = wakeAt === undefined ? 0 : wakeAt - readAt;
    return leftMs > 0 ? { next: 'wait', at: this.#ports.clock.now() + leftMs } : undefined;
  }

  #busy(ms: number): Advanced {
    return { next: 'busy', until: this.#ports.clock.now() + ms };
  }

  #queue({ identity: { run, tenant }, priority }: RunRecord): void {
    this.#ports.queue({ run, tenant, priority });
  }

  /** The run could not be driven here now. True: whoever advances it hears so. */
  failed(run: string): boolean {
    const tell = this.#asked.get(run);
    tell?.();
    return tell !== undefined;
  }

  /** The driver of the run begins; nothing more does when its slice is over. */
  slice(driver: RunDriver, exit: Promise<unknown>): void {
    const cancel = this.#ports.clock.after(SLICE_MS, () => driver.leave(true), { holds: false });
    void exit.then(cancel, cancel);
  }

  /** The run was driven here, and is not any more. */
  over(run: string): void {
    if (this.failed(run) || this.#isClosing) return;
    const hand = async (): Promise<void> => {
      const next = await this.#after(run);
      if (next.next === 'again') this.hand(run);
      else if (next.next === 'wait' && next.at !== undefined) this.hand(run, next.at);
    };
    // The sweep finds what the store does not say now.
    hand().catch((error: unknown) => {
      if (!isTransientStoreError(error) && !isJournalGone(error)) this.#ports.onFault(error);
    });
  }
}
