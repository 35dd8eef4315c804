/**
 * The runtime: starts runs, finds them again, and drives the runs whose lease this process holds. Everything about a run is in
 * the journal; the runtime itself only knows which runs it drives.
 */
import {
  assertIdentity,
  assertLabels,
  assertOptions,
  assertRunLimits,
  assertUndoOptions,
  assertWords,
  type Clock,
  type Continued,
  capture,
  defined,
  describeThrown,
  type Entry,
  fieldOf,
  type Identity,
  type Json,
  jsonEquals,
  knowKeysOf,
  local,
  type OptionShape,
  PilotageError,
  policyInTime,
  Redaction,
  type StartRequest,
  systemClock,
} from '#core';
import {
  assertJournal,
  assertLease,
  cleanArtifacts,
  type NewRun,
  ownedBy,
  patientArtifacts,
  RUN_STATUSES,
  type RunQuery,
  type RunRecord,
  wholeJournal,
} from '#journal';
import { defaultPlace, journalAt } from '#journal/place';
import { assertParallelCalls, createCatalogue, rememberTool, skillGet, skillSearch, toolGet, toolSearch } from '#tools';
import { AtWork } from '../calls/doubt.ts';
import { Handles } from '../calls/handles.ts';
import { artifactFetch, LargeTurns } from '../calls/large-values.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { KnownStates } from '../loop/known-states.ts';
import { NoticeHub } from '../loop/notices.ts';
import { assertPriced } from '../loop/prices.ts';
import { assertProgressGuard } from '../loop/progress-guard.ts';
import { flushTelemetry } from '../loop/run-tracing.ts';
import { ToldRuns } from '../loop/told-runs.ts';
import { assertDriver } from './advances.ts';
import { type AgentRecord, Agents, agentsGiven } from './agents.ts';
import { cancelRun } from './cancel-signals.ts';
import { type Erased, eraseUser } from './erase.ts';
import { type Extracted, type ExtractOptions, extractMemory } from './extract-memory.ts';
import { Fleet } from './fleet.ts';
import type { HandleOptions } from './gate.ts';
import { assertStart, firstEntry, type Starting } from './new-run.ts';
import { assertHistoryHooks, TurnSaves, withOwnHistory } from './own-history.ts';
import { PartStore } from './part-store.ts';
import { Rules } from './rules.ts';
import { Run } from './run.ts';
import { RunHost } from './run-host.ts';
import { tellRuns } from './run-news.ts';
import { RUNTIME_OPTIONS, type RuntimeOptions } from './runtime-options.ts';
import { ScheduleTicker } from './schedule-ticker.ts';
import { Schedules } from './schedules.ts';
import { Session, type SessionOptions } from './session.ts';
import { assertMemoryOptions, type Remembering, rememberedFor } from './session-memory.ts';
import { firstTurnStarted, turnStarted } from './session-path.ts';
import { Sessions } from './sessions.ts';
import { type SignalDetails, type SignalResult, sendSignal } from './signal.ts';
import {
  type AdvanceDueOptions,
  type AdvancedRun,
  type AdvancedRuns,
  type AdvanceOptions,
  assertAdvance,
} from './slices.ts';
import type { SlotLimits } from './slots.ts';
import { startByKey } from './start-by-key.ts';
import { startByIdempotencyKey } from './start-once.ts';
import { assertFreeId, readBegin, type StartOptions } from './start-options.ts';
import { assertStoreOptions, longTermMemory, ProgramStore, type StoreOwner } from './store.ts';
import { Tasks } from './tasks.ts';
import { assertFileOptions } from './user-message.ts';
import { listWaiting, type Waiting, type WaitingQuery } from './waiting.ts';

const CLOSE: OptionShape<{ graceMs?: number }> = { graceMs: 'whole?' };
const WORK: OptionShape<{ agents?: readonly string[] }> = { agents: 'list?' };
const RUN: OptionShape<HandleOptions> = { as: 'object?', gate: 'object?' };
const SESSION: OptionShape<SessionOptions> = {
  ...({ identity: 'object?', limits: 'object?', agent: 'text?', scopes: 'list?', priority: 'any?' } as const),
  ...({ context: 'object?', labels: 'any?', whileAsked: 'any?', onFail: 'any?', undo: 'object?' } as const),
  ...({ clientTools: 'list?', gate: 'object?' } as const),
};
const QUERY: OptionShape<RunQuery> = {
  ...({ tenant: 'text?', user: 'text?', session: 'text?', agent: 'text?', schedule: 'text?' } as const),
  ...({ status: 'list?', parent: 'any?', since: 'moment?', labels: 'any?', text: 'text?' } as const),
  ...({ limit: 'any?', after: 'text?', beforeTurn: 'any?' } as const),
};

