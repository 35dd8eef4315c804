/**
 * Slices: what a process drives in a time that somebody sets, such as that of a request, and lets go of when the time is over. A slice is of a session:
 * what a run leads to there, its tasks, the run that goes on with it and the next turn, belongs to it.
 */
import { assertOptions, type Clock, type Identity, type OptionShape, PilotageError, scopeKey, spawnerOf } from '#core';
import { hasEnded, type Journal, type RunRecord, runNotFound } from '#journal';
import type { RunState } from '#state';
import type { RunDriver } from '../loop/driver.ts';
import type { Exit } from '../loop/let-go.ts';
import type { Driver } from './driver-port.ts';
import { isDeadOwner } from './leases.ts';

export interface AdvanceOptions {
  /** How long the process may be at work, in milliseconds. */
  readonly forMs: number;
  /**
   * How long before the end nothing more begins: what is under way has so long to end, and is aborted then. As long as the longest `once` call takes that
   * cannot be looked up. Default: a quarter of `forMs`, at most 30,000.
   */
  readonly graceMs?: number;
}

export interface AdvanceDueOptions extends AdvanceOptions {
  /** No more runs than so many are taken over. Default: as many as there is time for. */
  readonly limit?: number;
}

/** How a run stands that was advanced. */
export interface AdvancedRun {
  /** The run, or the one that goes on where it has ended. */
  readonly run: string;
  /**
   * `pending`: there is more to do, so advance it again. `waiting`: for its time, for an event, or for a turn before it. `paused`: for somebody. `running`:
   * another process has it. The others are ends.
   */
  readonly status: 'pending' | 'waiting' | 'paused' | 'running' | 'finished' | 'failed' | 'cancelled';
  /** When it goes on by itself, if nobody says anything before. Milliseconds since the epoch. */
  readonly wakeAt?: number;
}

export interface AdvancedRuns {
  /** Those that were taken over, and how each stands now. */
  readonly runs: readonly AdvancedRun[];
  /** True: the time, or the limit, was over before nothing was due any more. */
  readonly more: boolean;
}

const ADVANCE: OptionShape<AdvanceOptions> = { forMs: 'count', graceMs: 'whole?' };
const ADVANCE_DUE: OptionShape<AdvanceDueOptions> = { ...ADVANCE, limit: 'count?' };
const MOST_GRACE_MS = 30_000;

/** @throws PilotageError `invalid_config`. */
export function assertAdvance(options: AdvanceDueOptions, isOfOne: boolean, driver: Driver | undefined): void {
  if (isOfOne) assertOptions('advance', options, ADVANCE);
  else assertOptions('advance', options, ADVANCE_DUE);
  if (driver !== undefined) {
    const message =
      'A runtime with a driver advances runs when the driver says so: leave advance to it, or the driver out.';
    throw new PilotageError('invalid_config', message);
  }
  const { forMs, graceMs = 0 } = options;
  if (graceMs < forMs) return;
  const message = `The option graceMs of advance is ${graceMs}, and forMs ${forMs}: nothing would begin. Give less.`;
  throw new PilotageError('invalid_config', message);
}

/** What a slice is told of a run that is driven here. */
interface Driven {
  readonly driver: RunDriver;
}

export interface SlicePorts {
  readonly clock: Clock;
  readonly journal: Pick<Journal, 'get'>;
  readonly states: { of(run: string): Promise<RunState> };
  /** The name of this process as the owner of leases. */
  readonly owner: string;
  /** This process takes runs over all the time: a slice takes nothing from it. */
  works(): boolean;
  live(): Iterable<Driven>;
  /** Something is on its way to being driven: runs are looked at, or claimed. */
  isMoving(): boolean;
  /** The run waits here for a slot. */
  isQueued(run: string): boolean;
  /** The run is not driven here, whatever was to be done about it. */
  forget(run: string): void;
  /** Drives the run here. @throws why it cannot be. */
  drive(run: string): Promise<void>;
  /** Looks at the tasks of a run that itself waits. */
  wakeTasks(run: string): Promise<void>;
  /** Claims some that are due, and drives them here. @param note is told of each before. @returns how many there were. */
  claimDue(most: number, note: (run: string) => void): Promise<number>;
}

