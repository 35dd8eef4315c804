/**
 * The face: starts runs, finds them again, and drives those whose lease this process holds. Everything about a run is in
 * the journal; what is kept here is only which runs are being driven.
 */
import { type Clock, systemClock } from '../core/clock.ts';
import { type Control, validateControl } from '../core/control.ts';
import type { Entry, Turn } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { assertIdentity, type Identity } from '../core/identity.ts';
import { captureJson } from '../core/json.ts';
import { assertLimits, type Limits } from '../core/limits.ts';
import { asPlanner, type Planner, type PlannerFunction } from '../core/planner.ts';
import type { Claim, Journal, RunQuery, RunRecord } from '../journal/port.ts';
import { sqliteJournal } from '../journal/sqlite.ts';
import { createCatalogue, type ToolSet } from '../tools/catalogue.ts';
import { foldEntries, openState } from '../view/run-state.ts';
import { ARTIFACT_FETCH, artifactFetch } from './artifact-fetch.ts';
import { RunDriver } from './driver.ts';
import type { DriverDeps } from './driver-deps.ts';
import { NoticeHub } from './notices.ts';
import { deadOwner, ownerName } from './owner.ts';
import { Run } from './run.ts';

export interface RuntimeOptions {
  readonly planner: Planner | PlannerFunction;
  /** A list, or a record by name whose values may be AI SDK `tool()` objects. */
  readonly tools?: ToolSet;
  /** Default: the SQLite file `.pilotage/pilotage.db` in the current folder. A journal that is passed in stays open. */
  readonly journal?: Journal;
  /** For runs that do not state their own. */
  readonly limits?: Limits;
  /** At most this many runs are driven at once; others wait by priority, then age. Default 1,000. */
  readonly maxLiveRuns?: number;
  /** How long a run stays with a process that says nothing. Default 5,000; renewed every third of it. */
  readonly leaseMs?: number;
  readonly clock?: Clock;
  /** Told of faults that no caller waits for. Default: a process warning. */
  readonly onFault?: (error: unknown) => void;
}

export interface StartOptions {
  /** All four parts; `local('name')` makes one. */
  readonly identity: Identity;
  readonly limits?: Limits;
  /** Earlier turns of the conversation. */
  readonly history?: readonly Turn[];
  /** Scopes that the user holds. Default none. */
  readonly scopes?: readonly string[];
  /** -1000 to 1000; higher is driven first. Default 0. */
  readonly priority?: number;
}

/** The journal of a runtime that was given none; relative to the current folder. */
export const DEFAULT_JOURNAL_PATH = '.pilotage/pilotage.db';
const DEFAULT_LEASE_MS = 5_000;
const DEFAULT_LIVE_RUNS = 1_000;
const SWEEP_MS = 1_000;

/** @throws PilotageError `no_planner`, `invalid_config`, or a tool's registration error. Nothing is opened yet. */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new Runtime(options);
}

