/**
 * The face: starts runs, finds them again, and drives those whose lease this process holds. Everything about a run is in
 * the journal; what is kept here is only which runs are being driven.
 */
import { type Clock, systemClock } from '../core/clock.ts';
import type { InputArtifact } from '../core/context.ts';
import { type Control, validateControl } from '../core/control.ts';
import type { Entry, Turn } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { assertIdentity, type Identity } from '../core/identity.ts';
import { captureJson } from '../core/json.ts';
import { assertLimits, type Limits } from '../core/limits.ts';
import { asPlanner, type Planner, type PlannerFunction } from '../core/planner.ts';
import type { Claim, ClaimRequest, Journal, RunQuery, RunRecord } from '../journal/port.ts';
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
import { contextAtStart, type GivenContext, type InputFile } from './inputs.ts';
import { NoticeHub } from './notices.ts';
import { deadOwner, ownerName } from './owner.ts';
import { Run } from './run.ts';
import {
  assertMemoryOptions,
  historyFor,
  type MemoryOptions,
  type Remembered,
  type Remembering,
  SummaryKeeper,
  withMaterial,
} from './session-memory.ts';
import { startSweeping } from './sweep.ts';

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
  /** How runs continue the earlier ones of their session. Default: not at all. */
  readonly memory?: MemoryOptions;
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
const DEFAULT_LIVE_RUNS = 1_000;

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
  /** Runs that this process is to drive when a slot is free. */
  readonly #queue: { readonly run: string; readonly priority: number }[] = [];
  readonly #owner = ownerName();
  readonly #catalogue: Catalogue;
  /** Taken by runs that are driven, and by those that are being claimed. */
  #slots = 0;
  #onFreeSlot: (() => void) | undefined;
  #deps: DriverDeps | undefined;
  readonly #memory: Remembering | undefined;
  #summaries: SummaryKeeper | undefined;
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
    const { memory = { strategy: 'none' } } = options;
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
    const slot = this.#takeSlot();
    const lease = slot ? { claim: { owner: this.#owner, leaseMs: this.#leaseMs() } } : {};
    let claim: Claim | undefined;
    try {
      claim = await deps.journal.create({ identity, priority, entries: [entry], ...lease });
    } finally {
      if (slot && claim === undefined) this.#freeSlot();
    }
    if (claim !== undefined) this.#drive(new RunDriver(deps, openState(entry), claim));
    else {
      await this.#assertSameOwner(identity);
      this.#enqueue(identity.run, priority);
    }
    return this.#handle(identity.run);
  }

  /** A handle of a run, from any process. Whether it exists is found out when the handle is used. */
  run(id: string): Run {
    this.#assertOpen();
    return this.#handle(id);
  }

  #handle(id: string): Run {
    return new Run(id, {
      journal: this.#driverDeps().journal,
      hub: this.#hub,
      isDriven: () => this.#live.has(id),
      settled: () => this.#settled(id),
      signal: (control) => this.#signal(id, control),
      drive: () => this.#claimAndDrive(id),
    });
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
      driveNext: async () => this.#takeSlot() && this.#driveClaimed(() => this.#claim({})),
      onRoom: (wake) => {
        if (!this.#hasSlot()) this.#onFreeSlot = wake;
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
    this.#queue.length = 0;
    for (const { driver } of this.#live.values()) driver.stop('closing');
    while (this.#slots > 0) {
      await new Promise<void>((resolve) => {
        this.#onFreeSlot = resolve;
      });
    }
    this.#stopBeat?.();
    await this.#summaries?.close();
    this.#hub.close(new PilotageError('runtime_closed', 'The runtime was closed; the run is not followed any more.'));
    if (this.#options.journal === undefined) await this.#deps?.journal.close();
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
    const journal = this.#options.journal ?? sqliteJournal({ path: DEFAULT_JOURNAL_PATH, clock: this.#clock });
    this.#deps = {
      journal,
      artifacts: patientArtifacts(journal.artifacts, this.#clock),
      planner: this.#planner,
      clock: this.#clock,
      hub: this.#hub,
      toolsOf: (scopes, found) => this.#catalogue.view(scopes, found),
      newToken: () => `pause_${crypto.randomUUID().replaceAll('-', '')}`,
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

  #hasSlot(): boolean {
    return this.#slots < (this.#options.maxLiveRuns ?? DEFAULT_LIVE_RUNS);
  }

  /** Before a claim, so that no more runs are claimed than can be driven. */
  #takeSlot(): boolean {
    if (!this.#hasSlot()) return false;
    this.#slots += 1;
    return true;
  }

  #freeSlot(): void {
    this.#slots -= 1;
    this.#startWaiting();
    if (!this.#hasSlot()) return;
    const tell = this.#onFreeSlot;
    this.#onFreeSlot = undefined;
    tell?.();
  }

  #enqueue(run: string, priority: number): void {
    const after = this.#queue.findIndex((waiting) => waiting.priority < priority);
    this.#queue.splice(after === -1 ? this.#queue.length : after, 0, { run, priority });
    this.#startWaiting();
  }

  #startWaiting(): void {
    while (this.#closing === undefined && this.#queue.length > 0 && this.#takeSlot()) {
      const run = this.#queue.shift()?.run ?? '';
      this.#driveClaimed(() => this.#claimRun(run)).catch((error: unknown) => this.#fault(error));
    }
  }

  async #signal(run: string, control: Control): Promise<void> {
    this.#assertOpen();
    await this.#driverDeps().journal.signal(run, validateControl(control));
    const live = this.#live.get(run);
    if (live !== undefined) live.driver.poke();
    else await this.#claimAndDrive(run);
  }

  /** Drives the run here unless somebody alive does already, or it has ended. */
  async #claimAndDrive(run: string): Promise<void> {
    this.#assertOpen();
    if (this.#live.has(run)) return;
    if (this.#takeSlot()) await this.#driveClaimed(() => this.#claimRun(run));
    else this.#enqueue(run, (await this.#record(run)).priority);
  }

  async #record(run: string): Promise<RunRecord> {
    const record = await this.#driverDeps().journal.get(run);
    if (record !== undefined) return record;
    throw new PilotageError('run_not_found', `There is no run ${run} in this journal.`);
  }

  async #claimRun(run: string): Promise<RunDriver | undefined> {
    const { lease } = await this.#record(run);
    const from = lease === undefined ? undefined : deadOwner(lease.owner);
    return this.#claim(from === undefined ? { run } : { run, from });
  }

  async #claim(which: Pick<ClaimRequest, 'run' | 'from'>): Promise<RunDriver | undefined> {
    const deps = this.#driverDeps();
    const claim = await deps.journal.claim({ ...which, owner: this.#owner, leaseMs: this.#leaseMs() });
    return claim && new RunDriver(deps, foldEntries(await deps.journal.read(claim.run)), claim);
  }

  /** In a slot that was taken before. */
  async #driveClaimed(claim: () => Promise<RunDriver | undefined>): Promise<boolean> {
    let driver: RunDriver | undefined;
    try {
      driver = await claim();
    } finally {
      if (driver === undefined) this.#freeSlot();
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
    const { run } = driver.state.identity;
    this.#live.delete(run);
    const error = exitError(exit, run);
    if (exit.kind === 'ended' && driver.state.conversation) this.#summaries?.turnEnded(driver.state.identity);
    if (exit.kind === 'broken' && !awaited && !this.#hub.hasListeners(run)) this.#fault(exit.error);
    this.#hub.tell(run, error === undefined ? { type: 'exit' } : { type: 'exit', error });
    if (this.#live.size === 0) this.#stopBeat?.();
    // It was parked just when a signal came, which nobody but this process may know of.
    if (exit.kind === 'parked' && driver.hasNews) this.#enqueue(run, Number.POSITIVE_INFINITY);
    this.#freeSlot();
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
