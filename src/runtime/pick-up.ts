/** Makes the driver of a run that was claimed: with the run's own planner and tools, under changed code only when that is accepted. */

import { type Clock, deepFreeze, type Entry, PilotageError, type Repinned, steadyMs } from '#core';
import { type Claim, isTransientStoreError, type Park } from '#journal';
import { applyEntry, callsToUndo, nextStep, type RunState } from '#state';
import { RunDriver } from '../loop/driver.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { HeldLease, type Moment } from '../loop/held-lease.ts';
import { isHardCancel } from '../loop/inbox.ts';
import type { Kept } from '../loop/kept.ts';
import { problemOf, TRY_AGAIN_MS } from '../loop/let-go.ts';
import { changesOf, type Migrate, repinned, runChanged } from './pins.ts';

export interface PickUpOptions {
  readonly leaseMs: number;
  readonly takeoverGraceMs: number;
  readonly migrate: Migrate | undefined;
}

export class PickUp {
  readonly #deps: DriverDeps;
  readonly #options: PickUpOptions;
  /** When this process first had to do with runs. */
  readonly #openedAt: number;
  /** Runs that are claimed, and of which it is being found out whether they can be carried out here. */
  readonly #looks = new Map<string, Promise<void>>();

  constructor(deps: DriverDeps, options: PickUpOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#openedAt = deps.clock.now();
  }

  /**
   * @param askedAt before the claim was sent.
   * @param kept of the run since it was driven here before.
   */
  driver(claim: Claim, state: RunState, askedAt: Moment, kept?: Kept): RunDriver {
    return new RunDriver(this.#depsOf(state), state, claim, this.#heldBy(claim, askedAt), kept);
  }

  /**
   * The driver of a stored run; `undefined` when the claim is lost again. A run that cannot be carried out here is
   * given back as it was, with its problem: others may be able to.
   * @param entries all entries of the run, if they came with the claim.
   * @throws PilotageError `run_changed`, the error of the store, or what the migrate hook throws.
   */
  async claimed(
    claim: Claim,
    askedAt: Moment,
    acceptChanges = false,
    entries?: readonly Entry[],
  ): Promise<RunDriver | undefined> {
    const look = this.#claimed(claim, askedAt, acceptChanges, entries);
    const over = look.then(
      () => {},
      () => {},
    );
    this.#looks.set(claim.run, over);
    try {
      return await look;
    } finally {
      if (this.#looks.get(claim.run) === over) this.#looks.delete(claim.run);
    }
  }

  /** Until it is known whether the run, which is claimed, can be carried out here; `undefined` when nobody looks. */
  lookAt(run: string): Promise<void> | undefined {
    return this.#looks.get(run);
  }

  async #claimed(
    claim: Claim,
    askedAt: Moment,
    acceptChanges: boolean,
    entries: readonly Entry[] | undefined,
  ): Promise<RunDriver | undefined> {
    const { states, onFault, redaction } = this.#deps;
    try {
      if (claim.waits === true && !(await this.isCancelled(claim))) {
        await this.giveBack(claim);
        return undefined;
      }
      const { state, kept } = await states.forDriver(claim.run, entries);
      const repin = await this.#repinFor(state, acceptChanges);
      if (repin !== undefined) await this.#append(state, claim, repin);
      return this.driver(claim, state, askedAt, kept);
    } catch (error) {
      // This process stood still meanwhile, and somebody else drives the run.
      if (PilotageError.is(error, 'lease_lost')) return undefined;
      const park = isTransientStoreError(error) ? { wakeInMs: TRY_AGAIN_MS } : { asBefore: claim.before };
      const problem = redaction.error(problemOf(error));
      await this.#release(claim, { ...park, problem }).catch((second: unknown) => onFault(second));
      throw error;
    }
  }

  /** Whether a turn that waits for the turns before it is to be ended: nothing else is done with it. */
  async isCancelled({ run, head }: Pick<Claim, 'run' | 'head'>): Promise<boolean> {
    const { journal } = this.#deps;
    if ((await journal.inbox(run)).some(({ message }) => message.type === 'CANCEL')) return true;
    // It has been taken, and whoever took it did not come to the end.
    const taken = head > 1 ? await journal.read(run, 2) : [];
    return taken.some((entry) => entry.kind === 'control' && entry.applied && entry.control.type === 'CANCEL');
  }

  /** As it was. */
  giveBack(claim: Claim): Promise<void> {
    return this.#release(claim, { asBefore: claim.before });
  }

  async #release({ run, fence, signals }: Claim, park: Omit<Park, 'seenSignals'>): Promise<void> {
    await this.#deps.journal.release({ run, fence }, { seenSignals: signals, ...park });
  }

