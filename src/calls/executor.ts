/** The calls of the open step that this process has in flight: starts what may start, and collects what has landed. */
import {
  type Branch,
  type CallEnded,
  type CallParallel,
  type CallPlace,
  type CallResult,
  callEnded,
  type EntryBody,
  isPlan,
  isPlanTool,
  isTaskTool,
  type Json,
  type JsonObject,
  mapTexts,
  runsAbove,
  skillView,
  type ToolSchema,
  timeAfter,
} from '#core';
import { awayCall, hasBegun, hasNewGoal, isHeld, mayGiveUp, type OpenStep, type RunState, waitingCall } from '#state';
import type { AuthorisedTools } from '#tools';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { HeldLease } from '../loop/held-lease.ts';
import type { RunTracing } from '../loop/run-tracing.ts';
import type { RunWriter } from '../loop/run-writer.ts';
import type { Landing } from '../tasks/spawn.ts';
import { argsOf } from './arguments.ts';
import { Attempt } from './attempt.ts';
import { awayEntry, givenUp, withAttempts } from './away.ts';
import { stopBefore } from './breakpoint.ts';
import { type Dispatched, dispatch } from './call.ts';
import type { Call, DispatchPorts, HeldCall } from './call-ports.ts';
import { RunStore } from './call-store.ts';
import { RunStreams } from './call-streams.ts';
import { CallsAside } from './calls-aside.ts';
import type { OwnCall, Piece } from './context.ts';
import { keyPrefixOf } from './doubt.ts';
import { EarlierCalls, type EarlierPorts, type KnownTool } from './earlier-calls.ts';
import { endAgentCall, endOfTask, givenCall, type OwnPorts } from './functionless-calls.ts';
import { whyNotTo } from './hand-over.ts';
import { HeldQuestions } from './held-questions.ts';
import { askForRaise, asksForRaise, InFlightBudget, type Lacking } from './in-flight-budget.ts';
import { LoneCall } from './lone-call.ts';
import { cancelled, noRoom } from './outcome.ts';
import { Permits } from './permits.ts';
import type { Schedule } from './schedule.ts';
import { setUpParallel } from './set-up.ts';
import { ToolSpending } from './spending.ts';
import {
  branchAt,
  isAgentCall,
  offeredNow,
  placeOf,
  renamed,
  scheduleOf,
  settling,
  tellSchedule,
  unpark,
} from './step-schedule.ts';
import { notWanted, StoppedCalls } from './stopped-calls.ts';
import { asBranch, isTaskCall, type Landed, TaskCalls } from './task-calls.ts';
import { waitEntries } from './wait-entries.ts';

export interface CallPorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  /** Writes, durably, that a call begins. False: it must not, because the run is to be cancelled. */
  begin(step: number, call: number, costMicroUsd: number | undefined, repeatable: boolean): Promise<boolean>;
  readonly writer: Pick<RunWriter, 'commit' | 'isWriting' | 'untilWritten'>;
  readonly lease: HeldLease;
  readonly tracing: RunTracing | undefined;
  /** Asks the store whether the run is this process's still, and looks at what was said to it. @throws PilotageError `lease_lost`. */
  prove(): Promise<void>;
  tools(): AuthorisedTools;
}

/** At most `MAX_AT_ONCE` are under way: a list of so few is looked through in less time than a table is changed in. */
interface CallInFlight {
  readonly call: number;
  readonly attempt: Attempt;
}

export class Calls {
  readonly #ports: CallPorts;
  readonly #inFlight: CallInFlight[] = [];
  readonly #landed: Landed[] = [];
  /** Calls that have ended since the schedule was last told. */
  #returned: number[] = [];
  #nudged = false;
  /** The step whose only call is under way. */
  #alone: OpenStep | undefined;
  /** True: somebody is to be asked to raise a limit, and the pause is not recorded yet. */
  #hasAsked = false;
  /**
   * Calls that do not fit the budget, and that may not be needed because others of the step may end it. They take their turn again
   * when no other call of the step is under way.
   */
  readonly #unasked = new Set<number>();
  readonly stopped: StoppedCalls;
  readonly #budget: InFlightBudget;
  #planned: { readonly open: OpenStep; readonly schedule: Schedule } | undefined;
  #wake: (() => void) | undefined;
  /** The only call of the step, while the driver waits for it. */
  #lone: LoneCall | undefined;
  #refusal: { readonly error: unknown } | undefined;
  readonly #keyPrefix: string;
  readonly #dispatchPorts: DispatchPorts;
  readonly #earlier: EarlierCalls;
  readonly #tasks: TaskCalls;
  readonly questions: HeldQuestions;

