/** The runs that this process drives: claims them as there is room, keeps their leases, and lets go of them. */
import { type Control, defined, steadyMs } from '#core';
import {
  type Claim,
  type ClaimedRun,
  isJournalGone,
  isTransientStoreError,
  MAX_LEASE_MS,
  mayComeBack,
  type NewRun,
  type ParkedRequest,
  type RunRecord,
  runNotFound,
  type Sending,
} from '#journal';
import { foldEntries, type RunState } from '#state';
import type { RunDriver } from '../loop/driver.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { type Moment, momentOf } from '../loop/held-lease.ts';
import { type Exit, exitError, TRY_AGAIN_MS } from '../loop/let-go.ts';
import { Advances } from './advances.ts';
import { Alarms, startSweeping } from './alarms.ts';
import { Claiming } from './claiming.ts';
import type { Driver } from './driver-port.ts';
import { EndedRuns } from './ended-runs.ts';
import { FairClaim } from './fair-claim.ts';
import { Heartbeat, isDeadOwner, ownerName } from './leases.ts';
import type { FleetOptions, Live, Place } from './live-run.ts';
import { Loans } from './loans.ts';
import { ParkedRuns } from './parked-runs.ts';
import { Passing } from './passing.ts';
import { PickUp, Refusals } from './pick-up.ts';
import { Postponed } from './postponed.ts';
import type { QueuedRun } from './run-queue.ts';
import { SentControls } from './sent-controls.ts';
import { type AdvanceDueOptions, type AdvancedRun, type AdvancedRuns, type AdvanceOptions, Slices } from './slices.ts';
import { type Slot, Slots } from './slots.ts';
import { TurnsToCome } from './turns-to-come.ts';
import { Waking } from './waking.ts';

/** A run is looked at again after this time at the earliest. */
const LEAST_ALARM_MS = 10;
/** Between two tries to claim a run that waits here: twice as long each time. */
const FIRST_DELAY_MS = 250;
/** About 8 s: then those who wait for the run hear that the store cannot take it. */
const TRIES_UNTIL_TOLD = 6;
/** After this time a run that was left to others is looked at again. */
const LEFT_TO_OTHERS_MS = 2_100;
export class Fleet {
  readonly #deps: DriverDeps;
  readonly #options: FleetOptions;
  readonly #live = new Map<string, Live>();
  readonly #wakes: Waking;
  readonly #slots: Slots;
  readonly #loans: Loans;
  readonly #fairClaim: FairClaim;
  readonly #claiming: Claiming;
  readonly #pickUp: PickUp;
  readonly #owner = ownerName();
  readonly ended: EndedRuns;
  readonly #toCome: TurnsToCome;
  /** What is to be done about a run soon: tried again, or looked at. */
  readonly #later: Postponed;
  /** A program that takes over no due runs still goes on with those that it knows: those that others have, and those that were parked here. */
  readonly #alarms: Alarms;
  readonly #parkedHere: Alarms;
  readonly #refusals: Refusals;
  readonly #parked: ParkedRuns | undefined;
  /** What is due is carried out when the driver that was given says so. */
  readonly #advances: Advances | undefined;
  readonly #beat: Heartbeat;
  readonly #sent: SentControls;
  readonly #slices: Slices;
  /** Runs that are being claimed, which waited for a slot. */
  #claims = 0;
  readonly #passing: Passing;
  #stopWork: (() => void) | undefined;
  #closing = false;
  /** By the steady clock: when what is still under way is aborted, while the fleet closes. */
  #abortsAt = Number.POSITIVE_INFINITY;
  #cancelAbort = (): void => {};

