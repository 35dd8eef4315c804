/**
 * The face: starts runs, finds them again, and drives those whose lease this process holds. Everything about a run is in
 * the journal; what is kept here is only which runs are being driven.
 */
import { type Clock, systemClock } from '../core/clock.ts';
import type { InputArtifact } from '../core/context.ts';
import type { Caller, Control } from '../core/control.ts';
import type { Entry, Turn } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { assertIdentity, type Identity } from '../core/identity.ts';
import { captureJson } from '../core/json.ts';
import { assertLimits, type Limits } from '../core/limits.ts';
import { asPlanner, type Planner, type PlannerFunction } from '../core/planner.ts';
import type { Claim, Journal, RunQuery, RunRecord } from '../journal/port.ts';
import { hasEnded } from '../journal/rules.ts';
import { sqliteJournal } from '../journal/sqlite.ts';
import { type Catalogue, createCatalogue, type ToolSet } from '../tools/catalogue.ts';
import { toolGet } from '../tools/tool-get.ts';
import { toolSearch } from '../tools/tool-search.ts';
import { foldEntries, openState, type RunState } from '../view/run-state.ts';
import { patientArtifacts } from './append.ts';
import { artifactFetch } from './artifact-fetch.ts';
import { startBeat } from './beat.ts';
import { type Exit, RunDriver } from './driver.ts';
import type { DriverDeps } from './driver-deps.ts';
import { type ForkOptions, forkRun } from './fork.ts';
import { contextAtStart, type GivenContext, type InputFile, loadInputs } from './inputs.ts';
import { NoticeHub } from './notices.ts';
import { deadOwner, ownerName } from './owner.ts';
import { changesOf, type Migrate, pinOf, repinned, runChanged } from './pins.ts';
import { assertProgressGuard, type ProgressGuard } from './progress-guard.ts';
import { type ReplayReport, replayRun } from './replay.ts';
import { Run } from './run.ts';
import { addressee, sendControl } from './send-control.ts';
import {
  assertMemoryOptions,
  historyFor,
  type MemoryOptions,
  type Remembered,
  type Remembering,
  SummaryKeeper,
  withMaterial,
} from './session-memory.ts';
import { Slots, type Waiting } from './slots.ts';
import { startSweeping } from './sweep.ts';

export interface RuntimeOptions {
  readonly planner: Planner | PlannerFunction;
  /** A list, or a record by name whose values may be AI SDK `tool()` objects. */
  readonly tools?: ToolSet;
  /**
   * A journal, or the path of an SQLite file. Default: `.pilotage/pilotage.db` in the current folder. A file is opened when
   * it is first needed, and closed with the runtime; a journal that is passed in stays open.
   */
  readonly journal?: Journal | string;
  /** For runs that do not state their own. */
  readonly limits?: Limits;
  /** At most this many runs are driven at once; others wait by priority, then age. A run that waits is not driven. Default 10. */
  readonly maxLiveRuns?: number;
  /** Of one tenant. Default 10. */
  readonly maxLiveRunsPerTenant?: number;
  /** How long a run stays with a process that says nothing. Default 5,000; renewed every third of it. */
  readonly leaseMs?: number;
  readonly clock?: Clock;
  /** How runs continue the earlier ones of their session. Default: not at all. */
  readonly memory?: MemoryOptions;
  /** What is done about a run that goes round in circles. Default: the planner is told after three times. */
  readonly progress?: ProgressGuard;
  /** Asked about a run whose planner or tools are others now. Default: it is left until somebody accepts the changes. */
  readonly migrate?: Migrate;
  /** Told of faults that no caller waits for. Default: a process warning. */
  readonly onFault?: (error: unknown) => void;
}

export interface StartOptions {
  /** All four parts; `local('name')` makes one. */
  readonly identity: Identity;
  readonly limits?: Limits;
  /** Earlier turns of the conversation. Default: those that the session remembers, if `memory` says so. */
  readonly history?: readonly Turn[];
  /** False: the run neither continues its session's conversation nor becomes a turn of it. Default true. */
  readonly conversation?: boolean;
  /** Scopes that the user holds. Default none. */
  readonly scopes?: readonly string[];
  /** -1000 to 1000; higher is driven first. Default 0. */
  readonly priority?: number;
  /**
   * What the planner is told beside the query. A memory block that has an `identity` of its own is refused when its
   * tenant, user or session is another.
   */
  readonly context?: GivenContext;
  /** Attachments: references of artifacts of the session, or bytes that are stored as such. */
  readonly inputs?: readonly (InputArtifact | InputFile)[];
}