export class Runtime {
  readonly #planner: Planner;
  readonly #options: RuntimeOptions;
  readonly #clock: Clock;
  readonly #hub = new NoticeHub();
  readonly #live = new Map<string, { readonly driver: RunDriver; readonly done: Promise<void> }>();
  /** Runs that this process is to drive when a slot is free. */
  readonly #queue: { readonly run: string; readonly priority: number }[] = [];
  readonly #owner = ownerName();
  #journal: Journal | undefined;
  #deps: DriverDeps | undefined;
  #stopBeat: (() => void) | undefined;
  #stopWork: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RuntimeOptions) {
    this.#planner = asPlanner(options.planner);
    if (options.limits !== undefined) assertLimits(options.limits);
    for (const name of ['maxLiveRuns', 'leaseMs'] as const) {
      const value = options[name];
      if (value === undefined || (Number.isInteger(value) && value > 0)) continue;
      throw new PilotageError('invalid_config', `${name} is ${value}; give a whole number from 1 up.`);
    }
    createCatalogue(options.tools ?? []);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#journal = options.journal;
  }

  /**
   * Stores a run, due at once, and drives it as soon as there is a slot. A run id that exists already is the same run:
   * the handle of it is returned, and nothing is stored.
   * @throws PilotageError `identity_required`, `unserializable`, `invalid_config`, `runtime_closed`, or a store error.
   */
  async start(query: string, options: StartOptions): Promise<Run> {
    this.#assertOpen();
    assertIdentity(options?.identity);
    const identity = captureJson(pickIdentity(options.identity), 'identity').json as unknown as Identity;
    const entry = this.#startedEntry(query, identity, options);
    const { priority = 0 } = options;
    if (!Number.isInteger(priority) || Math.abs(priority) > 1000) {
      throw new PilotageError('invalid_config', `priority is ${priority}; give a whole number from -1000 to 1000.`);
    }
    const journal = this.#open();
    const free = this.#hasSlot();
    const lease = { owner: this.#owner, leaseMs: this.#leaseMs() };
    const claim = await journal.create({ identity, priority, entries: [entry], ...(free ? { claim: lease } : {}) });
    if (claim !== undefined) this.#drive(new RunDriver(this.#driverDeps(), openState(entry), claim));
    else if (free) await this.#assertSameOwner(identity);
    else this.#enqueue(identity.run, priority);
    return this.run(identity.run);
  }

  /** A handle of a run, from any process. Whether it exists is found out when the handle is used. */
  run(id: string): Run {
    return new Run(id, {
      journal: this.#open(),
      hub: this.#hub,
      isDriven: () => this.#live.has(id),
      signal: (control) => this.#signal(id, control),
      drive: () => this.#claimAndDrive(id),
    });
  }

  /** Stored runs, newest first. */
  list(query: RunQuery = {}): Promise<RunRecord[]> {
    return this.#open().list(query);
  }

  /**
   * Takes over due runs of the whole journal, also those of processes that died, until the runtime is closed or the
   * returned function is called.
   */
  work(): () => void {
    this.#assertOpen();
    this.#stopWork?.();
    let cancel = (): void => {};
    let stopped = false;
    const sweep = async (): Promise<void> => {
      try {
        while (!stopped && this.#hasSlot() && (await this.#claimDue())) {}
      } catch (error) {
        this.#fault(error);
      }
      if (!stopped) cancel = this.#clock.after(SWEEP_MS, () => void sweep());
    };
    void sweep();
    this.#stopWork = () => {
      stopped = true;
      cancel();
    };
    return this.#stopWork;
  }

  /** Gives all runs back, so that another process can go on with them, and closes what this runtime opened. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stopWork?.();
    this.#queue.length = 0;
    const live = [...this.#live.values()];
    for (const { driver } of live) driver.stop('closing');
    await Promise.all(live.map(({ done }) => done));
    this.#stopBeat?.();
    if (this.#options.journal === undefined) await this.#journal?.close();
  }

  #startedEntry(query: string, identity: Identity, options: StartOptions): Entry {
    if (typeof query !== 'string') throw new PilotageError('invalid_config', 'The query must be a string.');
    const limits = { ...this.#options.limits, ...options.limits };
    assertLimits(limits);
    const body = {
      kind: 'started' as const,
      identity,
      query,
      planner: this.#planner.name,
      limits,
      scopes: options.scopes ?? [],
      ...(options.history === undefined ? {} : { history: options.history }),
    };
    return captureJson({ ...body, seq: 1, at: this.#clock.now() }, 'run').json as unknown as Entry;
  }

  /** A run id that somebody else used is never handed out. */
  async #assertSameOwner({ tenant, user, session, run }: Identity): Promise<void> {
    const record = await this.#open().get(run);
    const other = record?.identity;
    if (other === undefined || (other.tenant === tenant && other.user === user && other.session === session)) return;
    throw new PilotageError(
      'scope_mismatch',
      `The run id ${run} cannot be used. Leave it out, and a fresh one is made.`,
    );
  }

  #open(): Journal {
    this.#assertOpen();
    const journal = this.#journal ?? sqliteJournal({ path: DEFAULT_JOURNAL_PATH, clock: this.#clock });
    this.#journal = journal;
    return journal;
  }

  #assertOpen(): void {
    if (this.#closing !== undefined)
      throw new PilotageError('runtime_closed', 'The runtime is closed. Create a new one.');
  }

  #driverDeps(): DriverDeps {
    if (this.#deps !== undefined) return this.#deps;
    const journal = this.#open();
    const catalogue = createCatalogue(withFetch(this.#options.tools ?? [], journal), [ARTIFACT_FETCH]);
    this.#deps = {
      journal,
      artifacts: journal.artifacts,
      planner: this.#planner,
      clock: this.#clock,
      hub: this.#hub,
      toolsOf: (scopes, hasArtifacts) => catalogue.view(scopes, hasArtifacts ? [ARTIFACT_FETCH] : []),
      newToken: () => `pause_${crypto.randomUUID().replaceAll('-', '')}`,
      onFault: (error) => this.#fault(error),
    };
    return this.#deps;
  }

  #leaseMs(): number {
    return this.#options.leaseMs ?? DEFAULT_LEASE_MS;
  }

  #hasSlot(): boolean {
    return this.#live.size < (this.#options.maxLiveRuns ?? DEFAULT_LIVE_RUNS);
  }

  #enqueue(run: string, priority: number): void {
    const after = this.#queue.findIndex((waiting) => waiting.priority < priority);
    this.#queue.splice(after === -1 ? this.#queue.length : after, 0, { run, priority });
    this.#startWaiting();
  }

  #startWaiting(): void {
    while (this.#hasSlot()) {
      const waiting = this.#queue.shift();
      if (waiting === undefined) return;
      this.#claimAndDrive(waiting.run).catch((error: unknown) => this.#fault(error));
    }
  }

  async #signal(run: string, control: Control): Promise<void> {
    await this.#open().signal(run, validateControl(control));
    const live = this.#live.get(run);
    if (live !== undefined) live.driver.poke();
    else await this.#claimAndDrive(run);
  }

  /** Drives the run here unless somebody alive does already, or it has ended. */
  async #claimAndDrive(run: string): Promise<void> {
    if (this.#live.has(run)) return;
    const journal = this.#open();
    const record = await journal.get(run);
    if (record === undefined) throw new PilotageError('run_not_found', `There is no run ${run} in this journal.`);
    const dead = record.lease === undefined ? undefined : deadOwner(record.lease.owner);
    await this.#driveClaimed(
      await journal.claim({
        owner: this.#owner,
        leaseMs: this.#leaseMs(),
        run,
        ...(dead === undefined ? {} : { from: dead }),
      }),
    );
  }

  async #claimDue(): Promise<boolean> {
    return this.#driveClaimed(await this.#open().claim({ owner: this.#owner, leaseMs: this.#leaseMs() }));
  }

  async #driveClaimed(claim: Claim | undefined): Promise<boolean> {
    if (claim === undefined) return false;
    const entries = await this.#open().read(claim.run);
    this.#drive(new RunDriver(this.#driverDeps(), foldEntries(entries), claim));
    return true;
  }

  #drive(driver: RunDriver): void {
    const { run } = driver.state.identity;
    // A turn of the event loop first: whoever started the run can begin to listen before the planner is asked.
    const done = new Promise<void>((resolve) => setImmediate(resolve))
      .then(() => driver.drive())
      .then((exit) => {
        this.#live.delete(run);
        const error = exit.kind === 'broken' ? exit.error : exit.kind === 'closed' ? closedError(run) : undefined;
        if (exit.kind === 'broken' && !this.#hub.hasListeners(run)) this.#fault(exit.error);
        this.#hub.tell(run, error === undefined ? { type: 'exit' } : { type: 'exit', error });
        if (this.#live.size === 0) this.#stopBeat?.();
        if (this.#closing === undefined) this.#startWaiting();
      });
    this.#live.set(run, { driver, done });
    this.#startBeat();
  }

  /** One timer renews all leases, and hears of signals that other processes left. */
  #startBeat(): void {
    if (this.#stopBeat !== undefined) return;
    let cancel = (): void => {};
    const beat = (): void => {
      cancel = this.#clock.after(Math.max(1, Math.floor(this.#leaseMs() / 3)), () => {
        this.#renew().then(beat, (error: unknown) => {
          this.#fault(error);
          beat();
        });
      });
    };
    beat();
    this.#stopBeat = () => {
      cancel();
      this.#stopBeat = undefined;
    };
  }

  async #renew(): Promise<void> {
    const drivers = [...this.#live.values()].map(({ driver }) => driver);
    const leases = drivers.map((driver) => ({ run: driver.state.identity.run, fence: driver.fence }));
    const signals = await this.#open().renew(leases, this.#leaseMs());
    for (const [index, driver] of drivers.entries()) {
      const seen = signals[index];
      if (seen === undefined) {
        // A driver that has just ended has given its lease up itself.
        if (this.#live.get(driver.state.identity.run)?.driver === driver) driver.stop('lost');
      } else if (seen > driver.state.controlsTaken) driver.poke();
    }
  }

  #fault(error: unknown): void {
    if (this.#options.onFault !== undefined) this.#options.onFault(error);
    else process.emitWarning(error instanceof Error ? error : new Error(String(error)));
  }
}

function pickIdentity({ tenant, user, session, run }: Identity): Identity {
  return { tenant, user, session, run };
}

function closedError(run: string): PilotageError {
  return new PilotageError('runtime_closed', `The runtime was closed while it drove ${run}; the run can be resumed.`);
}

function withFetch(tools: ToolSet, journal: Journal): ToolSet {
  const fetch = artifactFetch(journal.artifacts);
  return Array.isArray(tools) ? [...tools, fetch] : { ...tools, [fetch.name]: fetch };
}