  constructor(deps: DriverDeps, options: FleetOptions) {
    this.#deps = deps;
    this.#options = options;
    this.ended = new EndedRuns(this, { ...deps, owner: this.#owner, leaseMs: options.leaseMs });
    this.#slots = new Slots(options.slots);
    this.#loans = new Loans(this.#slots, (run) => this.#live.get(run));
    this.#fairClaim = new FairClaim(deps.clock, this.#slots, (which) =>
      deps.journal.claimDue({ ...this.#wanted(), ...which, isDead: isDeadOwner }),
    );
    this.#pickUp = new PickUp(deps, options);
    this.#claiming = new Claiming(deps.clock, this.#slots, {
      drive: (run, slot, askedAt, hasNews) => this.#driveFound(run, slot, askedAt, hasNews),
      giveBack: (claim) => this.#pickUp.giveBack(claim),
      freed: () => this.#startWaiting(),
    });
    this.#passing = new Passing(deps, (run) => this.#live.get(run)?.driver.lease.fence);
    this.#toCome = new TurnsToCome(deps.journal, (run) => this.wake(run));
    this.#sent = new SentControls(deps, {
      poke: (run) => this.#poke(run),
      drive: (waiting) => this.#driveNow(waiting),
      queue: (waiting) => this.enqueue(waiting),
      record: (run) => this.#record(run),
      migrates: options.migrate !== undefined,
    });
    this.#refusals = new Refusals(deps.clock);
    this.#later = new Postponed(deps.clock);
    const ring = (run: string): void => this.#wakes.look(run, () => this.#wakes.ring(run));
    this.#alarms = new Alarms(deps.clock, ring);
    this.#parkedHere = new Alarms(deps.clock, (run) =>
      this.#parked === undefined ? ring(run) : this.#parked.ring(run),
    );
    this.#beat = new Heartbeat({
      ...{ journal: deps.journal, clock: deps.clock, leaseMs: options.leaseMs },
      drivers: () => [...this.#live.values()].map(({ driver }) => driver),
      onFault: (error) => deps.onFault(error),
    });
    this.#slices = this.#slicesOf(deps);
    this.#wakes = this.#wakesOf(deps);
    this.#advances = options.driver && this.#advancesFor(options.driver);
    if (!options.goesOn || this.#advances !== undefined) return;
    this.#parked = new ParkedRuns(deps, options.agents, this.#slots, this.#claiming, (limit, runs) =>
      deps.journal.claimParked({ ...this.#wanted(runs), ...defined({ runs }), limit }),
    );
  }

  #advancesFor(driver: Driver): Advances {
    const { journal, clock, onFault } = this.#deps;
    return new Advances(driver, {
      ...{ journal, clock, onFault, owner: this.#owner },
      queue: (waiting) => this.#queue(waiting),
      letGoOf: (run) => (this.#poke(run) ? this.#live.get(run)?.done : undefined),
      refusedUntil: (run) => this.#refusals.until(run),
      takenOver: () => this.#options.agents.takenOver,
      remind: (run, at) => this.#alarms.set(run, at, false),
    });
  }

  #wakesOf(deps: DriverDeps): Waking {
    return new Waking(deps, {
      ...{ later: this.#later, alarms: this.#alarms, refusals: this.#refusals, advances: () => this.#advances },
      isClosing: () => this.#closing,
      drives: (run) => this.#live.has(run),
      poke: (run) => this.#poke(run),
      record: (run) => this.#record(run),
      enqueue: (waiting) => this.enqueue(waiting),
      isCancelled: (turn) => this.#pickUp.isCancelled(turn),
      forgetTurn: (run) => this.#toCome.forget(run),
      cover: (identity) => this.#slices.note(identity),
      looked: () => this.#slices.changed(),
    });
  }

  #slicesOf({ clock, journal, states }: DriverDeps): Slices {
    return new Slices({
      ...{ clock, journal, states, owner: this.#owner, works: () => this.#stopWork !== undefined },
      live: () => this.#live.values(),
      isMoving: () => this.#wakes.underWay + this.#claims > 0,
      isQueued: (run) => this.#slots.queue.isWaiting(run),
      drive: (run) => this.claimAndDrive(run, false),
      wakeTasks: (run) => this.#wakes.wakeTasks(run),
      forget: (run) => {
        this.#slots.queue.forget(run);
        for (const alarms of [this.#alarms, this.#parkedHere]) alarms.clear(run);
        this.#later.forget(run);
      },
      claimDue: async (most, note) => {
        const claim = async (room: number): Promise<readonly ClaimedRun[]> => {
          const claimed = await this.#fairClaim.next(Math.min(room, most));
          for (const each of claimed) note(each.claim.run);
          return claimed;
        };
        return this.#closing ? 0 : (await this.#claiming.some(claim)).found;
      },
    });
  }

  /** See `Slices`. */
  advance(run: string, options: AdvanceOptions): Promise<AdvancedRun> {
    return this.#slices.advance(run, options);
  }

  advanceDue(options: AdvanceDueOptions, fire: () => Promise<void>): Promise<AdvancedRuns> {
    return this.#slices.advanceDue(options, fire);
  }

  /** These runs have got a signal. */
  signalled(runs: readonly string[]): void {
    for (const run of runs) if (!this.#poke(run)) this.#advances?.hand(run);
    this.#parked?.look();
  }

  /** False: the run is not driven here. */
  #poke(run: string): boolean {
    const live = this.#live.get(run);
    if (live === undefined) this.#claiming.hear(run);
    else live.driver.poke();
    return live !== undefined;
  }

  /** The run as far as it has come, if this process drives it now. */
  driven(run: string): RunState | undefined {
    return this.#live.get(run)?.driver.state;
  }

  /** Stores a run, and drives it if there is a slot and the run was not there before. False when it is not driven. */
  launch(run: NewRun, store?: (leased: NewRun) => Promise<Claim | undefined>): Promise<boolean> {
    return this.#stored(run, store ?? ((leased) => this.#deps.journal.create(leased)));
  }

  /**
   * Stores a message of a session, and drives the run that it begins when its turn has come.
   * @returns the run in which the message was accepted before.
   */
  async sendMessage(sending: Sending): Promise<string | undefined> {
    let before: string | undefined;
    const send = async (request: Sending): Promise<Claim | undefined> => {
      const sent = await this.#deps.journal.send(request);
      before = 'run' in sent ? sent.run : undefined;
      return 'claim' in sent ? sent.claim : undefined;
    };
    const { starts } = sending;
    const isDriven = await (starts === undefined
      ? send(sending)
      : this.#stored(starts, (leased) => send({ ...sending, starts: leased })));
    const run = before ?? starts?.identity.run;
    if (run !== undefined && isDriven !== true) this.#wakes.look(run, () => this.#toCome.expect(run, sending.scope));
    return before;
  }

  /** With a lease of this process, if there is a slot. @returns whether the run is driven here. */
  async #stored(run: NewRun, store: (leased: NewRun) => Promise<Claim | undefined>): Promise<boolean> {
    const slot = this.#advances === undefined ? this.#takeSlot(run.identity.tenant) : undefined;
    const lease = slot !== undefined ? { claim: { owner: this.#owner, leaseMs: this.#options.leaseMs } } : {};
    const askedAt = momentOf(this.#deps.clock);
    let claim: Claim | undefined;
    try {
      claim = await store({ ...run, ...lease });
    } finally {
      if (slot !== undefined && claim === undefined) this.#leave({ slot });
    }
    if (slot === undefined || claim === undefined) return false;
    this.#drive(this.#pickUp.driver(claim, foldEntries(run.entries), askedAt), { slot });
    return true;
  }

  /** Takes over due runs of the journal until the fleet is closed or the returned function is called. */
  work(): () => void {
    this.#stopWork?.();
    void this.#passing.open();
    this.#advances?.start();
    const stop = startSweeping({
      clock: this.#deps.clock,
      driveDue: () => this.#driveDue(),
      onRoom: (wake) => !this.#slots.hasRoom && this.#slots.onRoom(wake),
      // What was stored a moment ago is on its way to the driver.
      onDue: (wake) => this.#deps.journal.watchDue(() => void (this.#advances?.isAway !== false && wake())),
      onFault: (error) => this.#deps.onFault(error),
    });
    const stopWork = (): void => {
      if (this.#stopWork === stopWork) this.#stopWork = undefined;
      stop();
      void this.#advances?.stop();
    };
    this.#stopWork = stopWork;
    return stopWork;
  }

  /** Gives all runs back; what is under way in them has `graceMs` to end. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    const answered = this.#advances?.close();
    this.#stopWork?.();
    this.#later.stop();
    const swept = this.#parked?.stop();
    this.#toCome.stop();
    this.#alarms.stop();
    this.#parkedHere.stop();
    this.#slots.queue.clear();
    for (const { driver } of this.#live.values()) driver.leave();
    this.hurry(graceMs);
    while (!this.#slots.isEmpty) await new Promise<void>((resolve) => this.#slots.onRoom(resolve));
    this.#cancelAbort();
    await this.#wakes.settle();
    await swept;
    await answered;
    await this.#deps.states.settle();
    this.#beat.stop();
    this.#passing.close();
  }

  /** What is under way while the fleet closes is aborted after so long at the latest. */
  hurry(graceMs: number): void {
    const { clock } = this.#deps;
    const abortsAt = steadyMs(clock) + graceMs;
    if (abortsAt >= this.#abortsAt) return;
    this.#abortsAt = abortsAt;
    this.#cancelAbort();
    const abort = (): void => {
      for (const { driver } of this.#live.values()) driver.stop('closing');
    };
    if (graceMs > 0) this.#cancelAbort = clock.after(graceMs, abort);
    else abort();
  }

  #takeSlot(tenant: string): Slot | undefined {
    this.#loans.settle();
    return this.#slots.take(tenant);
  }

  #leave({ slot, lender }: Place): void {
    this.#loans.giveBack(slot, lender);
    this.#startWaiting();
  }

  /** Waits for a run. Code of another run that waits here lends that run's slot. */
  waiting<T>(run: string, waited: Promise<T>): Promise<T> {
    return this.#loans.waiting(run, waited, () => this.#startWaiting());
  }

  /** Drives a stored run as soon as there is a slot, or has it driven. */
  enqueue(waiting: QueuedRun): void {
    if (this.#advances?.takes(waiting) !== true) this.#queue(waiting);
  }

  #queue(waiting: QueuedRun): void {
    this.#slots.queue.enqueue(waiting);
    this.#startWaiting();
  }

  #startWaiting(): void {
    this.#loans.settle();
    for (;;) {
      const next = this.#closing ? undefined : (this.#slots.next() ?? this.#loans.next());
      if (next === undefined) return;
      const { waiting } = next;
      const { run, acceptChanges } = waiting;
      this.#claims += 1;
      const claimed = this.#driveClaimed(next, () => this.#claimRun(run, acceptChanges)).then(
        (isDriven) => void (isDriven || this.#advances?.failed(run)),
        (error: unknown) => this.#postpone(waiting, error),
      );
      void claimed.finally(() => {
        this.#claims -= 1;
        this.#slices.changed();
      });
    }
  }

  /** A run that was to be driven here, and could not be claimed, is asked for again; its readers are told when that lasts. */
  #postpone(waiting: QueuedRun, error: unknown): void {
    const { run, tries = 0, acceptChanges } = waiting;
    const isAsked = this.#advances?.failed(run) === true;
    if (this.#closing || (isAsked && mayComeBack(error))) return;
    if (this.#wakes.isGone(run, error)) {
      this.#deps.hub.tell(run, { type: 'exit', error });
    } else if (isJournalGone(error)) {
      this.#tellReaders(run, error);
    } else if (mayComeBack(error)) {
      if (tries + 1 === TRIES_UNTIL_TOLD) this.#tellReaders(run, error);
      const delayMs = Math.min(FIRST_DELAY_MS * 2 ** tries, TRY_AGAIN_MS);
      this.#later.after(delayMs, run, () => this.enqueue({ ...waiting, tries: tries + 1 }));
    } else if (this.#refuse(run, error) === 1) {
      // Perhaps others can, whose code is the run's. That nobody could shows when it is looked at again.
      this.#later.after(LEFT_TO_OTHERS_MS, run, () => this.wake(run, acceptChanges));
    }
  }

  /** Nobody has told them yet that this process cannot go on with the run. */
  #tellReaders(run: string, error: unknown): void {
    this.#deps.onFault(error);
    this.#deps.hub.tell(run, { type: 'exit', error });
  }

  /** The run is left to others, who may be able to go on with it. When they did not, those who wait for it here are told. */
  #refuse(run: string, error: unknown): number {
    const { times } = this.#refusals.note(run);
    if (times > 1 && (times === 2 || this.#deps.hub.hasReaders(run))) this.#tellReaders(run, error);
    return times;
  }

  /** Takes over due runs of agents that are known here. False: none is due, or no slot is free. */
  async #driveDue(): Promise<boolean> {
    this.#loans.settle();
    return (await this.#claiming.some((room) => this.#fairClaim.next(room))).found > 0;
  }

  /** What is claimed here without a name. @param parkedHere these go on here whosever they are. */
  #wanted(parkedHere?: readonly string[]): Omit<ParkedRequest, 'limit'> {
    const { names, takenOver } = this.#options.agents;
    return {
      owner: this.#owner,
      leaseMs: this.#options.leaseMs,
      agents: parkedHere === undefined ? takenOver : names,
      exceptTenants: this.#slots.fullTenants(),
      exceptRuns: [...this.#refusals.all(), ...(this.#advances?.handed() ?? []), ...this.#unsure()],
    };
  }

  /** Runs that are driven here, and whose leases could not be renewed in time: they may look due, and are this process's as long as nobody else claims them. */
  #unsure(): readonly string[] {
    return [...this.#live].flatMap(([run, { driver }]) => (driver.lease.isCertain ? [] : [run]));
  }

  /** Where a driver wakes runs, what the sweep finds is handed to it, and goes on here only when it was left lying. */
  async #driveFound(
    { claim, entries }: ClaimedRun,
    slot: Slot,
    askedAt: Moment,
    hasNews: () => boolean,
  ): Promise<void> {
    const { run } = claim;
    if (this.#advances?.isForDriver(run) === true) {
      this.#leave({ slot });
      await this.#pickUp.giveBack(claim);
      this.#advances.hand(run);
      return;
    }
    const pick = (): Promise<RunDriver | undefined> => this.#pickUp.claimed(claim, askedAt, false, entries);
    await this.#driveClaimed({ slot }, pick, hasNews).catch((error: unknown) => this.#passOver(run, error));
  }

  /** A run that cannot be carried out here must not block the next one. */
  #passOver(run: string, error: unknown): void {
    if (mayComeBack(error) || isJournalGone(error)) throw error;
    this.#refuse(run, error);
  }

  /** See `SentControls`. */
  send(run: string, control: Control): Promise<boolean> {
    return this.#sent.send(run, control);
  }

  /** A message of a session was stored in the inbox of the run: somebody drives it then. */
  told(run: string): Promise<void> {
    return this.#sent.told(run);
  }

  /** A run was told something, or was just stored, by one that is driven here. */
  wake(run: string, acceptChanges: boolean = false): void {
    this.#wakes.wake(run, acceptChanges);
  }

  /** See `Waking`. */
  remind(state: RunState): void {
    this.#wakes.remind(state);
  }

  /** Until a run that has ended here is let go of. */
  async untilOver(run: string): Promise<void> {
    const live = this.#live.get(run);
    if (live !== undefined && live.driver.state.ending !== null) await live.done;
  }

  /** Drives the run here, unless it has ended; if another process has it that may live, when that was silent for its lease. */
  async claimAndDrive(run: string, acceptChanges: boolean): Promise<void> {
    if (this.#live.has(run)) return;
    const { identity, priority } = await this.#record(run);
    await this.#driveNow({ run, tenant: identity.tenant, priority, acceptChanges });
  }

  /** Or when there is room, or the store can be written again. @throws why the run cannot be carried out here. */
  async #driveNow(waiting: QueuedRun): Promise<void> {
    const { run, tenant, acceptChanges } = waiting;
    if (this.#advances?.takes(waiting) === true) return;
    const slot = this.#takeSlot(tenant);
    if (slot === undefined) return this.enqueue(waiting);
    try {
      await this.#driveClaimed({ slot }, () => this.#claimRun(run, acceptChanges));
    } catch (error) {
      if (!isTransientStoreError(error)) throw error;
      this.#postpone(waiting, error);
    }
  }

  async #record(run: string): Promise<RunRecord> {
    const record = await this.#deps.journal.get(run);
    if (record === undefined) throw runNotFound(run);
    return record;
  }

  async #claimRun(run: string, acceptChanges = false): Promise<RunDriver | undefined> {
    const { lease } = await this.#record(run);
    const askedAt = momentOf(this.#deps.clock);
    const own = { owner: this.#owner, leaseMs: this.#options.leaseMs, isDead: isDeadOwner };
    const from = lease !== undefined && isDeadOwner(lease.owner) ? { from: lease.owner } : {};
    const claim = await this.#deps.journal.claim({ run, ...own, ...from });
    if (claim !== undefined) return this.#pickUp.claimed(claim, askedAt, acceptChanges);
    if (this.#closing) return undefined;
    // Another look of this process has it, which may not accept what this one does.
    const again = (): Promise<RunDriver | undefined> => this.#claimRun(run, acceptChanges);
    const look = this.#pickUp.lookAt(run);
    if (look !== undefined) return look.then(again);
    const { lease: held = lease, wakeAt, readAt: now } = await this.#record(run);
    const asked = held?.owner === this.#owner ? this.#claiming.untilKnown() : undefined;
    if (asked !== undefined) return asked.then(again);
    if (held === undefined) {
      // Somebody was faster, and has carried it out or left it, or has moved the time at which it begins.
      if (acceptChanges || (wakeAt ?? 0) > now) this.wake(run, acceptChanges);
    } else {
      // Somebody has it who may live: asked for again when that lease would be over.
      const leftMs = held.owner === this.#owner ? 0 : Math.min(held.until - now, MAX_LEASE_MS);
      this.#later.after(Math.max(leftMs, LEAST_ALARM_MS), run, () => this.wake(run, acceptChanges), false);
    }
    return undefined;
  }

  /** In a slot that was taken before. @param hasNews signals may have come while it was being claimed, which told nobody. */
  async #driveClaimed(
    place: Place,
    claim: () => Promise<RunDriver | undefined>,
    hasNews = () => true,
  ): Promise<boolean> {
    let driver: RunDriver | undefined;
    try {
      driver = await claim();
    } finally {
      if (driver === undefined) this.#leave(place);
    }
    if (driver === undefined) return false;
    this.#drive(driver, place);
    if (hasNews()) driver.poke();
    return true;
  }

  #drive(driver: RunDriver, { slot, lender }: Place): void {
    const { run } = driver.state.identity;
    // A turn of the event loop first: whoever started the run can begin to listen before the planner is asked.
    const turn = new Promise<void>((resolve) => setImmediate(resolve));
    // This process lost the run while it stood still, and has claimed it again: nothing drives it twice at once.
    const before = this.#live.get(run);
    this.#later.forget(run);
    this.#alarms.clear(run);
    this.#parkedHere.clear(run);
    this.#refusals.forget(run);
    before?.driver.stop('lost');
    const known = this.#passing.open();
    const ready = before === undefined && known === undefined ? turn : Promise.all([turn, known, before?.exit]);
    const exit = ready.then(() => this.#loans.within(run, () => driver.drive()));
    const live: Live = { driver, slot, lender, exit, awaited: false, done: exit.then((how) => this.#letGo(live, how)) };
    this.#live.set(run, live);
    this.#passing.begins(run);
    this.#options.tellRun?.(driver, exit);
    this.#advances?.slice(driver, exit);
    this.#slices.drives(driver);
    if (this.#closing) driver.stop('closing');
    this.#beat.start();
  }

  #letGo(live: Live, exit: Exit): void {
    const { driver, awaited } = live;
    const { run, tenant } = driver.state.identity;
    if (this.#live.get(run) === live) this.#live.delete(run);
    const error = exitError(exit, run);
    const isEnded = exit.kind === 'ended';
    const isOfSlice = this.#slices.over(live, exit);
    const isSlice = exit.kind === 'closed' && exit.goesOn === true;
    if (isEnded || isSlice || exit.kind === 'parked')
      this.#deps.states.letGo(driver.state, driver.kept, driver.lease.fence);
    if (isEnded) this.#options.onEnded(driver.state);
    if (isEnded && driver.state.turn !== null)
      this.#wakes.look(run, () => this.#toCome.wakeLive(driver.state.identity));
    if (exit.kind === 'broken' && !awaited && !this.#deps.hub.hasReaders(run)) this.#deps.onFault(exit.error);
    this.#deps.hub.tell(run, error === undefined ? { type: 'exit', isEnded } : { type: 'exit', error });
    if (this.#live.size === 0) this.#beat.stop();
    // The run was parked just when a signal came, which only this process may know of.
    const priority = Number.POSITIVE_INFINITY;
    if (this.#advances !== undefined && exit.kind !== 'broken') this.#advances.over(run);
    else if (exit.kind === 'parked' && driver.hasNews) this.#slots.queue.enqueue({ run, tenant, priority });
    else if (exit.kind === 'parked' && exit.wakeAt !== undefined && !this.#closing && !isOfSlice) {
      this.#parkedHere.set(run, exit.wakeAt, exit.isPaused !== true);
    } else if (exit.kind === 'broken' && !this.#closing) this.#broke(run, exit.error);
    this.#loans.letGo(live);
    this.#startWaiting();
    this.#slices.changed();
  }

  /** What the store could not take goes on when it can; what else broke is left to others for a while. */
  #broke(run: string, error: unknown): void {
    if (mayComeBack(error)) this.#later.after(TRY_AGAIN_MS + LEAST_ALARM_MS, run, () => this.wake(run));
    else this.#refusals.note(run);
  }

  /** The state in which this process lets go of a run. @throws why it had to, when the run has neither ended nor paused. */
  settled(run: string): Promise<RunState> | undefined {
    const live = this.#live.get(run);
    if (live === undefined) return undefined;
    live.awaited = true;
    const settled = live.exit.then((exit) => {
      const error = exitError(exit, run);
      if (error !== undefined) throw error;
      return live.driver.state;
    });
    const asks = live.driver.untilItAsks().then(() => live.driver.state);
    return this.waiting(run, Promise.race([settled, asks]));
  }
}
