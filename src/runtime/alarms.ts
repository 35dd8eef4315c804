/**
 * When runs that are parked go on by themselves, for as many runs as there are, over one timer. Times are those of the wall clock,
 * which may be set, and timers stand still while the machine sleeps: it is looked at again and again.
 */

import { type Clock, describeThrown, Heap, LONGEST_NAP_MS } from '#core';

/** The delay, in milliseconds, with which due runs are looked at: the store's clock may be behind this clock. */
const LEAST_DELAY_MS = 10;
/** How many due alarms ring in one turn of the event loop. */
const RINGS_A_TURN = 64;

/** The time of a run, in milliseconds since the epoch. */
interface Alarm {
  readonly run: string;
  readonly at: number;
}

/** Alarms that count no more are taken out of the order when there are so many of them, and more than those that count. */
const MOST_STALE = 64;

export class Alarms {
  readonly #clock: Clock;
  readonly #ring: (run: string) => void;
  readonly #alarms = new Map<string, Alarm>();
  /** The earliest first; among them those that were cleared or set anew, which are not in `#alarms` any more. */
  readonly #order = new Heap<Alarm>((one, other) => one.at < other.at);
  /** Runs for which the process stays alive, since they wait for nobody. */
  readonly #holding = new Set<string>();
  #armed: { readonly at: number; readonly holds: boolean; readonly cancel: () => void } | undefined;

  constructor(clock: Clock, ring: (run: string) => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** In place of the one that the run has. @param holds the process stays alive for it. */
  set(run: string, at: number, holds: boolean): void {
    const alarm = { run, at };
    this.#alarms.set(run, alarm);
    this.#order.push(alarm);
    this.#forgetStale();
    if (holds) this.#holding.add(run);
    else this.#holding.delete(run);
    if (this.#armed === undefined || at < this.#armed.at || this.#armed.holds !== this.#holds) this.#arm(at);
  }

  clear(run: string): void {
    if (!this.#alarms.delete(run)) return;
    this.#forgetStale();
    this.#holding.delete(run);
    if (this.#alarms.size === 0) this.stop();
    else if (this.#armed?.holds !== this.#holds) this.#arm(this.#armed?.at ?? 0);
  }

  stop(): void {
    this.#alarms.clear();
    this.#order.clear();
    this.#holding.clear();
    this.#armed?.cancel();
    this.#armed = undefined;
  }

  get #holds(): boolean {
    return this.#holding.size > 0;
  }

  /** @param at no alarm is due before. */
  #arm(at: number): void {
    const first = Math.min(at, this.#armed?.at ?? at);
    this.#armed?.cancel();
    const holds = this.#holds;
    const delayMs = Math.min(Math.max(first - this.#clock.now(), LEAST_DELAY_MS), LONGEST_NAP_MS);
    this.#armed = { at: first, holds, cancel: this.#clock.after(delayMs, () => this.#look(), { holds }) };
  }

  #counts(alarm: Alarm): boolean {
    return this.#alarms.get(alarm.run) === alarm;
  }

  #forgetStale(): void {
    if (this.#order.size > 2 * this.#alarms.size + MOST_STALE) this.#order.keep((alarm) => this.#counts(alarm));
  }

  #look(): void {
    this.#armed = undefined;
    const now = this.#clock.now();
    let rung = 0;
    for (let first = this.#order.first; first !== undefined; first = this.#order.first) {
      const counts = this.#counts(first);
      if (counts && (first.at > now || rung === RINGS_A_TURN)) {
        this.#arm(first.at);
        return;
      }
      this.#order.pop();
      if (!counts) continue;
      rung += 1;
      this.#alarms.delete(first.run);
      this.#holding.delete(first.run);
      this.#ring(first.run);
    }
  }
}

/** Looks for due runs again and again: after a while, and as soon as there is room for one more. */

/** No longer than a lease of a few seconds: a run of a process that died goes on so long after its lease at the latest. */
const SWEEP_MS = 250;

interface SweepDeps {
  readonly clock: Clock;
  /** Takes over due runs. False when none is due, or no slot is free. */
  readonly driveDue: () => Promise<boolean>;
  /** Calls `wake` when a slot is free again, if none is free now. False: one is free. */
  readonly onRoom: (wake: () => void) => boolean;
  /** Calls `wake` when runs may be due. Returns how to stop it. */
  readonly onDue: (wake: () => void) => () => void;
  readonly onFault: (error: unknown) => void;
}

/** Sweeps until the returned function is called. */
export function startSweeping({ clock, driveDue, onRoom, onDue, onFault }: SweepDeps): () => void {
  let cancel = (): void => {};
  let stopped = false;
  let sweeping = false;
  /** Asked to look again while it looks. */
  let again = false;
  let waitsForRoom = false;
  /** What was told last: a store that stays broken is told of once. */
  let told: string | undefined;
  const sweep = async (): Promise<void> => {
    if (sweeping || stopped) return;
    sweeping = true;
    cancel();
    try {
      do {
        again = false;
        while (!stopped && (await driveDue()));
      } while (again && !stopped);
      told = undefined;
    } catch (error) {
      const words = describeThrown(error);
      if (words !== told) onFault(error);
      told = words;
    }
    sweeping = false;
    if (stopped) return;
    cancel = clock.after(SWEEP_MS, () => void sweep());
    if (waitsForRoom) return;
    waitsForRoom = onRoom(() => {
      waitsForRoom = false;
      void sweep();
    });
  };
  const stopListening = onDue(() => {
    again = true;
    void sweep();
  });
  void sweep();
  return () => {
    stopped = true;
    stopListening();
    cancel();
  };
}
