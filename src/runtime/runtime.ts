/**
 * The runtime: starts runs, finds them again, and drives the runs whose lease this process holds. Everything about a run is in
 * the journal; the runtime itself only knows which runs it drives.
 */

import {
  assertIdentity,
  assertLabels,
  assertOptions,
  assertRunLimits,
  assertWords,
  type Caller,
  type Clock,
  type Continued,
  capture,
  defined,
  describeThrown,
  type Entry,
  fieldOf,
  type Identity,
  jsonEquals,
  knowKeysOf,
  type Limits,
  local,
  type OptionShape,
  PilotageError,
  Redaction,
  type RedactionOptions,
  type StartRequest,
  systemClock,
  type ToolPolicy,
} from '#core';
import {
  assertJournal,
  assertLease,
  cleanArtifacts,
  DEFAULT_JOURNAL_PATH,
  type Journal,
  type NewRun,
  ownedBy,
  patientArtifacts,
  RUN_STATUSES,
  type RunQuery,
  type RunRecord,
  wholeJournal,
} from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { FileOptions } from '#messages';
import { assertParallelCalls, createCatalogue, rememberTool, skillGet, skillSearch, toolGet, toolSearch } from '#tools';
import { AtWork } from '../calls/doubt.ts';
import { Handles } from '../calls/handles.ts';
import { artifactFetch, LargeTurns } from '../calls/large-values.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { KnownStates } from '../loop/known-states.ts';
import { NoticeHub } from '../loop/notices.ts';
import { assertPriced } from '../loop/prices.ts';
import { assertProgressGuard, type ProgressGuard } from '../loop/progress-guard.ts';
import { ToldRuns } from '../loop/told-runs.ts';
import { type AgentParts, Agents, agentsGiven } from './agents.ts';
import { cancelRun } from './cancel-signals.ts';
import { type Erased, eraseUser } from './erase.ts';
import { type Extracted, type ExtractOptions, extractMemory } from './extract-memory.ts';
import { Fleet } from './fleet.ts';
import { assertStart, firstEntry, type Starting } from './new-run.ts';
import { assertHistoryHooks, type HistoryHooks, TurnSaves, withOwnHistory } from './own-history.ts';
import type { Migrate } from './pins.ts';
import { Rules } from './rules.ts';
import { Run } from './run.ts';
import { RunHost } from './run-host.ts';
import { ScheduleTicker } from './schedule-ticker.ts';
import { Schedules } from './schedules.ts';
import { Session, type SessionOptions } from './session.ts';
import { assertMemoryOptions, type MemoryOptions, type Remembering, rememberedFor } from './session-memory.ts';
import { turnStarted } from './session-path.ts';
import { Sessions } from './sessions.ts';
import type { SlotLimits } from './slots.ts';
import { startByKey } from './start-by-key.ts';
import { assertFreeId, readBegin, type StartOptions } from './start-options.ts';
import { assertStoreOptions, longTermMemory, ProgramStore, type StoreOptions, type StoreOwner } from './store.ts';
import { Tasks } from './tasks.ts';
import { assertFileOptions } from './user-message.ts';

export interface RuntimeOptions extends AgentParts {
  /**
   * A journal, or the path of an SQLite file. Default: `.pilotage/pilotage.db` in the current folder. A file is opened when
   * it is first needed, and closed with the runtime; a journal that the caller passes in stays open.
   */
  readonly journal?: Journal | string;
  /** Limits of runs that do not set their own. */
  readonly limits?: Limits;
  /**
   * At most this many runs are driven at once; others wait by priority, then age. A run that waits is not driven. A run whose own
   * code, such as a tool, waits for another run of this runtime lends that run its slot, and both count as one. Default 10.
   */
  readonly maxLiveRuns?: number;
  /** At most this many runs of one tenant are driven at once. Default 10. */
  readonly maxLiveRunsPerTenant?: number;
  /**
   * How many calls of one step may run at once, 1 to 50. Default 50. A planner's entry and a tool may set less; calls that are held
   * back by such a limit are reported (event `tool.held_back`).
   */
  readonly parallelCalls?: number;
  /**
   * How long a run stays with a process that does not renew its lease, in milliseconds. Default 5,000, at most 300,000. The lease is
   * renewed every third of that time.
   */
  readonly leaseMs?: number;
  /**
   * After a run was taken from a process that may still be alive, the answer `not_done` of `reconcile` is not believed for this long,
   * because that process may still make the call. Milliseconds. Default: two leases.
   */
  readonly takeoverGraceMs?: number;
  readonly clock?: Clock;
  /** A number from 0 up to 1, for the jitter of retries. Default `Math.random`. */
  readonly random?: () => number;
  /** How runs continue earlier runs of their session. Default: they do not. */
  readonly memory?: MemoryOptions;
  /** How files of messages are taken. Default: by their bytes and their references alone. */
  readonly files?: FileOptions;
  /** Where the program keeps the messages of its sessions, if it does so itself. Default: what their runs say. */
  readonly history?: HistoryHooks;
  /** Long-term memory: `runtime.store`, and `context.store` of tools. Default: items are found by words, and belong to their tenant and user. */
  readonly store?: StoreOptions;
  /** What happens to a run that repeats the same steps. Default: the planner is told after three times. */
  readonly progress?: ProgressGuard;
  /**
   * How long a run waits while none of its models can be asked, before it is paused as `model_unavailable`, in milliseconds. With 0 it
   * is paused at once. Default 900,000 (15 minutes); 5,000 for a run without steps when nothing listens at its model's address, and
   * nothing has since this process began.
   */
  readonly patienceMs?: number;
  /**
   * A function that is asked before each call of a tool: it allows the call, denies it, so that the planner sees why, or has people asked.
   * Planners that make plans first ask it about the whole plan, in which references to earlier steps are not resolved yet.
   */
  readonly policy?: ToolPolicy;
  /**
   * A function that is asked about a run whose planner or tools have changed. Default: the run waits until somebody accepts the
   * changes.
   */
  readonly migrate?: Migrate;
  /**
   * The program's own secrets. A text is removed from everything that is written; patterns and functions apply to errors, faults and
   * remarks, and to the parts that `also` names. Keys that this process was given, and texts that look like keys, need no rule.
   */
  readonly redact?: RedactionOptions;
  /** Called with faults that no caller waits for. Default: a process warning. */
  readonly onFault?: (error: unknown) => void;
}