/** The journal of a runtime that was given none; relative to the current folder. */
export const DEFAULT_JOURNAL_PATH = '.pilotage/pilotage.db';
/** A run that this process drives. */
interface Live {
  readonly driver: RunDriver;
  readonly exit: Promise<Exit>;
  /** Everything that follows from the exit is done too. */
  readonly done: Promise<void>;
  /** Somebody waits for the exit, and will see its error. */
  awaited: boolean;
}

const DEFAULT_LEASE_MS = 5_000;
const DEFAULT_LIVE_RUNS = 10;

/** @throws PilotageError `no_planner`, `invalid_config`, or a tool's registration error. Nothing is opened yet. */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new Runtime(options);
}

export class Runtime {
  readonly #planner: Planner;
  readonly #options: RuntimeOptions;
  readonly #clock: Clock;
  readonly #hub = new NoticeHub();
  readonly #live = new Map<string, Live>();
  /** Looks at runs that were told something. */
  readonly #waking = new Set<Promise<void>>();
  readonly #slots: Slots;
  readonly #owner = ownerName();
  readonly #catalogue: Catalogue;
  #deps: DriverDeps | undefined;
  readonly #memory: Remembering | undefined;
  #summaries: SummaryKeeper | undefined;
  #stopBeat: (() => void) | undefined;
  #stopWork: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RuntimeOptions) {
    this.#planner = asPlanner(options.planner);
    if (options.limits !== undefined) assertLimits(options.limits);
    for (const name of ['maxLiveRuns', 'maxLiveRunsPerTenant', 'leaseMs'] as const) {
      const value = options[name];
      if (value === undefined || (Number.isInteger(value) && value > 0)) continue;
      throw new PilotageError('invalid_config', `${name} is ${value}; give a whole number from 1 up.`);
    }
    if (options.progress !== undefined) assertProgressGuard(options.progress);
    const { memory = { strategy: 'none' }, maxLiveRuns = DEFAULT_LIVE_RUNS } = options;
    this.#slots = new Slots({ runs: maxLiveRuns, perTenant: options.maxLiveRunsPerTenant ?? DEFAULT_LIVE_RUNS });
    assertMemoryOptions(memory);
    this.#memory = memory.strategy === 'none' ? undefined : memory;
    const fetch = artifactFetch(() => this.#driverDeps().artifacts);
    this.#catalogue = createCatalogue(options.tools ?? [], [fetch, toolSearch, toolGet]);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Stores a run, due at once, and drives it as soon as there is a slot. A run id that exists already is the same run:
   * nothing is stored, and it goes on if nobody drives it.
   * @throws PilotageError `identity_required`, `unserializable`, `memory_block_unserializable`, `invalid_config`,
   * `runtime_closed`, `scope_mismatch` for a run id that somebody else uses or for their memory, or a store error.
   */
  async start(query: string, options: StartOptions): Promise<Run> {
    this.#assertOpen();
    assertIdentity(options?.identity);
    const identity = captureJson(pickIdentity(options.identity), 'identity').json as unknown as Identity;
    const started = this.#startedEntry(query, identity, options);
    const { priority = 0 } = options;
    if (!Number.isInteger(priority) || Math.abs(priority) > 1000) {
      throw new PilotageError('invalid_config', `priority is ${priority}; give a whole number from -1000 to 1000.`);
    }
    const deps = this.#driverDeps();
    const context = await contextAtStart(options, identity, deps.artifacts);
    const entry = withMaterial(started, context, await this.#remembered(identity, options));
    this.#assertOpen();
    const slot = this.#slots.take(identity.tenant);
    const lease = slot ? { claim: { owner: this.#owner, leaseMs: this.#leaseMs() } } : {};
    let claim: Claim | undefined;
    try {
      claim = await deps.journal.create({ identity, priority, entries: [entry], ...lease });
    } finally {
      if (slot && claim === undefined) this.#freeSlot(identity.tenant);
    }
    if (claim !== undefined) this.#drive(new RunDriver(deps, openState(entry), claim));
    else {
      await this.#assertSameOwner(identity);
      this.#enqueue({ run: identity.run, tenant: identity.tenant, priority });
    }
    return this.#handle(identity.run);
  }

  /**
   * A handle of a run, from any process. Whether it exists is found out when the handle is used.
   * @param options `as`: who speaks through it, as the program has found out; default the program itself, which may do all.
   */
  run(id: string, options: { readonly as?: Caller } = {}): Run {
    this.#assertOpen();
    return this.#handle(id, options.as);
  }

  #handle(id: string, as?: Caller): Run {
    const { journal } = this.#driverDeps();
    return new Run(id, {
      journal,
      hub: this.#hub,
      isDriven: () => this.#live.has(id),
      settled: () => this.#settled(id),
      ...(as === undefined ? {} : { as }),
      handle: (run) => this.#handle(run, as),
      addressee: (control) => addressee(journal, id, control),
      signal: (control) => this.#signal(id, control),
      fork: (options) => this.#fork(id, options),
      replay: (signal) => this.#replay(id, signal),
      drive: (acceptChanges) => this.#claimAndDrive(id, acceptChanges),
    });
  }

  async #fork(run: string, options: ForkOptions): Promise<Run> {
    this.#assertOpen();
    const forked = await forkRun(this.#driverDeps(), run, options);
    await this.#claimAndDrive(forked.run, false);
    return this.#handle(forked.run);
  }

  async #replay(run: string, signal: AbortSignal | undefined): Promise<ReplayReport> {
    this.#assertOpen();
    const { journal, artifacts, planner, toolsOf } = this.#driverDeps();
    const entries = await journal.read(run);
    const { context, identity } = foldEntries(entries.slice(0, 1));
    const inputs = await loadInputs(context.inputs ?? [], identity, artifacts);
    return replayRun({ entries, planner, toolsOf, inputs, ...(signal === undefined ? {} : { signal }) });
  }

  /** Stored runs, newest first. */
  list(query: RunQuery = {}): Promise<RunRecord[]> {
    this.#assertOpen();
    return this.#driverDeps().journal.list(query);
  }

  /**
   * Takes over due runs of the whole journal, also those of processes that died, until the runtime is closed or the
   * returned function is called.
   */
  work(): () => void {
    this.#assertOpen();
    this.#stopWork?.();
    this.#stopWork = startSweeping({
      clock: this.#clock,
      driveNext: () => this.#driveNext(),
      onRoom: (wake) => {
        if (!this.#slots.hasRoom) this.#slots.onRoom(wake);
      },
      onFault: (error) => this.#fault(error),
    });
    return this.#stopWork;
  }

  /** Gives all runs back, so that another process can go on with them, and closes what this runtime opened. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Whoever is told now finds the runtime closed.
    await Promise.resolve();
    this.#stopWork?.();
    this.#slots.clear();
    for (const { driver } of this.#live.values()) driver.stop('closing');
    while (!this.#slots.isEmpty) await new Promise<void>((resolve) => this.#slots.onRoom(resolve));
    await Promise.all(this.#waking);
    this.#stopBeat?.();
    await this.#summaries?.close();
    this.#hub.close(new PilotageError('runtime_closed', 'The runtime was closed; the run is not followed any more.'));
    const { journal } = this.#options;
    if (journal === undefined || typeof journal === 'string') await this.#deps?.journal.close();
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
      pin: pinOf(this.#planner, this.#catalogue.view(options.scopes ?? [])),
      ...(options.history === undefined ? {} : { history: options.history }),
      ...(options.conversation === false ? { conversation: false } : {}),
    };
    return captureJson({ ...body, seq: 1, at: this.#clock.now() }, 'run').json as unknown as Entry;
  }

  async #remembered(scope: Identity, { history, conversation }: StartOptions): Promise<Remembered | undefined> {
    if (this.#memory === undefined || history !== undefined || conversation === false) return undefined;
    return historyFor(this.#driverDeps().journal.memory, scope, this.#memory);
  }

  /** A run id that somebody else used is never handed out. */
  async #assertSameOwner({ tenant, user, session, run }: Identity): Promise<void> {
    const record = await this.#driverDeps().journal.get(run);
    const other = record?.identity;
    if (other === undefined || (other.tenant === tenant && other.user === user && other.session === session)) return;
    throw new PilotageError(
      'scope_mismatch',
      `The run id ${run} cannot be used. Leave it out, and a fresh one is made.`,
    );
  }