const DEFAULT_LEASE_MS = 5_000;
const DEFAULT_LIVE_RUNS = 10;
/** How many leases a process may stand still before an effect that it has under way can meet a second one. */
const GRACE_IN_LEASES = 2;

/** @throws PilotageError `no_planner`, `invalid_config`, or a tool's registration error. Nothing is opened yet. */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new Runtime(options);
}

export class Runtime {
  readonly #agents: Agents;
  readonly #options: RuntimeOptions;
  readonly #clock: Clock;
  readonly #hub = new NoticeHub();
  /** For servers: whoever begins to read a run in the middle of a step gets what was said until then, so that planners always stream. */
  readonly expectReaders = (): void => this.#hub.expectReaders();
  readonly #redaction: Redaction;
  readonly #atWork = new AtWork();
  readonly #turns = new LargeTurns();
  readonly #told = new ToldRuns();
  readonly #slots: SlotLimits;
  readonly #saves: TurnSaves;
  #deps: DriverDeps | undefined;
  #fleet: Fleet | undefined;
  readonly #memory: Remembering | undefined;
  #host: RunHost | undefined;
  #ticker: ScheduleTicker | undefined;
  #closing: Promise<void> | undefined;
  /** Tasks: runs that are started once under a key, found, listed, stopped and watched. */
  readonly tasks: Tasks = new Tasks(
    () => {
      this.#assertOpen();
      return this.#readyHost();
    },
    (query, options, asked) => this.#start(query, options, asked),
  );
  /** Long-term memory: what outlives sessions. Any namespace; `store.of(identity)` is the part of one user. */
  readonly store: ProgramStore = new ProgramStore(() => {
    this.#assertOpen();
    return this.#driverDeps();
  });