const CLOSE: OptionShape<{ graceMs?: number }> = { graceMs: 'whole?' };
const OPTIONS: OptionShape<RuntimeOptions> = {
  planner: 'any?',
  tools: 'any?',
  agents: 'any?',
  journal: 'any?',
  limits: 'object?',
  maxLiveRuns: 'count?',
  maxLiveRunsPerTenant: 'count?',
  leaseMs: 'count?',
  takeoverGraceMs: 'whole?',
  parallelCalls: 'any?',
  clock: 'object?',
  random: 'function?',
  memory: 'object?',
  files: 'object?',
  store: 'object?',
  history: 'object?',
  progress: 'object?',
  patienceMs: 'whole?',
  redact: 'object?',
  policy: 'function?',
  migrate: 'function?',
  onFault: 'function?',
};
const RUN: OptionShape<{ as?: Caller }> = { as: 'object?' };
const SESSION: OptionShape<SessionOptions> = {
  ...({ identity: 'object?', limits: 'object?', agent: 'text?', scopes: 'list?', priority: 'any?' } as const),
  ...({ context: 'object?', labels: 'any?', whileAsked: 'any?' } as const),
};
const QUERY: OptionShape<RunQuery> = {
  tenant: 'text?',
  user: 'text?',
  session: 'text?',
  status: 'list?',
  parent: 'text?',
  since: 'moment?',
  agent: 'text?',
  labels: 'any?',
  schedule: 'text?',
  text: 'text?',
  limit: 'any?',
  after: 'text?',
  beforeTurn: 'any?',
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
    assertOptions('createRuntime', options, OPTIONS);
    knowKeysOf(process.env);
    this.#redaction = new Redaction(options.redact);
    const agents = agentsGiven(options);
    if (options.limits !== undefined) assertRunLimits(options.limits);
    assertParallelCalls(options.parallelCalls, 'parallelCalls');
    if (options.journal !== undefined && typeof options.journal !== 'string') assertJournal(options.journal);
    if (options.files !== undefined) assertFileOptions(options.files);
    if (options.progress !== undefined) assertProgressGuard(options.progress);
    if (options.store !== undefined) assertStoreOptions(options.store);
    if (options.history !== undefined) assertHistoryHooks(options.history);
    this.#saves = new TurnSaves(options.history ?? {}, () => this.#driverDeps());
    if (options.leaseMs !== undefined) assertLease({ leaseMs: options.leaseMs });
    const { memory = { strategy: 'none' }, maxLiveRuns = DEFAULT_LIVE_RUNS } = options;
    this.#slots = { runs: maxLiveRuns, perTenant: options.maxLiveRunsPerTenant ?? DEFAULT_LIVE_RUNS };
    assertMemoryOptions(memory);
    this.#memory = memory.strategy === 'none' ? undefined : memory;
    const fetch = artifactFetch(() => this.#driverDeps().artifacts);
    const { policy } = options;
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
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Stores a run, due at once, and drives it as soon as a slot is free. If a run with this id exists already, nothing is stored:
   * that run goes on, unless another process drives it.
   * @throws PilotageError `identity_required`, `agent_unknown`, `unserializable`, `memory_block_unserializable`, `invalid_config`,
   * `runtime_closed`, `scope_mismatch` for a run id that somebody else uses or for their memory, `idempotency_conflict` for
   * that of a run that was started with something else, `rate_limited`, or a store error; the reason of a `signal` that is aborted already. For a
   * planner that reads its arguments, such as a flow, what that throws: `validation_failed` (a `FlowError`).
   */
  start(query: string, options: StartOptions = {}): Promise<Run> {
    return this.#start(query, options);
  }

  async #start(query: string, options: StartOptions, asked?: StartRequest): Promise<Run> {
    this.#assertOpen();
    assertStart(query, options);
    // An identity that got lost on the way here must not put the runs of all users together.
    const owner = 'identity' in options ? options.identity : local('local');
    assertIdentity(owner);
    const identity = capture<Identity>(pickIdentity(owner), 'identity').json;
    await assertFreeId(this.#driverDeps().journal, identity.run);
    const { startsAt, key, isLater } = readBegin(options);
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
      if (startsAt === undefined) fleet.enqueue({ run: identity.run, tenant: identity.tenant, priority });
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
    const { limits, files } = this.#options;
    return { agents: this.#agents, clock: this.#clock, limits, files, deps: this.#driverDeps() };
  }

  /**
   * Makes a handle of a run, in any process. Whether the run exists is found out when the handle is used.
   * @param options `as`: the caller that uses the handle, as the program has authenticated it; default the program itself, which may
   * do everything. Controls, forks and replays need the caller's scope. For a caller, the run of somebody else does not exist,
   * unless the caller is an admin.
   */
  run(id: string, options: { readonly as?: Caller } = {}): Run {
    this.#assertOpen();
    assertOptions('run', options, RUN);
    if (typeof id !== 'string')
      throw new PilotageError('invalid_config', 'A run is named by its id, a string such as run.id of a handle.');
    return new Run(id, this.#readyHost(), options.as);
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
    this.#ticker ??= new ScheduleTicker(this.#host, this.#starting(), this.#agents.names);
    return this.#host;
  }

  #readyTicker(): ScheduleTicker {
    const host = this.#readyHost();
    this.#ticker ??= new ScheduleTicker(host, this.#starting(), this.#agents.names);
    return this.#ticker;
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
   * Erases what belongs to one person: the content of their runs, of which skeletons are left that still fold, their artifacts, the
   * summaries of their sessions and their long-term memory. A run that has not ended is cancelled; one that another process has under way is
   * told to end and named in `left`: erase again then. Nothing brings it back.
   * @throws PilotageError `identity_required`, or a store error.
   */
  erase({ tenant, user }: StoreOwner): Promise<Erased> {
    this.#assertOpen();
    const host = this.#readyHost();
    const { journal, clock, memory, told, states } = this.#driverDeps();
    const forget = (run: string): void => {
      told.forget(run);
      states.forget(run);
    };
    return eraseUser({ journal, clock, memory, forget }, { tenant, user }, async (run) => {
      await cancelRun(host.fleet, run, 'The content of its user is erased.');
      if (host.fleet.drives(run)) await new Run(run, host).result();
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
   */
  work(): () => void {
    this.#assertOpen();
    this.#readyTicker().look();
    return this.#readyFleet().work();
  }

  /**
   * Gives all runs back, so that another process can go on with them, and closes what this runtime opened.
   * @param options `graceMs`: how long calls and planners that are under way have to end before they are aborted, in milliseconds. Default
   * 0. Nothing more begins meanwhile. Called again, it can only shorten that time: `close()` aborts at once.
   * @throws PilotageError `invalid_config` for an option that is wrong.
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
    await this.#ticker?.close();
    await this.#fleet?.close(graceMs);
    await this.#saves.close(this.#clock);
    await this.#deps?.handles.close();
    this.#hub.close(new PilotageError('runtime_closed', 'The runtime was closed; the run is not followed any more.'));
    const { journal } = this.#options;
    if (journal === undefined || typeof journal === 'string') await this.#deps?.journal.close();
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
    const { leaseMs = DEFAULT_LEASE_MS, takeoverGraceMs = GRACE_IN_LEASES * leaseMs } = this.#options;
    this.#fleet ??= new Fleet(this.#driverDeps(), {
      slots: this.#slots,
      leaseMs,
      takeoverGraceMs,
      migrate: this.#options.migrate,
      agents: this.#agents.names,
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
    const { journal: given = DEFAULT_JOURNAL_PATH } = this.#options;
    const stored = typeof given === 'string' ? sqliteJournal({ path: given, clock: this.#clock }) : given;
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
      ...defined({ patienceMs: this.#options.patienceMs }),
      turnStarted: async (state, signal) => {
        const load = this.#options.history?.load?.bind(this.#options.history);
        const started = await turnStarted(state, deps, { ...this.#memory, afresh: load !== undefined });
        if (load === undefined) return started;
        await this.#saves.settled(state.identity);
        return withOwnHistory(started, state, (about) => load({ ...about, signal }), deps);
      },
      newToken: () => `pause_${crypto.randomUUID().replaceAll('-', '')}`,
      woke: (run) => this.#readyFleet().wake(run),
      reopenTasks: (run, by) => this.#readyFleet().reopenTasks(run, by),
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
