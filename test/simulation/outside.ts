/** What happens outside of all runs: it is signalled early, late, twice, to nobody, and at last to everybody who waits still. */
import { type Json, PilotageError } from '#core';
import type { Journal } from '#journal';
import type { NewSignal, Signalled } from '#pilotage/journal';
import { openCallWaits, type WaitByHand } from './call-waits-by-hand.ts';
import type { Dice } from './dice.ts';
import type { Ledger } from './ledger.ts';
import type { SignalAct } from './script.ts';
import { isStoreError } from './store-errors.ts';
import { fitting, misfitting, type Shape, shapeOf } from './wait-args.ts';

export interface OutsideWorld {
  readonly ledger: Ledger;
  /** The store from a process that drives nothing. */
  readonly store: Journal;
  /** Through the runtime of this worker; `undefined` while the worker is down. */
  readonly throughWorker: (worker: number, signal: NewSignal) => Promise<Signalled> | undefined;
}

interface Waiting {
  readonly run: string;
  readonly tenant: string;
  readonly wait: WaitByHand;
}

export class Outside {
  readonly #world: OutsideWorld;
  readonly #tries = new Map<string, number>();
  #payloads = 0;
  #closing = 0;

  constructor(world: OutsideWorld) {
    this.#world = world;
  }

  /** @param name of what happens; the same one again is known by it. */
  async act(act: SignalAct, name: string): Promise<void> {
    const { times = 1 } = act;
    const aimed = this.#aimOf(act);
    if (aimed === undefined) return;
    const all = Array.from({ length: times }, (_, nth) => this.#signal(act, `${name}.${nth}`, aimed));
    await Promise.all(all);
  }

  async actAgain(act: SignalAct, name: string): Promise<void> {
    const aimed = this.#known.get(name) ?? this.#aimOf(act);
    if (aimed !== undefined) await this.#signal(act, `${name}.0`, aimed);
  }

  /** By the name of what happened: whom it was for. */
  readonly #known = new Map<string, Aim>();

  #aimOf({ tenant, key, waiting }: SignalAct): Aim | undefined {
    if (key !== undefined) return { tenant, key, shape: this.#waits().find(({ wait }) => wait.key === key)?.wait };
    const waits = this.#waits();
    const found = waits.length === 0 ? undefined : waits[(waiting ?? 0) % waits.length];
    return found?.wait.key === undefined ? undefined : { tenant: found.tenant, key: found.wait.key, shape: found.wait };
  }

  #signal({ shape, misfits, keepMs, worker }: SignalAct, id: string, aim: Aim): Promise<void> {
    const { tenant, key } = aim;
    if (!this.#known.has(id)) this.#known.set(id.slice(0, id.lastIndexOf('.')), aim);
    const wanted = shape ?? shapeOf(aim.shape?.schema);
    const payload = this.#payload(wanted, misfits === true);
    return this.#send({ tenant, key, id, payload, keepMs }, worker);
  }

  #payload(shape: Shape | undefined, misfits: boolean): Json {
    this.#payloads += 1;
    const nth = 10_000 + this.#payloads;
    return misfits ? misfitting(shape, nth) : fitting(shape, nth);
  }

  /** Signals what is still waited for, so that all runs can end. */
  async close(dice: Dice): Promise<void> {
    const said = new Set<string>();
    for (const { run, tenant, wait } of this.#waits()) {
      const { key = '', step, call, schema, until } = wait;
      const name = `${run} ${step}.${call}.${wait.wait}`;
      if (said.has(`${tenant} ${key}`) || (until !== undefined && dice.chance(0.5))) continue;
      const tries = this.#tries.get(name) ?? 0;
      // One that was accepted is enough, until it has passed: another one would hide that it was lost.
      if (tries > this.#passed(run, wait) || tries >= MAX_TRIES) continue;
      said.add(`${tenant} ${key}`);
      this.#closing += 1;
      const id = `closing ${this.#closing}`;
      const payload = this.#payload(shapeOf(schema), dice.chance(0.1));
      this.#tries.set(name, tries + 1);
      void this.#sendTo(run, name, tries, { tenant, key, id, payload, keepMs: 60_000 });
    }
  }

  /** One that was refused, or went to others, does not count. */
  async #sendTo(run: string, name: string, tries: number, signal: NewSignal): Promise<void> {
    const answer = await this.#heard(this.#world.store.events.signal(signal));
    if (answer?.runs.includes(run) !== true) this.#tries.set(name, tries);
  }

  /** How many signals came for the wait that it could not take. */
  #passed(run: string, { step, call, wait }: WaitByHand): number {
    const entries = this.#world.ledger.runs.get(run)?.entries ?? [];
    return entries.filter(
      (entry) => entry.kind === 'event_passed' && entry.step === step && entry.call === call && entry.wait === wait,
    ).length;
  }

  async #send(signal: NewSignal, worker: number | undefined): Promise<void> {
    const { ledger, store, throughWorker } = this.#world;
    ledger.tell('outside', () => `${signal.key}: signal ${signal.id} ${JSON.stringify(signal.payload)}`);
    const said = worker === undefined ? undefined : throughWorker(worker, signal);
    await this.#heard(said ?? store.events.signal(signal));
  }

  async #heard(said: Promise<Signalled>): Promise<Signalled | undefined> {
    try {
      return await said;
    } catch (error) {
      const isOrdinary = PilotageError.is(error) && ORDINARY.has(error.code);
      if (!isOrdinary && !isStoreError(error))
        this.#world.ledger.violated('no fault', `whoever signalled was told: ${String(error)}`);
      return undefined;
    }
  }

  #waits(): Waiting[] {
    const { ledger } = this.#world;
    return [...ledger.runs].flatMap(([run, { endedAt, entries }]) => {
      const [first] = entries;
      if (endedAt !== undefined || first?.kind !== 'started') return [];
      const { tenant } = first.identity;
      const events = openCallWaits(entries).filter((wait) => wait.for === 'event');
      return events.map((wait) => ({ run, tenant, wait }));
    });
  }
}

interface Aim {
  readonly tenant: string;
  readonly key: string;
  /** Somebody who waits for it. */
  readonly shape: WaitByHand | undefined;
}

const MAX_TRIES = 6;
/** What is rightly said to somebody who signals what fits nobody, or through a runtime that is about to close. */
const ORDINARY: ReadonlySet<string> = new Set(['payload_invalid', 'runtime_closed']);