  /**
   * What starts runs again and again: put, pause, trigger, and the like. Every open runtime fires that knows the agent, and has put or resumed a
   * schedule or takes over due runs (`work`).
   */
  readonly schedules: Schedules = new Schedules(() => {
    this.#assertOpen();
    const host = this.#readyHost();
    return { host, starting: this.#starting(), ticker: this.#readyTicker() };
  });

  /** The sessions of the journal: list, get, delete, and give titles. */
  readonly sessions: Sessions = new Sessions(
    () => {
      this.#assertOpen();
      return this.#driverDeps();
    },
    () => {
      this.#told.clear();
      this.#deps?.states.clear();
    },
  );

  /** Rules that people have made of their answers to questions: list and revoke. */
  readonly rules: Rules = new Rules(() => {
    this.#assertOpen();
    return this.#readyHost();
  });

  constructor(options: RuntimeOptions) {
    assertOptions('createRuntime', options, RUNTIME_OPTIONS);
    knowKeysOf(process.env);
    this.#redaction = new Redaction(options.redact);
    const agents = agentsGiven(options);
    if (options.limits !== undefined) assertRunLimits(options.limits, (options.clock ?? systemClock).now());
    assertParallelCalls(options.parallelCalls, 'parallelCalls');
    assertUndoOptions('createRuntime', options);
    if (options.journal !== undefined && typeof options.journal !== 'string') assertJournal(options.journal);
    if (options.files !== undefined) assertFileOptions(options.files);
    if (options.progress !== undefined) assertProgressGuard(options.progress);
    if (options.store !== undefined) assertStoreOptions(options.store);
    if (options.history !== undefined) assertHistoryHooks(options.history);
    this.#saves = new TurnSaves(options.history ?? {}, () => this.#driverDeps());
    if (options.driver !== undefined) assertDriver(options.driver);
    if (options.leaseMs !== undefined) assertLease({ leaseMs: options.leaseMs });
    const { memory = { strategy: 'none' }, maxLiveRuns = DEFAULT_LIVE_RUNS } = options;
    this.#slots = { runs: maxLiveRuns, perTenant: options.maxLiveRunsPerTenant ?? DEFAULT_LIVE_RUNS };
    assertMemoryOptions(memory);
    this.#memory = memory.strategy === 'none' ? undefined : memory;
    const fetch = artifactFetch(() => this.#driverDeps().artifacts);
    // Times that are written down are judged by the store's clock, which may not be the machine's.
    const { clock = { ...systemClock, now: () => this.#deps?.journal.now?.() ?? systemClock.now() } } = options;
    this.#clock = clock;
    const policy = options.policy && policyInTime(options.policy, clock);
    const given = [fetch, toolSearch, toolGet, skillSearch, skillGet];
    this.#agents = new Agents(
      agents,
      (own, memory) => {
        const builtins = memory === undefined ? given : [...given, rememberTool(memory)];
        return createCatalogue(own, builtins, policy);
      },
      options.parallelCalls,
    );
    this.#options = options;
    for (const { agent, unpriced } of this.#agents.all) {
      assertPriced(agent, unpriced, options.limits?.costUsd !== undefined);
    }
  }

  /**
   * Stores a run, due at once, and drives it as soon as a slot is free. If a run with this id exists already, nothing is stored:
   * that run goes on, unless another process drives it.
   * @throws PilotageError `identity_required`, `agent_unknown`, `unserializable`, `memory_block_unserializable`, `invalid_config`,
   * `runtime_closed`, `scope_mismatch` for a run id that somebody else uses or for their memory, `idempotency_conflict` for
   * that of a run that was started with something else, `rate_limited`, or a store error; the reason of a `signal` that is aborted already. For a
   * planner that reads its arguments, such as a flow, what that throws: `validation_failed` (a `FlowError`).
   */
  async start(query: string, options: StartOptions = {}): Promise<Run> {
    if (options.idempotencyKey === undefined) return this.#start(query, options);
    this.#assertOpen();
    assertStart(query, options);
    readBegin(options, this.#clock.now());
    return startByIdempotencyKey(this.#driverDeps().journal, query, options, (own, asked) =>
      this.#start(query, own, asked),
    );
  }

  async #start(query: string, options: StartOptions, asked?: StartRequest): Promise<Run> {
    this.#assertOpen();
    assertStart(query, options);
    // An identity that got lost on the way here must not put the runs of all users together.
    const owner = 'identity' in options ? options.identity : local('local');
    assertIdentity(owner);
    const identity = capture<Identity>(pickIdentity(owner), 'identity').json;
    await assertFreeId(this.#driverDeps().journal, identity.run);
    const { startsAt, key, isLater } = readBegin(options, this.#clock.now());
    const own = isLater ? { ...options, conversation: false } : options;
    const remembered = (): Promise<Continued | undefined> => this.#remembered(identity, own);
    const entry = await firstEntry(this.#starting(), query, identity, own, { asked, remembered, startsAt });
    this.#assertOpen();
    options.signal?.throwIfAborted();
    const fleet = this.#readyFleet();
    const { priority = 0 } = options;
    const host = this.#readyHost();
    const wanted: NewRun = { identity, priority, entries: [entry], ...(isLater ? this.#deadlineOf(options) : {}) };
    if (key !== undefined) {
      const run = await startByKey(host, wanted, key);
      if (run === identity.run) host.cancelOn(options.signal, run);
      return new Run(run, host);
    }
    if (!(await fleet.launch(wanted))) {
      await this.#assertSameRun(entry, options.agent);
      if (startsAt === undefined) await host.goOn(identity.run);
      else fleet.wake(identity.run);
    }
    host.cancelOn(options.signal, identity.run);
    return new Run(identity.run, host);
  }

  /** How long the agent lets its runs take, for the store to count from the time that it gives the run. */
  #deadlineOf({ agent: name, limits = {} }: StartOptions): Pick<NewRun, 'deadline'> {
    const { deadlineMs: ms } = this.#agents.successorOf(name).limits ?? {};
    const at = limits.deadlineAt ?? this.#options.limits?.deadlineAt;
    return ms === undefined ? {} : { deadline: { ms, ...defined({ at }) } };
  }

  #starting(): Starting {
    const { limits, files, onFail, undo } = this.#options;
    const undoing = { ...defined({ onFail, undo }) };
    return { agents: this.#agents, clock: this.#clock, limits, undoing, files, deps: this.#driverDeps() };
  }

  /**
   * Makes a handle of a run, in any process. Whether the run exists is found out when the handle is used.
   * @param options `as`: the caller that uses the handle, as the program has authenticated it; default the program itself, which may
   * do everything. Controls, forks and replays need the caller's scope. For a caller, the run of somebody else does not exist,
   * unless the caller is an admin.
   */
  run(id: string, options: HandleOptions = {}): Run {
    this.#assertOpen();
    assertOptions('run', options, RUN);
    if (typeof id !== 'string')
      throw new PilotageError('invalid_config', 'A run is named by its id, a string such as run.id of a handle.');
    return new Run(id, this.#readyHost(), options);
  }

  /**
   * Makes a handle of a session: a conversation whose turns are runs, one after another, whichever processes send to it and drive it. It begins
   * with the first message.
   * @param options what its turns are started with.
   * @throws PilotageError `identity_required`, `invalid_config`.
   */
  session(id: string, options: SessionOptions = {}): Session {
    this.#assertOpen();
    assertOptions('session', options, SESSION);
    return new Session(id, options, this.#readyHost(), this.#starting());
  }

  #readyHost(): RunHost {
    this.#host ??= new RunHost(
      this.#driverDeps(),
      this.#readyFleet(),
      this.#agents,
      () => this.#assertOpen(),
      this.#options.files,
    );
    this.#ticker ??= new ScheduleTicker(this.#host, this.#starting(), this.#agents);
    return this.#host;
  }

  #readyTicker(): ScheduleTicker {
    const host = this.#readyHost();
    this.#ticker ??= new ScheduleTicker(host, this.#starting(), this.#agents);
    return this.#ticker;
  }

  /** The agents that runs can be started with, the default one first; not those that their tools bring along. */
  get agents(): readonly AgentRecord[] {
    return this.#agents.records;
  }

  /** Stored runs, newest first. */
  async list(query: RunQuery = {}): Promise<RunRecord[]> {
    this.#assertOpen();
    assertOptions('list', query, QUERY);
    if (query.status !== undefined) assertWords('list', 'status', query.status, RUN_STATUSES);
    if (query.labels !== undefined) assertLabels('list', query.labels);
    return this.#driverDeps().journal.list(query);
  }

  /**
   * All that waits in the journal, whichever runs and processes: open questions, calls in doubt, times and events. Oldest first.
   * @throws PilotageError `invalid_config`, or `identity_required` and `scope_invalid` for a caller without a scope.
   */
  async waiting(query: WaitingQuery = {}): Promise<Waiting[]> {
    this.#assertOpen();
    const { journal, states } = this.#driverDeps();
    return listWaiting(journal, query, states);
  }

  /**
   * Something has happened outside, such as `order-17`: it goes to every run of the tenant that waits for the event of this key, or is kept until one
   * does. The same id of a key comes once. Runs of agents that are known here go on.
   * @throws PilotageError `payload_invalid` for a payload that fits none of those who wait, `unserializable`, `invalid_config`, `signals_full`,
   * or a store error.
   */
  async signal(key: string, payload: Json = null, options: SignalDetails = {}): Promise<SignalResult> {
    this.#assertOpen();
    const signalled = await sendSignal(this.#driverDeps(), key, payload, options);
    if (signalled.runs.length > 0) this.#readyFleet().signalled(signalled.runs);
    return signalled;
  }

  /**
   * Erases what belongs to one person: the content of their runs, of which skeletons are left that still fold, their artifacts, the
   * summaries of their sessions and their long-term memory. A run that has not ended is cancelled; one that another process has under way is
   * told to end and named in `left`: erase again then. Nothing brings it back.
   * @throws PilotageError `identity_required`, or a store error.
   */
  erase(owner: StoreOwner): Promise<Erased> {
    this.#assertOpen();
    const host = this.#readyHost();
    const { journal, clock, memory, told, states } = this.#driverDeps();
    const forget = (run: string): void => {
      told.forget(run);
      states.forget(run);
    };
    return eraseUser({ journal, clock, memory, forget }, owner, async (run) => {
      await cancelRun(host.fleet, run, 'The content of its user is erased.');
      if (host.fleet.driven(run) !== undefined) await new Run(run, host).result();
    });
  }

  /**
   * Reads runs that have finished and were not read before, of agents whose `memory` has `extract`, and writes what is worth remembering
   * into the memory of their users, with where it comes from. For a program to call now and then; a run is read once, in whichever process.
   * @throws PilotageError `invalid_config`, or a store error.
   */
  extractMemory(options: ExtractOptions = {}): Promise<Extracted> {
    this.#assertOpen();
    return extractMemory(this.#driverDeps(), options);
  }

  /**
   * Takes over due runs of the whole journal, including runs of processes that died, until the runtime is closed or the
   * returned function is called.
   * @param options `agents`: the names of those whose runs are taken over, and whose schedules are fired; runs of other agents are driven only
   * when they were begun here. Default: all.
   * @throws PilotageError `agent_unknown`, `invalid_config`.
   */
  work(options: { readonly agents?: readonly string[] } = {}): () => void {
    this.#assertOpen();
    assertOptions('work', options, WORK);
    const takeAll = this.#agents.takeOver(options.agents);
    this.#readyTicker().look();
    const stop = this.#readyFleet().work();
    return () => {
      takeAll();
      stop();
    };
  }

  /** What a part of Pilotage keeps in the journal beside runs, by the name of the part. For parts of a server and the like. */
  partStore(name: string): PartStore {
    return new PartStore(name, () => {
      this.#assertOpen();
      return this.#driverDeps();
    });
  }

  /**
   * Drives the run for a time, here, and lets go of it, as in a request that ends after minutes: with its tasks, the run that goes on with it, and the next
   * turn of its session. It returns as soon as nothing of it can go on now. Any process goes on with what is left, at once.
   * @throws PilotageError `run_not_found`, `run_changed`, `invalid_config`, or a store error.
   */
  advance(run: string, options: AdvanceOptions): Promise<AdvancedRun>;
  /** Drives what is due, of agents that are known here, until nothing is or the time is over, as a cron job does. Schedules that are due are fired. */
  advance(options: AdvanceDueOptions): Promise<AdvancedRuns>;
  async advance(
    ...[first, second]: readonly [string, AdvanceOptions] | readonly [AdvanceDueOptions]
  ): Promise<AdvancedRun | AdvancedRuns> {
    this.#assertOpen();
    const isOne = typeof first === 'string';
    assertAdvance((isOne ? second : first) as AdvanceDueOptions, isOne, this.#options.driver);
    const fleet = this.#readyFleet();
    this.#readyHost();
    if (isOne) return fleet.advance(first, second as AdvanceOptions);
    return fleet.advanceDue(first, () => this.#readyTicker().fire());
  }

  /**
   * Gives all runs back, so that another process can go on with them, and closes what this runtime opened.
   * @param options `graceMs`: how long calls and planners that are under way have to end before they are aborted (0). Nothing more
   * begins meanwhile. Called again, it can only shorten that time: `close()` aborts at once. @throws PilotageError `invalid_config`.
   */
  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    assertOptions('close', options, CLOSE);
    const { graceMs = 0 } = options;
    if (this.#closing !== undefined) this.#fleet?.hurry(graceMs);
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    // A waiter that is told now finds the runtime closed.
    await Promise.resolve();
    this.#host?.close();
    const ticked = this.#ticker?.close();
    await this.#fleet?.close(graceMs);
    await ticked;
    await this.#saves.close(this.#clock);
    await this.#deps?.handles.close();
    if (this.#deps !== undefined) await flushTelemetry(this.#deps);
    this.#hub.close(new PilotageError('runtime_closed', 'The runtime was closed; the run is not followed any more.'));
    if (typeof (this.#options.journal ?? '') === 'string') await this.#deps?.journal.close();
  }

  async #remembered(scope: Identity, { history, conversation }: StartOptions): Promise<Continued | undefined> {
    if (this.#memory === undefined || history !== undefined || conversation === false) return undefined;
    return rememberedFor(scope, this.#memory, this.#driverDeps());
  }

  /** Refuses a run id that somebody else used, and the id of a run that was started with something else. */
  async #assertSameRun(asked: Entry, agent: string | undefined): Promise<void> {
    if (asked.kind !== 'started') return;
    const { identity, query, context } = asked;
    const { run } = identity;
    const stored = await this.#driverDeps().journal.get(run);
    if (stored === undefined) return;
    if (ownedBy(stored.identity) !== ownedBy(identity)) {
      throw new PilotageError(
        'scope_mismatch',
        `The run id ${run} cannot be used. Leave it out, and a fresh one is made.`,
      );
    }
    const [first] = await this.#driverDeps().journal.read(run, 1, 1);
    if (first?.kind !== 'started') return;
    const isOfAgent = agent === undefined || agent === first.agent;
    const isAsked = query === first.query && jsonEquals(first.context?.args ?? null, context?.args ?? null);
    if (isOfAgent && isAsked) return;
    throw new PilotageError(
      'idempotency_conflict',
      `The run ${run} was started with another agent, query or input. Give each run an identity of its own; local('name') makes one.`,
    );
  }

  #assertOpen(): void {
    if (this.#closing !== undefined)
      throw new PilotageError('runtime_closed', 'The runtime is closed. Create a new one.');
  }

  #readyFleet(): Fleet {
    const { leaseMs = DEFAULT_LEASE_MS, takeoverGraceMs = GRACE_IN_LEASES * leaseMs, onRun } = this.#options;
    this.#fleet ??= new Fleet(this.#driverDeps(), {
      slots: this.#slots,
      leaseMs,
      takeoverGraceMs,
      migrate: this.#options.migrate,
      agents: this.#agents,
      goesOn: this.#options.goesOn ?? true,
      driver: this.#options.driver,
      ...(onRun === undefined ? {} : { tellRun: tellRuns(onRun, this.#clock, (error) => this.#fault(error)) }),
      onEnded: (state) => {
        this.#host?.forget(state.identity.run);
        this.#ticker?.ended(state.identity.run);
        this.#saves.ended(state);
      },
    });
    return this.#fleet;
  }

  #driverDeps(): DriverDeps {
    this.#deps ??= this.#makeDeps();
    return this.#deps;
  }

  #makeDeps(): DriverDeps {
    const { journal: given = defaultPlace(), clock } = this.#options;
    const stored = typeof given === 'string' ? journalAt(given, { clock }) : given;
    const journal = wholeJournal(stored);
    const { agent, planner, toolsOf, limit, unpriced } = this.#agents.default;
    const onFault = (error: unknown): void => this.#fault(error);
    const deps: DriverDeps = {
      journal,
      states: new KnownStates(journal, onFault),
      artifacts: patientArtifacts(cleanArtifacts(journal.artifacts, this.#redaction), this.#clock),
      memory: longTermMemory(journal, this.#clock, this.#options.store ?? {}),
      redaction: this.#redaction,
      agent,
      planner,
      toolsOf,
      limit,
      unpriced,
      agentNamed: (name) => this.#agents.find(name),
      modelNamed: (name) => this.#agents.modelNamed(name),
      clock: this.#clock,
      atWork: this.#atWork,
      turns: this.#turns,
      told: this.#told,
      random: this.#options.random ?? Math.random,
      handles: new Handles({ clock: this.#clock, onFault }),
      hub: this.#hub,
      progress: this.#options.progress ?? {},
      ...defined({ patienceMs: this.#options.patienceMs, telemetry: this.#options.telemetry }),
      turnStarted: async (state, signal) => {
        const load = this.#options.history?.load?.bind(this.#options.history);
        const started = await turnStarted(state, deps, { ...this.#memory, afresh: load !== undefined });
        if (load === undefined) return started;
        await this.#saves.settled(state.identity);
        return withOwnHistory(started, state, (about) => load({ ...about, signal }), deps);
      },
      firstTurn: () => firstTurnStarted(this.#memory, this.#options.history?.load),
      newToken: () => `pause_${crypto.randomUUID().replaceAll('-', '')}`,
      woke: (run) => this.#readyFleet().wake(run),
      reopenTasks: (run, by) => this.#readyFleet().ended.reopenTasks(run, by),
      undoTask: (task, owner) => this.#readyFleet().ended.undoTask(task, owner),
      onFault,
    };
    return deps;
  }

  #fault(thrown: unknown): void {
    const { onFault = warn } = this.#options;
    const error = this.#redaction.thrown(thrown);
    try {
      onFault(error);
    } catch (second) {
      warn(error);
      warn(second);
    }
  }
}

function warn(error: unknown): void {
  // A warning is printed later, outside of every guard, so that it must hold nothing that can throw then.
  const warning = new Error(describeThrown(error));
  const stack = fieldOf(error, 'stack');
  if (typeof stack === 'string') warning.stack = stack;
  process.emitWarning(warning);
}

function pickIdentity({ tenant, user, session, run }: Identity): Identity {
  return { tenant, user, session, run };
}