  #heldBy(claim: Claim, askedAt: Moment): HeldLease {
    const { journal, clock } = this.#deps;
    const { leaseMs, takeoverGraceMs } = this.#options;
    return new HeldLease({ journal, clock, leaseMs, takeoverGraceMs }, claim, askedAt);
  }

  /** With the agent of the run; the default one goes on with runs of an agent that is not known any more. */
  #depsOf(state: RunState): DriverDeps {
    const { agent, planner, toolsOf, limit, unpriced } = this.#deps.agentNamed(state.agent) ?? this.#deps;
    return agent === this.#deps.agent ? this.#deps : { ...this.#deps, agent, planner, toolsOf, limit, unpriced };
  }

  async #append(state: RunState, { run, fence }: Claim, body: Repinned): Promise<void> {
    const { journal, clock } = this.#deps;
    const entry: Entry = deepFreeze({ ...body, seq: state.head + 1, at: clock.now() });
    await journal.append({ run, fence, expected: state.head, entries: [entry] });
    applyEntry(state, entry);
  }

  /** The entry with which a run goes on that was started with other code; `undefined` when nothing has changed, or the run only ends. */
  async #repinFor(state: RunState, acceptChanges: boolean): Promise<Repinned | undefined> {
    const agent = this.#depsOf(state);
    const tools = agent.toolsOf(state.scopes, state.found);
    const changes = changesOf(state, agent, tools);
    if (changes.length === 0) return undefined;
    if (this.#isHandedDown(state) && state.agent === agent.agent) return repinned(agent, tools, {});
    const migration = (await this.#options.migrate?.({ state, changes })) ?? (acceptChanges ? {} : undefined);
    if (migration !== undefined) return repinned(agent, tools, migration);
    if (await this.#onlyEnds(state)) return undefined;
    throw runChanged(state.identity.run, changes);
  }

  /**
   * Nothing was decided by the code that it was started with, as of a message that waited for its turn, or a start of later. Where this process is older than the
   * run, it was started by newer code, whose processes are there.
   */
  #isHandedDown(state: RunState): boolean {
    return nextStep(state) === 0 && state.startedAt < this.#openedAt;
  }

  /** A cancelled run ends under whatever code, and none is accepted for it: only to undo what it has done needs its own. */
  async #onlyEnds(state: RunState): Promise<boolean> {
    if (state.undo !== null && callsToUndo(state).length > 0) return false;
    if (state.cancel !== null && isHardCancel(state.cancel)) return true;
    return (await this.#deps.journal.inbox(state.identity.run)).some(({ message }) => isHardCancel(message));
  }
}

/**
 * Runs that this process has claimed and could not carry out: their code is another one, or they cannot be read here. Each
 * was let go of at once, for others who can, and is not claimed here again for a while, so that processes of two versions
 * do not take turns at it.
 */

const FIRST_MS = 2_000;
const LONGEST_MS = 300_000;
/** The oldest are forgotten beyond this. They are claimed again at once then, before what waits behind them: so it is far out. */
const MOST = 100_000;

interface Refusal {
  readonly times: number;
  /** By the steady clock. */
  readonly until: number;
}

export class Refusals {
  readonly #clock: Clock;
  readonly #refused = new Map<string, Refusal>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns how often in a row it was refused, and until when it is left to others. */
  note(run: string): Refusal {
    const times = (this.#refused.get(run)?.times ?? 0) + 1;
    const refusal = { times, until: steadyMs(this.#clock) + Math.min(FIRST_MS * 2 ** (times - 1), LONGEST_MS) };
    this.#refused.delete(run);
    this.#refused.set(run, refusal);
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > MOST && oldest !== undefined) this.#refused.delete(oldest);
    return refusal;
  }

  /** The run is left to others now. */
  has(run: string): boolean {
    return this.until(run) !== undefined;
  }

  /** Until when the run is left to others, if it is. Milliseconds since the epoch. */
  until(run: string): number | undefined {
    const leftMs = (this.#refused.get(run)?.until ?? 0) - steadyMs(this.#clock);
    return leftMs > 0 ? this.#clock.now() + leftMs : undefined;
  }

  /** The runs that are left to others now. */
  all(): readonly string[] {
    if (this.#refused.size === 0) return [];
    const now = steadyMs(this.#clock);
    const runs: string[] = [];
    for (const [run, { until }] of this.#refused) if (until > now) runs.push(run);
    return runs;
  }

  forget(run: string): void {
    this.#refused.delete(run);
  }
}