  #assertOpen(): void {
    if (this.#closing !== undefined)
      throw new PilotageError('runtime_closed', 'The runtime is closed. Create a new one.');
  }

  #driverDeps(): DriverDeps {
    if (this.#deps !== undefined) return this.#deps;
    const { journal: given = DEFAULT_JOURNAL_PATH } = this.#options;
    const journal = typeof given === 'string' ? sqliteJournal({ path: given, clock: this.#clock }) : given;
    this.#deps = {
      journal,
      artifacts: patientArtifacts(journal.artifacts, this.#clock),
      planner: this.#planner,
      clock: this.#clock,
      hub: this.#hub,
      toolsOf: (scopes, found) => this.#catalogue.view(scopes, found),
      progress: this.#options.progress ?? {},
      newToken: () => `pause_${crypto.randomUUID().replaceAll('-', '')}`,
      woke: (run) => this.#wake(run),
      remembers: this.#memory !== undefined,
      onFault: (error) => this.#fault(error),
    };
    if (this.#memory?.strategy === 'summary') {
      this.#summaries = new SummaryKeeper({ ...this.#deps, store: journal.memory }, this.#memory);
    }
    return this.#deps;
  }

  #leaseMs(): number {
    return this.#options.leaseMs ?? DEFAULT_LEASE_MS;
  }

  #freeSlot(tenant: string): void {
    this.#slots.free(tenant);
    this.#startWaiting();
  }