  constructor(ports: CallPorts) {
    this.#ports = ports;
    const { deps, state } = ports;
    this.stopped = new StoppedCalls(state, this.#inFlight);
    const { identity } = state;
    const { clock, artifacts } = deps;
    const toolOf = (tool: string): KnownTool | undefined => this.#toolOf(tool);
    this.#earlier = new EarlierCalls({ state, artifacts, toolOf });
    this.#budget = new InFlightBudget(state);
    this.questions = new HeldQuestions({
      state,
      writer: ports.writer,
      newToken: () => deps.newToken(),
      onAsked: () => this.#leaveAlone(),
    });
    this.#tasks = new TaskCalls({
      deps,
      state,
      budget: this.#budget,
      tools: () => ports.tools(),
      resolveArgs: (call) => this.#resolveArgs(call),
      hold: (open, call, lacking) => this.#hold(open, call, lacking),
    });
    this.#dispatchPorts = {
      clock,
      artifacts,
      atWork: deps.atWork,
      turns: deps.turns,
      spending: new ToolSpending({
        state,
        budget: this.#budget,
        modelNamed: (name) => deps.planner.modelNamed?.(name) ?? deps.modelNamed(name),
        write: (body) => ports.writer.commit([body]),
        onFault: (error) => deps.onFault(error),
      }),
      begin: (call, tool, cost, repeatable) => this.#makeBegin(call, tool, cost, repeatable),
      lease: ports.lease,
      prove: () => ports.prove(),
      reserve: (call, tool, costMicroUsd) => this.#reserve(call, tool, costMicroUsd),
      random: () => deps.random(),
      onFault: (error) => deps.onFault(error),
      isReadByModel: deps.planner.modelDriven === true,
      meta: state.context.meta ?? NO_META,
      skills: skillView(state.context.skills),
      hold: ({ open, index, waiting }, asked) => {
        const at = { step: open.move.step, call: index };
        return this.questions.ask(at, asked, waiting?.startedAt ?? clock.now());
      },
      tracing: ports.tracing,
      kept: { state, artifacts, writing: new Map(), write: (body) => ports.writer.commit([body]) },
      store: new RunStore(deps, state),
      streams: new RunStreams(deps, ports.lease),
      tellChunk: (call, piece) => this.#tellChunk(call, piece),
      whyNotTo: (agent) => whyNotTo(agent, state, deps),
      found: () => state.found,
      resolveArgs: (call) => this.#resolveArgs(call),
      hand: (call, wanted) => deps.handles.hand(state, call, wanted),
      earlier: ({ branch }, args) => this.#earlier.find(branch.tool, args),
      aside: new CallsAside({ state, journal: deps.journal, artifacts, toolOf }),
      permits: new Permits(deps, state, (body) => ports.writer.commit([body])),
      keyOf: (place) => this.#keyOf(place),
    };
    this.#keyPrefix = keyPrefixOf(identity);
  }

  /** For calls that no tool's own function carries out. */
  get ownPorts(): OwnPorts {
    return {
      ...this.#ports,
      found: this.#dispatchPorts.found,
      resolveArgs: (call) => this.#resolveArgs(call),
      told: (open, call, result) => this.stopped.told(open, call, result),
    };
  }

  get inFlight(): number {
    return this.#inFlight.length;
  }

  /** True when calls are in flight, and each of them waits for an answer. */
  get onlyAsk(): boolean {
    return this.#inFlight.length > 0 && this.#inFlight.every(({ call }) => this.questions.isAsking(call));
  }

  /** Whether the call is under way here, or its outcome is not recorded yet. */
  isInFlight(call: number): boolean {
    return this.#inFlight.some((one) => one.call === call) || this.#returned.includes(call);
  }

  /** Whether the call may still come to something here that is not recorded yet. */
  mayLand(call: number): boolean {
    return this.#landed.length > 0 || this.#inFlight.some((one) => one.call === call);
  }

  /** True when nothing is in flight, and every result has been taken. */
  get isIdle(): boolean {
    return this.#inFlight.length === 0 && this.#landed.length === 0;
  }

  abort(reason: unknown, isPatient: boolean): void {
    for (const { attempt } of this.#inFlight) attempt.abort(reason, isPatient);
    if (this.#inFlight.length === 0) this.nudge();
  }

  /**
   * One turn of the executor. Gives the calls that are refused or will never run; when there are none, the calls that end next.
   * `landed` makes entries of it.
   * @throws the journal's refusal to let a call begin.
   */
  advance(open: OpenStep): PromiseLike<Landing | Dispatched> {
    if (open.move.growing !== true) this.#dispatchPorts.spending.lookAgain();
    const { decision } = open.move;
    this.#budget.lentIsKnown();
    this.#hasAsked = false;
    // A single call waits for no other call, and no other call waits for it, so that this short cut changes no outcome.
    const { state } = this.#ports;
    if (decision.kind === 'call_tool' || isTaskCall(decision)) {
      const branch = decision.kind === 'call_tool' ? renamed(state, decision) : asBranch(decision);
      const stop = stopBefore(this.#ports, open, 0, branch);
      return stop === undefined ? this.#beginAlone(open, branch) : Promise.resolve({ entries: [stop] });
    }
    if (decision.kind !== 'call_parallel') return this.#landing();
    const planned = this.#planned;
    if (planned?.open === open) return this.#turn(open, decision, planned.schedule);
    const begin = (refused: readonly CallEnded[]): Promise<Landing> => {
      if (refused.length > 0) return Promise.resolve({ entries: refused });
      const schedule = scheduleOf(state, open, decision);
      this.#planned = { open, schedule };
      this.#returned = [];
      return this.#turn(open, decision, schedule);
    };
    const branches = decision.branches.map((branch) => renamed(state, branch));
    const shown = { tools: this.#ports.tools(), offered: offeredNow(state, open) };
    return setUpParallel(open, { ...decision, branches }, shown, this.#dispatchPorts).then(begin);
  }

  #turn(open: OpenStep, decision: CallParallel, schedule: Schedule): Promise<Landing> {
    const { state, deps } = this.#ports;
    // Calls that ended while the last results were being written count as ended, although the state does not say so yet.
    if (this.#landed.length > 0) return Promise.resolve(this.take());
    tellSchedule(schedule, state, open, decision, this.#returned.splice(0));
    if (schedule.isMet) for (const { attempt } of this.#inFlight) attempt.dismiss(notWanted());
    this.stopped.stopAll(open);
    if (this.#inFlight.length === 0) this.#unasked.clear();
    const over = unpark(schedule, state, open, deps.clock.now(), this.#unasked);
    const settled = schedule.takeSettled();
    if (settled.length > 0) return Promise.resolve(settling(open, settled));
    const carried = open.waits.flatMap(({ call, agentCall }) =>
      agentCall !== undefined && schedule.parked.has(call) ? [call] : [],
    );
    const isHeldNow = isHeld(state);
    // Calls that tasks carry out may end also while the run is held; no other call begins.
    const waited = isHeldNow ? over.filter((call) => isAgentCall(open, call)) : over;
    while (!isHeldNow && this.#inFlight.length + carried.length < schedule.concurrency) {
      const call = schedule.next((tool) => this.#mayStart(schedule, tool, carried));
      if (call === undefined) break;
      const stop = stopBefore(this.#ports, open, call, schedule.branch(call));
      if (stop !== undefined) {
        // It takes its turn again when the run goes on.
        schedule.park(call);
        this.#landed.push([stop]);
        break;
      }
      this.#start(open, call, schedule.branch(call));
    }
    for (const call of waited) {
      schedule.takeParked(call);
      this.#start(open, call, schedule.branch(call));
    }
    return this.#landing();
  }

  async #landing(): Promise<Landing> {
    while (this.#landed.length === 0 && this.#refusal === undefined && !this.#nudged && this.#hasMoreToCome()) {
      await this.#change();
    }
    this.#nudged = false;
    if (this.#refusal !== undefined) throw this.#refusal.error;
    return this.take();
  }

  #hasMoreToCome(): boolean {
    return this.#inFlight.length > 0 || this.#ports.state.open?.move.growing === true;
  }

  /** Ends the wait for calls in flight, or for more of the plan, without a result: the driver has something else to look at. */
  nudge(): void {
    this.#nudged = true;
    this.#wake?.();
  }

  /** Waits until a call has ended, or nothing is in flight. */
  async untilLanded(): Promise<void> {
    if (this.#landed.length === 0 && this.#inFlight.length > 0) await this.#change();
  }

  /** Waits until nothing is in flight. The results can then be taken. */
  async settle(): Promise<void> {
    while (this.#inFlight.length > 0) await this.#change();
  }

  /** Takes the results that were not taken yet. Tasks start one at a time, since each gets a share of what is left at its start. */
  take(): Landing {
    const spawns = this.#landed.findIndex((landed) => typeof landed === 'function');
    if (spawns === -1) return { entries: (this.#landed.splice(0) as EntryBody[][]).flat() };
    if (spawns > 0) return { entries: (this.#landed.splice(0, spawns) as EntryBody[][]).flat() };
    const made = this.#landed.shift();
    return typeof made === 'function' ? made() : { entries: made ?? [] };
  }

  /** Takes the results when nothing more is to be started. */
  takeEnded(): EntryBody[] {
    return this.#landed.splice(0).flatMap((landed) => (typeof landed === 'function' ? [] : landed));
  }

  /** Finds out what became of calls that have begun, where nothing more is made. What that comes to lands. */
  lookUp(open: OpenStep, calls: readonly number[]): void {
    for (const call of calls) this.#start(open, call, branchAt(this.#ports.state, open, call));
    for (const { call, attempt } of this.#inFlight) if (calls.includes(call)) attempt.dismiss(notWanted());
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** @param carried calls that tasks carry out; each keeps its place until it has ended. */
  #mayStart(schedule: Schedule, tool: string, carried: readonly number[]): boolean {
    const limit = this.#ports.tools().ready(tool)?.concurrency ?? Number.POSITIVE_INFINITY;
    if (limit === Number.POSITIVE_INFINITY) return true;
    const busy = [...this.#inFlight.map(({ call }) => call), ...carried].filter(
      (call) => schedule.branch(call).tool === tool,
    );
    return busy.length < limit;
  }

  /** Starts a call beside others. Its end is announced through `#change`. */
  #start(open: OpenStep, index: number, branch: Branch): void {
    this.#whenOver(index, this.#begin(open, index, branch));
  }

  #whenOver(index: number, begun: Promise<Landed>): void {
    begun.then(
      (landed) => {
        this.#isOver(index);
        this.#returned.push(index);
        this.#landed.push(landed);
        this.#wake?.();
      },
      (error: unknown) => {
        this.#isOver(index);
        this.#refusal = { error };
        this.#wake?.();
      },
    );
  }

  /** The entries of what `advance` has led to. */
  landed(ended: Landing | Dispatched): Landing {
    if ('entries' in ended) return ended;
    const open = this.#alone;
    this.aloneIsOver();
    return open === undefined ? { entries: [] } : asLanding(this.#landedCall(open, 0, ended));
  }

  #isUnderWay(call: number, attempt: Attempt): void {
    this.#inFlight.push({ call, attempt });
  }

  #isOver(call: number): void {
    const at = this.#inFlight.findIndex((one) => one.call === call);
    if (at !== -1) this.#inFlight.splice(at, 1);
  }

  /** The call of a step that has no other is not under way any more. */
  aloneIsOver(): void {
    if (this.#alone === undefined) return;
    this.#alone = undefined;
    this.#lone = undefined;
    this.#isOver(0);
  }

  #beginAlone(open: OpenStep, branch: Branch): PromiseLike<Landing | Dispatched> {
    // It stays open, and what it asked was heard meanwhile.
    if (this.#inFlight.length > 0 || this.#landed.length > 0) return this.#landing();
    this.#alone = open;
    const other = this.#beginOther(open, 0, branch);
    if (other !== undefined) return other.then(asLanding).finally(() => this.aloneIsOver());
    this.#lone = new LoneCall(this.#fly(open, 0, branch));
    return this.#lone;
  }

  /** The driver waits for the only call of a step, which asks somebody: it is to hear what is said, as beside other calls. */
  #leaveAlone(): void {
    const lone = this.#lone;
    const open = this.#alone;
    if (open === undefined || lone === undefined) {
      this.nudge();
      return;
    }
    this.#alone = undefined;
    this.#whenOver(
      0,
      lone.flying.then((result) => this.#landedCall(open, 0, result)),
    );
    lone.leave();
  }

  async #begin(open: OpenStep, index: number, branch: Branch): Promise<Landed> {
    const other = this.#beginOther(open, index, branch);
    return other ?? this.#landedCall(open, index, await this.#fly(open, index, branch));
  }

  /** A call that no tool's own function carries out. */
  #beginOther(open: OpenStep, index: number, branch: Branch): Promise<Landed> | undefined {
    const carried = open.waits.find(({ call, agentCall }) => call === index && agentCall !== undefined);
    if (carried !== undefined) {
      const end = endOfTask(this.#ports.state, carried);
      if (end === undefined) return Promise.resolve([]);
      this.#isUnderWay(index, new Attempt(this.#ports.deps.clock, () => {}));
      return endAgentCall(open, branch, carried, end, this.ownPorts);
    }
    if (isTaskTool(branch.tool)) {
      this.#isUnderWay(index, new Attempt(this.#ports.deps.clock, () => {}));
      return this.#tasks.begin(open, { index, branch });
    }
    const away = hasNewGoal(this.#ports.state) && !hasBegun(open, index) ? awayCall(open, index) : undefined;
    if (away !== undefined) return Promise.resolve([givenUp(open, branch, away)]);
    if (!isPlanTool(branch.tool) || !isPlan(open.move.decision)) return undefined;
    this.#isUnderWay(index, new Attempt(this.#ports.deps.clock, () => {}));
    return givenCall(open, index, branch, this.ownPorts);
  }

  /** The outcome of a call that does not fit the budget. */
  #reserve(
    { open, index }: Pick<Call, 'open' | 'index'>,
    tool: ToolSchema,
    costMicroUsd?: number,
  ): CallResult | HeldCall | undefined {
    const shortage = this.#budget.reserve(open, index, costMicroUsd ?? 0);
    if (shortage === undefined) return undefined;
    if (!asksForRaise(this.#ports.state)) {
      // What was set aside for it before it turned out not to have happened is free again.
      const isSetAside = open.promised.some((promise) => promise.call === index);
      const outcome = noRoom(tool, costMicroUsd, shortage.axis);
      return isSetAside ? { outcome, attempts: 0, costMicroUsd: 0 } : { outcome, attempts: 0 };
    }
    const needs = shortage.axis === 'calls' ? 1 : (costMicroUsd ?? 0);
    return { kind: 'held', lacking: { ...shortage, tool: tool.name, needs } };
  }

  /** Entries that are being written may cost something too, such as more of a plan. The call is placed when that cost is known. */
  async #makeBegin(
    call: Call,
    tool: ToolSchema,
    costMicroUsd: number | undefined,
    repeatable: boolean,
  ): Promise<CallResult | HeldCall | undefined> {
    const { open, index } = call;
    if (this.#ports.writer.isWriting) {
      await this.#ports.writer.untilWritten();
      const refused = this.#reserve(call, tool, costMicroUsd);
      if (refused !== undefined) return refused;
    }
    // The state reserves what the journal has recorded; this reservation lasts only until then.
    try {
      const hasBegun = await this.#ports.begin(open.move.step, index, costMicroUsd, repeatable);
      return hasBegun ? undefined : { outcome: cancelled(), attempts: 0 };
    } finally {
      this.#budget.hasBegun(index);
    }
  }

  /**
   * The call takes its turn again when the run goes on. Of several calls that do not fit, one asks; while others that may end the
   * step are under way, none asks.
   */
  #hold(open: OpenStep, call: number, lacking: Lacking): EntryBody[] {
    if (this.#hasAsked) return [];
    if (mayGiveUp(open.move.decision) && this.#hasOthers(call)) {
      this.#unasked.add(call);
      return [];
    }
    this.#hasAsked = true;
    const { deps, state } = this.#ports;
    return [askForRaise(state, lacking.axis, deps.newToken(), lacking)];
  }

  /** Whether other calls are under way or not recorded yet, apart from those that do not fit either. */
  #hasOthers(call: number): boolean {
    if (this.#landed.some((landed) => typeof landed === 'function' || landed.length > 0)) return true;
    return this.#inFlight.some(({ call: other }) => other !== call && !this.#unasked.has(other));
  }

  #landedCall(open: OpenStep, index: number, result: Dispatched): Landed {
    const at = { step: open.move.step, call: index };
    if (!('kind' in result)) return [callEnded(at, this.stopped.told(open, index, result))];
    if (result.kind === 'held') return this.#hold(open, index, result.lacking);
    if (result.kind === 'away') return [awayEntry(at, result, this.#ports.deps.clock)];
    // It keeps its place: what it has done of its work would be lost if there were none when it goes on.
    if (result.kind === 'waits') return waitEntries(at, result, open, this.#ports.deps);
    // The task is not under way yet: it takes its place when its turn comes.
    if (result.kind === 'task' || result.reason !== 'in_doubt') this.#budget.giveBack(index);
    if (result.kind === 'task') return () => this.#tasks.spawnAgentCall(open, index, result);
    const { kind: _, expiresInMs, ...asked } = result;
    const { clock, newToken } = this.#ports.deps;
    const expiry = expiresInMs === undefined ? {} : { expiresAt: timeAfter(clock.now(), expiresInMs) };
    return [{ kind: 'paused', token: newToken(), ...at, ...asked, ...expiry }];
  }

  /**
   * @throws the journal's refusal to let the call begin: it did not run.
   */
  #fly(open: OpenStep, index: number, branch: Branch): Promise<Dispatched> {
    const { deps, state, tools } = this.#ports;
    const { step } = open.move;
    const { identity } = state;
    const { tool } = branch;
    const attempt = new Attempt(deps.clock, () =>
      deps.hub.tell(identity.run, { type: 'late', step, call: index, tool }),
    );
    this.#isUnderWay(index, attempt);
    this.stopped.stopAll(open);
    const idempotencyKey = this.#keyOf({ step, call: index });
    const begun = open.began.length === 0 ? undefined : open.began.find((one) => one.call === index);
    const interrupted = begun !== undefined;
    const away = awayCall(open, index);
    const call: Call = {
      open,
      index,
      branch,
      identity,
      idempotencyKey,
      tools: tools(),
      offered: offeredNow(state, open),
      attempt,
      interrupted,
      begunAt: begun?.at,
      begunOnce: begun?.once === true,
      away,
      waiting: waitingCall(open, index),
      approval: open.approvals.find((approval) => approval.call === index),
      held: state.fork?.effects === 'held',
      mayBeUndone: state.undo !== null && state.unwinding === null,
    };
    const made = dispatch(call, this.#dispatchPorts);
    // Attempts were made before, however this one ends.
    const before = away?.attempts ?? (interrupted ? 1 : 0);
    return before === 0 ? made : made.then((result) => withAttempts(result, before));
  }

  #tellChunk({ open, index, branch: { tool } }: OwnCall, piece: Piece): void {
    const { deps, state } = this.#ports;
    const { run } = state.identity;
    const runs = state.task === null ? [run] : [run, ...runsAbove(run, state.task.depth)];
    const heard = runs.filter((reader) => deps.hub.wantsTokens(reader));
    if (heard.length === 0) return;
    const clean = mapTexts(piece.chunk, deps.redaction.known);
    const chunk = { run, step: open.move.step, call: index, tool, ...piece, chunk: clean };
    for (const reader of heard) deps.hub.tell(reader, { type: 'chunk', chunk });
  }

  #toolOf(recorded: string): ReturnType<EarlierPorts['toolOf']> {
    const { tool: name } = renamed(this.#ports.state, { tool: recorded });
    const tool = this.#ports.tools().ready(name);
    return tool && { name, effect: tool.effect, checkArgs: tool.checkArgs };
  }

  #keyOf({ step, call }: CallPlace): string {
    return `${this.#keyPrefix}/${step}.${call}`;
  }

  #resolveArgs({ open, index, branch }: Pick<Call, 'open' | 'index' | 'branch'>): Json | Promise<Json> {
    const { deps, state } = this.#ports;
    const planned = this.#planned?.open === open ? this.#planned.schedule : undefined;
    const indexOf = (id: string): number | undefined => (planned ? planned.indexOf(id) : placeOf(open, id));
    return argsOf(open, index, branch, { state, artifacts: deps.artifacts, indexOf });
  }
}

function asLanding(landed: Landed): Landing {
  return typeof landed === 'function' ? landed() : { entries: landed };
}

const NO_META: JsonObject = Object.freeze({});
