/** Makes the driver of a run that was claimed: with the run's own planner and tools, under changed code only when that is accepted. */
import { deepFreeze, type Entry, PilotageError, type Repinned } from '#core';
import type { Claim, Park } from '#journal';
import { applyEntry, foldEntries, type RunState } from '#state';
import { isTransientStoreError } from '../journal/patience.ts';
import { RunDriver } from '../loop/driver.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { HeldLease, type Moment } from '../loop/held-lease.ts';
import { TRY_AGAIN_MS } from '../loop/let-go.ts';
import { changesOf, type Migrate, repinned, runChanged } from './pins.ts';
import { problemOf } from './refusals.ts';

export interface PickUpOptions {
  readonly leaseMs: number;
  readonly takeoverGraceMs: number;
  readonly migrate: Migrate | undefined;
}

export class PickUp {
  readonly #deps: DriverDeps;
  readonly #options: PickUpOptions;

  constructor(deps: DriverDeps, options: PickUpOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** @param askedAt before the claim was sent. */
  driver(claim: Claim, state: RunState, askedAt: Moment): RunDriver {
    return new RunDriver(this.#depsOf(state), state, claim, this.#heldBy(claim, askedAt));
  }

  /**
   * The driver of a stored run; `undefined` when the claim is lost again. A run that cannot be carried out here is
   * given back as it was, with its problem: others may be able to.
   * @throws PilotageError `run_changed`, the error of the store, or what the migrate hook throws.
   */
  async claimed(claim: Claim, askedAt: Moment, acceptChanges = false): Promise<RunDriver | undefined> {
    const { journal, onFault, redaction } = this.#deps;
    try {
      const state = foldEntries(await journal.read(claim.run));
      const repin = await this.#repinFor(state, acceptChanges);
      if (repin !== undefined) await this.#append(state, claim, repin);
      return this.driver(claim, state, askedAt);
    } catch (error) {
      // This process stood still meanwhile, and somebody else drives the run.
      if (PilotageError.is(error, 'lease_lost')) return undefined;
      const park = isTransientStoreError(error) ? { wakeInMs: TRY_AGAIN_MS } : { asBefore: claim.before };
      const problem = redaction.error(problemOf(error));
      await this.#release(claim, { ...park, problem }).catch((second: unknown) => onFault(second));
      throw error;
    }
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

  /** The entry with which a run goes on that was started with other code; `undefined` when nothing has changed. */
  async #repinFor(state: RunState, acceptChanges: boolean): Promise<Repinned | undefined> {
    const agent = this.#depsOf(state);
    const tools = agent.toolsOf(state.scopes, state.found);
    const changes = changesOf(state, agent, tools);
    if (changes.length === 0) return undefined;
    const migration = (await this.#options.migrate?.({ state, changes })) ?? (acceptChanges ? {} : undefined);
    if (migration === undefined) throw runChanged(state.identity.run, changes);
    return repinned(agent, tools, migration);
  }
}