  #enqueue(waiting: Waiting): void {
    this.#slots.enqueue(waiting);
    this.#startWaiting();
  }

  #startWaiting(): void {
    for (;;) {
      const waiting = this.#closing === undefined ? this.#slots.next() : undefined;
      if (waiting === undefined) return;
      const { run, tenant } = waiting;
      this.#driveClaimed(tenant, () => this.#claimRun(run)).catch((error: unknown) => this.#fault(error));
    }
  }

  /** Takes over one due run of this planner. False when there is none, or no room. */
  async #driveNext(): Promise<boolean> {
    if (!this.#slots.takeAny()) return false;
    let tenant: string | undefined;
    try {
      const claim = await this.#claimNext();
      if (claim === undefined) return false;
      const { identity } = await this.#record(claim.run);
      if (!this.#slots.assign(identity.tenant)) {
        // Its room was taken meanwhile.
        await this.#giveBack(claim);
        return false;
      }
      tenant = identity.tenant;
      return await this.#driveClaimed(tenant, () => this.#driverOf(claim, false));
    } finally {
      if (tenant === undefined) {
        this.#slots.freeAny();
        this.#startWaiting();
      }
    }
  }

  #claimNext(): Promise<Claim | undefined> {
    return this.#driverDeps().journal.claim({
      owner: this.#owner,
      leaseMs: this.#leaseMs(),
      planner: this.#planner.name,
      exceptTenants: this.#slots.fullTenants(),
    });
  }

  async #signal(run: string, control: Control): Promise<void> {
    this.#assertOpen();
    const { identity, priority } = await sendControl(this.#driverDeps().journal, run, control);
    const live = this.#live.get(run);
    if (live !== undefined) return live.driver.poke();
    if (control.type !== 'PRIORITIZE') return this.#claimAndDrive(run, false);
    const now = control.payload?.['priority'];
    this.#enqueue({ run, tenant: identity.tenant, priority: typeof now === 'number' ? now : priority });
  }

  /** A run was told something, or was just stored, by one that is driven here. */
  #wake(run: string): void {
    const live = this.#live.get(run);
    if (live !== undefined) return live.driver.poke();
    const waking = this.#wakeStored(run).catch((error: unknown) => this.#fault(error));
    this.#waking.add(waking);
    waking.finally(() => this.#waking.delete(waking));
  }

  async #wakeStored(run: string): Promise<void> {
    const { identity, priority, status, wakeAt = 0 } = await this.#record(run);
    // What is parked is left alone until its time, or until somebody says something to it.
    if (this.#closing !== undefined || hasEnded(status) || wakeAt === null || wakeAt > this.#clock.now()) return;
    const live = this.#live.get(run);
    if (live !== undefined) return live.driver.poke();
    this.#enqueue({ run, tenant: identity.tenant, priority });
  }

  /** Drives the run here unless somebody alive does already, or it has ended. */
  async #claimAndDrive(run: string, acceptChanges: boolean): Promise<void> {
    this.#assertOpen();
    if (this.#live.has(run)) return;
    const { identity, priority } = await this.#record(run);
    const { tenant } = identity;
    if (this.#slots.take(tenant)) await this.#driveClaimed(tenant, () => this.#claimRun(run, acceptChanges));
    else this.#enqueue({ run, tenant, priority });
  }

  async #record(run: string): Promise<RunRecord> {
    const record = await this.#driverDeps().journal.get(run);
    if (record !== undefined) return record;
    throw new PilotageError('run_not_found', `There is no run ${run} in this journal.`);
  }

  async #claimRun(run: string, acceptChanges = false): Promise<RunDriver | undefined> {
    const { lease } = await this.#record(run);
    const from = lease === undefined ? undefined : deadOwner(lease.owner);
    const claim = await this.#driverDeps().journal.claim({
      run,
      owner: this.#owner,
      leaseMs: this.#leaseMs(),
      ...(from === undefined ? {} : { from }),
    });
    return claim && this.#driverOf(claim, acceptChanges);
  }

  /** @throws PilotageError `run_changed`: the run is given back, and waits for somebody to accept that. */
  async #driverOf(claim: Claim, acceptChanges: boolean): Promise<RunDriver> {
    const deps = this.#driverDeps();
    const state = foldEntries(await deps.journal.read(claim.run));
    const tools = deps.toolsOf(state.scopes, state.found);
    const changes = changesOf(state, this.#planner, tools);
    if (changes.length === 0) return new RunDriver(deps, state, claim);
    const accepted = acceptChanges ? {} : undefined;
    const migration = (await this.#options.migrate?.({ state, changes })) ?? accepted;
    if (migration !== undefined) return new RunDriver(deps, state, claim, repinned(this.#planner, tools, migration));
    await this.#giveBack(claim, null);
    throw runChanged(claim.run, changes);
  }

  async #giveBack({ run, fence, signals }: Claim, wakeAt?: null): Promise<void> {
    const park = { seenSignals: signals, ...(wakeAt === undefined ? {} : { wakeAt }) };
    await this.#driverDeps().journal.release({ run, fence }, park);
  }

  /** In a slot that was taken before. */
  async #driveClaimed(tenant: string, claim: () => Promise<RunDriver | undefined>): Promise<boolean> {
    let driver: RunDriver | undefined;
    try {
      driver = await claim();
    } finally {
      if (driver === undefined) this.#freeSlot(tenant);
    }
    if (driver === undefined) return false;
    this.#drive(driver);
    // Signals that came while it was being claimed told nobody.
    driver.poke();
    return true;
  }

  #drive(driver: RunDriver): void {
    const { run } = driver.state.identity;
    // A turn of the event loop first: whoever started the run can begin to listen before the planner is asked.
    const exit = new Promise<void>((resolve) => setImmediate(resolve)).then(() => driver.drive());
    const live: Live = { driver, exit, awaited: false, done: exit.then((how) => this.#letGo(live, how)) };
    this.#live.set(run, live);
    if (this.#closing !== undefined) driver.stop('closing');
    this.#startBeat();
  }

  #letGo({ driver, awaited }: Live, exit: Exit): void {
    const { run, tenant } = driver.state.identity;
    this.#live.delete(run);
    const error = exitError(exit, run);
    if (exit.kind === 'ended' && driver.state.conversation) this.#summaries?.turnEnded(driver.state.identity);
    if (exit.kind === 'broken' && !awaited && !this.#hub.hasListeners(run)) this.#fault(exit.error);
    this.#hub.tell(run, error === undefined ? { type: 'exit' } : { type: 'exit', error });
    if (this.#live.size === 0) this.#stopBeat?.();
    // It was parked just when a signal came, which nobody but this process may know of.
    const priority = Number.POSITIVE_INFINITY;
    if (exit.kind === 'parked' && driver.hasNews) this.#slots.enqueue({ run, tenant, priority });
    this.#freeSlot(tenant);
  }

  /** The state in which this process lets go of a run. @throws why it had to, when the run has neither ended nor paused. */
  #settled(run: string): Promise<RunState> | undefined {
    const live = this.#live.get(run);
    if (live === undefined) return undefined;
    live.awaited = true;
    return live.exit.then((exit) => {
      const error = exitError(exit, run);
      if (error !== undefined) throw error;
      return live.driver.state;
    });
  }

  #startBeat(): void {
    if (this.#stopBeat !== undefined) return;
    const { journal } = this.#driverDeps();
    const stop = startBeat({
      journal,
      clock: this.#clock,
      leaseMs: this.#leaseMs(),
      drivers: () => [...this.#live.values()].map(({ driver }) => driver),
      onFault: (error) => this.#fault(error),
    });
    this.#stopBeat = () => {
      stop();
      this.#stopBeat = undefined;
    };
  }

  #fault(error: unknown): void {
    const { onFault = warn } = this.#options;
    try {
      onFault(error);
    } catch (second) {
      warn(error);
      warn(second);
    }
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)));
}

function pickIdentity({ tenant, user, session, run }: Identity): Identity {
  return { tenant, user, session, run };
}

function exitError(exit: Exit, run: string): unknown {
  if (exit.kind === 'broken') return exit.error;
  if (exit.kind !== 'closed') return undefined;
  return new PilotageError('runtime_closed', `The runtime was closed while it drove ${run}; the run can be resumed.`);
}