/** Why nothing of a run begins now. */
export type Cover = 'none' | 'open' | 'leaving';

class Slice {
  readonly scopes = new Set<string>();
  /** Those that were claimed for it, whose sessions are not known yet. */
  readonly claimed = new Set<string>();
  /** What was driven here, or was to be. */
  readonly runs = new Set<string>();
  /** Those that were let go of with something left to do, and the runs above them. */
  readonly cut = new Set<string>();
  readonly errors = new Map<string, unknown>();
  /** Whatever is driven from now on belongs to it. */
  takesAll = false;
  isLeaving = false;
  isOver = false;
  #changed = Promise.withResolvers<void>();

  change(): void {
    this.#changed.resolve();
  }

  async untilChange(): Promise<void> {
    await this.#changed.promise;
    this.#changed = Promise.withResolvers();
  }

  noteCut(run: string): void {
    for (let id: string | undefined = run; id !== undefined; id = spawnerOf(id)) this.cut.add(id);
  }
}

export class Slices {
  readonly #ports: SlicePorts;
  readonly #open = new Set<Slice>();

  constructor(ports: SlicePorts) {
    this.#ports = ports;
  }

  /** Something has moved: whoever waits looks again. */
  changed(): void {
    for (const slice of this.#open) slice.change();
  }

  /** The run is to be driven here. */
  note({ run, ...scope }: Identity): Cover {
    let cover: Cover = 'none';
    for (const slice of this.#of(run, scope)) {
      slice.runs.add(run);
      if (slice.isLeaving) slice.noteCut(run);
      if (cover === 'none' || slice.isLeaving) cover = slice.isLeaving ? 'leaving' : 'open';
    }
    return cover;
  }

  /** The run is driven here from now on. */
  drives(driver: RunDriver): void {
    const { identity } = driver.state;
    if (this.#open.size > 0 && this.note(identity) === 'leaving') driver.leave(true);
  }

  /** The run is let go of. @returns whether it goes on in a slice alone. */
  over({ driver }: Driven, exit: Exit): boolean {
    if (this.#open.size === 0) return false;
    const { run, ...scope } = driver.state.identity;
    const slices = [...this.#of(run, scope)];
    for (const slice of slices) {
      if (exit.kind === 'closed') slice.noteCut(run);
      if (exit.kind === 'broken') slice.errors.set(run, exit.error);
    }
    return slices.length > 0;
  }

  *#of(run: string, scope: Omit<Identity, 'run'>): Generator<Slice> {
    if (this.#open.size === 0) return;
    const key = scopeKey(scope);
    for (const slice of this.#open) {
      if (slice.takesAll || slice.claimed.has(run)) slice.scopes.add(key);
      if (slice.scopes.has(key)) yield slice;
    }
  }

  /** @throws PilotageError `run_not_found`, or why the run cannot be carried out here. */
  async advance(run: string, options: AdvanceOptions): Promise<AdvancedRun> {
    const { identity } = await this.#record(run);
    return this.#within(options, async (slice) => {
      slice.scopes.add(scopeKey(identity));
      slice.runs.add(run);
      // It may be driven here already.
      for (const { driver } of this.#ports.live()) this.note(driver.state.identity);
      await this.#begin(run);
      await this.#untilQuiet(slice);
      const standing = await this.#standing(run, slice);
      if (slice.errors.has(run)) throw slice.errors.get(run);
      return standing;
    });
  }

  /** @param fire fires the schedules that are due. */
  async advanceDue(
    { limit = Number.POSITIVE_INFINITY, ...options }: AdvanceDueOptions,
    fire: () => Promise<void>,
  ): Promise<AdvancedRuns> {
    return this.#within(options, async (slice) => {
      slice.takesAll = true;
      await fire();
      slice.takesAll = false;
      let isDone = false;
      while (!slice.isLeaving && slice.claimed.size < limit) {
        const found = await this.#ports.claimDue(limit - slice.claimed.size, (run) => slice.claimed.add(run));
        if (found > 0) continue;
        isDone = !this.#isBusy(slice);
        if (isDone) break;
        await slice.untilChange();
      }
      await this.#untilQuiet(slice);
      const runs = await Promise.all([...slice.claimed].map((run) => this.#standing(run, slice).catch(unlessGone)));
      return { runs: runs.filter((run) => run !== undefined), more: !isDone };
    });
  }

  async #begin(run: string): Promise<void> {
    const record = await this.#record(run);
    const isOfOthers = record.lease !== undefined && !isDeadOwner(record.lease.owner);
    if (hasEnded(record.status) || isOfOthers || record.waits === true) return;
    if (isDue(record)) await this.#ports.drive(run);
    else await this.#ports.wakeTasks(run);
  }

  async #within<T>(
    { forMs, graceMs = Math.min(MOST_GRACE_MS, Math.floor(forMs / 4)) }: AdvanceOptions,
    work: (slice: Slice) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#ports;
    const slice = new Slice();
    this.#open.add(slice);
    const cancelLeave = clock.after(forMs - graceMs, () => this.#leave(slice));
    const cancelStop = clock.after(forMs, () => this.#stop(slice));
    try {
      return await work(slice);
    } finally {
      cancelLeave();
      cancelStop();
      this.#open.delete(slice);
      if (!this.#ports.works()) for (const run of slice.runs) if (!this.#isCovered(run)) this.#ports.forget(run);
    }
  }

  /** Another slice has the run too. */
  #isCovered(run: string): boolean {
    return [...this.#open].some(({ runs }) => runs.has(run));
  }

  /** Nothing more begins. */
  #leave(slice: Slice): void {
    if (this.#ports.works()) return;
    slice.isLeaving = true;
    for (const { driver } of this.#driven(slice)) driver.leave(true);
    for (const run of slice.runs) {
      if (!this.#ports.isQueued(run)) continue;
      slice.noteCut(run);
      this.#ports.forget(run);
    }
    slice.change();
  }

  /** What is still under way is aborted; what is driven by a process that works goes on. */
  #stop(slice: Slice): void {
    slice.isOver = this.#ports.works();
    slice.isLeaving = true;
    if (!slice.isOver) for (const { driver } of this.#driven(slice)) driver.stop('closing');
    slice.change();
  }

  *#driven(slice: Slice): Generator<Driven> {
    for (const live of this.#ports.live()) {
      const { run: _, ...scope } = live.driver.state.identity;
      if (slice.scopes.has(scopeKey(scope))) yield live;
    }
  }

  #isBusy(slice: Slice): boolean {
    if (slice.isOver) return false;
    if (this.#ports.isMoving() || this.#driven(slice).next().done !== true) return true;
    return [...slice.runs].some((run) => this.#ports.isQueued(run));
  }

  async #untilQuiet(slice: Slice): Promise<void> {
    while (this.#isBusy(slice)) await slice.untilChange();
  }

  async #standing(run: string, slice: Slice): Promise<AdvancedRun> {
    const record = await this.#record(run);
    const { status, lease, wakeAt, readAt, waits } = record;
    if (hasEnded(status)) {
      const { ending } = await this.#ports.states.of(run);
      const next = ending?.kind === 'finished' ? ending.successor?.run : undefined;
      return next === undefined ? { run, status } : this.#standing(next, slice);
    }
    const isHere = [...this.#ports.live()].some(({ driver }) => driver.state.identity.run === run);
    if (isHere || (lease !== undefined && !isDeadOwner(lease.owner))) return { run, status: 'running' };
    if (slice.cut.has(run)) return { run, status: 'pending' };
    const parked = status === 'paused' ? status : 'waiting';
    if (waits === true || wakeAt === null) return { run, status: parked };
    if (isDue(record)) return { run, status: 'pending' };
    // Times of the store are not those of this clock.
    return { run, status: parked, wakeAt: this.#ports.clock.now() + ((wakeAt ?? readAt) - readAt) };
  }

  async #record(run: string): Promise<RunRecord> {
    const record = await this.#ports.journal.get(run);
    if (record !== undefined) return record;
    throw runNotFound(run);
  }
}

function isDue({ wakeAt, readAt }: RunRecord): boolean {
  return wakeAt !== null && (wakeAt ?? 0) <= readAt;
}

/** Its session was deleted meanwhile. */
function unlessGone(error: unknown): undefined {
  if (PilotageError.is(error, 'run_not_found')) return undefined;
  throw error;
}
