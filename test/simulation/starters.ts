/** Programs that start runs under keys, or at a time, and ask again until they know which run there is. */
import { PilotageError } from '#core';
import type { Run, Runtime, StartOptions } from '#runtime';
import type { Ledger } from './ledger.ts';
import type { KeyedStart } from './script-starts.ts';
import { isStoreError } from './store-errors.ts';

export interface StartersWorld {
  readonly ledger: Ledger;
  does<T>(worker: number, act: (runtime: Runtime) => T): T | undefined;
  after(ms: number, act: () => void): void;
  now(): number;
  isInNight(worker: number): boolean;
  askAgain(worker: number, ask: (next: number) => void): void;
}

/** What is rightly said to whoever starts too much, or what somebody else has begun. */
const ORDINARY: ReadonlySet<string> = new Set(['rate_limited', 'scope_mismatch']);

export class Starters {
  readonly #world: StartersWorld;
  /** Those who know yet nothing. */
  readonly #asking = new Set<KeyedStart>();
  #left: number;

  constructor(world: StartersWorld, starts: readonly KeyedStart[]) {
    this.#world = world;
    this.#left = starts.length;
  }

  /** A run may be started yet. */
  get isBusy(): boolean {
    return this.#left > 0 || this.#asking.size > 0;
  }

  begin(start: KeyedStart): void {
    this.#left -= 1;
    this.#asking.add(start);
    // It is the same time however often it is asked for.
    const beginsAt = this.#world.now() + (start.inMs ?? 0);
    this.#ask(start, start.worker, beginsAt);
    const { twin } = start;
    if (twin !== undefined) this.#world.after(twin.afterMs, () => void this.#askOnce(start, twin.worker, beginsAt));
  }

  /** Until it was told something: whoever was asked may be dead, or stand still. */
  #ask(start: KeyedStart, worker: number, beginsAt: number): void {
    if (!this.#asking.has(start)) return;
    const { askAgain, isInNight } = this.#world;
    if (!isInNight(worker)) void this.#askOnce(start, worker, beginsAt);
    askAgain(worker, (next) => this.#ask(start, next, beginsAt));
  }

  async #askOnce(start: KeyedStart, worker: number, beginsAt: number): Promise<void> {
    const { ledger, does } = this.#world;
    const { run, plan } = start;
    try {
      const started = await does(worker, (runtime): Promise<Run> => runtime.start(plan, optionsOf(start, beginsAt)));
      if (started === undefined) return;
      this.#asking.delete(start);
      if (!ledger.runs.has(started.id)) ledger.violated('starts', `${run} is ${started.id}, which is not there`, run);
    } catch (error) {
      if (PilotageError.is(error) && ORDINARY.has(error.code)) this.#asking.delete(start);
      else if (!isStoreError(error) && !PilotageError.is(error, 'runtime_closed'))
        ledger.violated('no fault', `the start was refused: ${String(error)}`, run);
    }
  }
}

function optionsOf({ run, user, session, key }: KeyedStart, beginsAt: number): StartOptions {
  const identity = { tenant: 't0', user, session, run };
  const common = { identity, conversation: false };
  if (key === undefined) return { ...common, at: beginsAt };
  const { kind, ...how } = key;
  return { ...common, [kind]: how };
}
