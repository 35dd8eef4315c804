/** The calls of the open step that this process has in flight: starts what may start, and collects what has landed. */
import { AWAIT_TOOL, SPAWN_TOOL } from '../core/builtin-tools.ts';
import type { Branch, Decision, SpawnTask } from '../core/decision.ts';
import type { CallEnded, EntryBody } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { scopeKey } from '../core/identity.ts';
import type { Json } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import { referencesIn, resolveReferences } from '../core/reference.ts';
import { isTaskTool, type TaskCall, taskCall } from '../core/task-calls.ts';
import { validateDecision } from '../core/validate-decision.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import { leftOf } from '../view/budget.ts';
import { NOTHING_RENAMED, type OpenStep, type RunState } from '../view/state.ts';
import { isParked } from '../view/waits.ts';
import { beginAwait, endOfWait } from './await.ts';
import { type BranchGraph, branchGraph, planBranches } from './branches.ts';
import { type Call, type CallResult, type DispatchPorts, dispatch, errorData } from './dispatch.ts';
import type { DriverDeps } from './driver-deps.ts';
import { Flight } from './flight.ts';
import type { PauseAsk } from './gates.ts';
import { wholeValue } from './heavy.ts';
import { setUp } from './set-up.ts';
import { SharedTimer } from './shared-timer.ts';
import { type Landing, spawn } from './spawn.ts';

export interface CallPorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  /** Makes durable that a call begins. */
  begin(step: number, call: number, costMicroUsd: number | undefined): Promise<void>;
  tools(): AuthorisedTools;
}

/** What a call came to: entries, or a task that is started when its turn comes. */
type Landed = EntryBody[] | (() => Landing);

export class Calls {
  readonly #ports: CallPorts;
  readonly #inFlight = new Map<number, Flight>();
  readonly #landed: Landed[] = [];
  #nudged = false;
  /** Money set aside for a task whose start is being written. */
  #spawning = 0;
  /** Money of calls whose beginning is being written, by call. */
  readonly #reserved = new Map<number, number>();
  #graph: { readonly step: number; readonly graph: BranchGraph } | undefined;
  #wake: (() => void) | undefined;
  #refusal: { readonly error: unknown } | undefined;
  readonly #keyPrefix: string;
  readonly #dispatchPorts: DispatchPorts;
  readonly #timer: SharedTimer;

  constructor(ports: CallPorts) {
    this.#ports = ports;
    this.#timer = new SharedTimer(ports.deps.clock);
    const { deps, state } = ports;
    const { identity } = state;
    const { clock, artifacts } = deps;
    this.#dispatchPorts = {
      clock,
      artifacts,
      // What is in the journal is set aside by the state; here it is only until then.
      begin: ({ open, index }, cost) =>
        ports.begin(open.move.step, index, cost).finally(() => this.#reserved.delete(index)),
      reserve: (call, costMicroUsd) => this.#reserve(call, costMicroUsd),
      found: () => state.found,
      resolveArgs: (call) => this.#resolveArgs(call),
    };
    this.#keyPrefix = `${scopeKey(identity)}/${encodeURIComponent(identity.run)}`;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Nothing is in flight, and nothing has landed that was not taken. */
  get isIdle(): boolean {
    return this.#inFlight.size === 0 && this.#landed.length === 0;
  }

  /** Nothing is in flight any more, and nothing more will be. */
  close(): void {
    this.#timer.stop();
  }

  abort(reason: unknown): void {
    for (const flight of this.#inFlight.values()) flight.abort(reason);
  }

  /**
   * One turn of the executor: what is refused or will never run, or, when there is no such thing, what lands next.
   * @throws the journal's refusal to let a call begin.
   */
  advance(open: OpenStep): Promise<Landing> {
    const { step } = open.move;
    const { renamedTools } = this.#ports.state;
    const decision =
      renamedTools === NOTHING_RENAMED ? open.move.decision : withRenamedTools(open.move.decision, renamedTools);
    this.#spawning = 0;
    // A call alone waits for nothing and nothing waits for it: the short cut changes no outcome.
    if (decision.kind === 'call_tool') return this.#beginAlone(open, decision);
    if (isTaskCall(decision)) return this.#beginAlone(open, asBranch(decision));
    if (this.#graph?.step === step) return this.#turn(open, this.#graph.graph);
    const begin = (refused: readonly CallEnded[]): Promise<Landing> => {
      if (refused.length > 0) return Promise.resolve({ entries: refused });
      this.#graph = { step, graph: branchGraph(decision) };
      return this.#turn(open, this.#graph.graph);
    };
    return setUp(open, decision, this.#ports.tools(), this.#dispatchPorts).then(begin);
  }

  #turn(open: OpenStep, graph: BranchGraph): Promise<Landing> {
    const { step } = open.move;
    const { state, deps } = this.#ports;
    // What landed while the last results were being written has ended, although the state does not say so yet.
    if (this.#landed.length > 0) return Promise.resolve(this.take());
    const now = deps.clock.now();
    const plan = planBranches(
      graph,
      open.calls,
      this.#inFlight,
      (call) => isParked(state, open, call, now),
      (call) => open.waits.some((wait) => wait.call === call),
      (call, starting) => this.#mayStart(graph, call, starting),
    );
    for (const call of plan.stop) this.#inFlight.get(call)?.abort(joinIsMet());
    if (plan.settle.length > 0) {
      const settled = plan.settle.map(({ call, outcome }): CallEnded => {
        const known = open.began.includes(call) ? mayHaveHappened() : outcome;
        return { kind: 'call_ended', step, call, outcome: known, attempts: 0 };
      });
      return Promise.resolve({ entries: settled });
    }
    for (const call of plan.start) this.#start(open, call, graph.branches[call] as Branch);
    return this.#landing();
  }

  async #landing(): Promise<Landing> {
    while (this.#landed.length === 0 && this.#refusal === undefined && this.#inFlight.size > 0 && !this.#nudged) {
      await this.#change();
    }
    this.#nudged = false;
    if (this.#refusal !== undefined) throw this.#refusal.error;
    return this.take();
  }

  /** Ends the wait for what is in flight, with nothing: there is something else to look at. */
  nudge(): void {
    this.#nudged = true;
    this.#wake?.();
  }

  /** Waits until nothing is in flight; what landed can be taken. */
  async settle(): Promise<void> {
    while (this.#inFlight.size > 0) await this.#change();
  }

  /** What has landed and was not taken yet. One task is started at a time: each gets a share of what is left then. */
  take(): Landing {
    const spawns = this.#landed.findIndex((landed) => typeof landed === 'function');
    if (spawns === -1) return { entries: (this.#landed.splice(0) as EntryBody[][]).flat() };
    if (spawns > 0) return { entries: (this.#landed.splice(0, spawns) as EntryBody[][]).flat() };
    const made = this.#landed.shift();
    return typeof made === 'function' ? made() : { entries: made ?? [] };
  }

  /** What has landed when nothing more is to be started. */
  takeEnded(): EntryBody[] {
    return this.#landed.splice(0).flatMap((landed) => (typeof landed === 'function' ? [] : landed));
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #mayStart(graph: BranchGraph, call: number, starting: readonly number[]): boolean {
    const tool = graph.branches[call]?.tool ?? '';
    const limit = this.#ports.tools().ready(tool)?.concurrency ?? Number.POSITIVE_INFINITY;
    if (limit === Number.POSITIVE_INFINITY) return true;
    const busy = [...starting, ...this.#inFlight.keys()];
    return busy.filter((other) => graph.branches[other]?.tool === tool).length < limit;
  }

  /** Starts a call beside others; how it ends is heard through `#change`. */
  #start(open: OpenStep, index: number, branch: Branch): void {
    this.#begin(open, index, branch).then(
      (landed) => {
        this.#inFlight.delete(index);
        this.#landed.push(landed);
        this.#wake?.();
      },
      (error: unknown) => {
        this.#inFlight.delete(index);
        this.#refusal = { error };
        this.#wake?.();
      },
    );
  }

  #beginAlone(open: OpenStep, branch: Branch): Promise<Landing> {
    return this.#begin(open, 0, branch).then(
      (landed) => {
        this.#inFlight.delete(0);
        return typeof landed === 'function' ? landed() : { entries: landed };
      },
      (error: unknown) => {
        this.#inFlight.delete(0);
        throw error;
      },
    );
  }

  #begin(open: OpenStep, index: number, branch: Branch): Promise<Landed> {
    if (isTaskTool(branch.tool)) return this.#beginTask(open, index, branch);
    return this.#fly(open, index, branch).then((result) => this.#landedCall(open, index, result));
  }

  #landedCall(open: OpenStep, index: number, result: CallResult | PauseAsk): EntryBody[] {
    if (!('kind' in result)) return [callEnded(open, index, result)];
    const { kind: _, expiresInMs, ...asked } = result;
    const { clock, newToken } = this.#ports.deps;
    const expiry = expiresInMs === undefined ? {} : { expiresAt: clock.now() + expiresInMs };
    return [{ kind: 'paused', token: newToken(), step: open.move.step, call: index, ...asked, ...expiry }];
  }

  /** A call that spawns or awaits. What it needs of other branches is looked up first; the rest is a matter of entries. */
  async #beginTask(open: OpenStep, index: number, branch: Branch): Promise<Landed> {
    const { deps, state } = this.#ports;
    const { step } = open.move;
    const at = { step, call: index };
    this.#inFlight.set(index, new Flight(this.#timer, () => {}));
    if (branch.refusal !== undefined) {
      const outcome = { kind: 'error' as const, error: branch.refusal };
      return [{ kind: 'call_ended', ...at, outcome, attempts: 0 }];
    }
    const wait = open.waits.find(({ call }) => call === index);
    const ended = wait && endOfWait(state, wait, deps.clock.now());
    if (ended !== undefined) return [{ kind: 'call_ended', ...at, outcome: ended, attempts: 0 }];
    let decision: TaskCall;
    try {
      const args = await this.#resolveArgs({ open, index, branch });
      const whole = open.move.decision;
      const made = isTaskCall(whole) ? whole : taskCall(branch.tool, args, branch.callId);
      decision = validateDecision(made) as TaskCall;
    } catch (thrown) {
      return [{ kind: 'call_ended', ...at, outcome: { kind: 'error', error: errorData(thrown) }, attempts: 0 }];
    }
    if (decision.kind === 'await_task') {
      const { journal, clock, woke } = deps;
      return [...(await beginAwait(open, index, decision, { journal, state, now: clock.now(), woke }))];
    }
    const spawning = decision;
    return () => this.#spawn(at, spawning);
  }

  /**
   * @throws the journal's refusal to let the call begin: it did not run.
   */
  #fly(open: OpenStep, index: number, branch: Branch): Promise<CallResult | PauseAsk> {
    const { deps, state, tools } = this.#ports;
    const { step } = open.move;
    const { identity } = state;
    const { tool } = branch;
    const flight = new Flight(this.#timer, () =>
      deps.hub.tell(identity.run, { type: 'late', step, call: index, tool }),
    );
    this.#inFlight.set(index, flight);
    const idempotencyKey = `${this.#keyPrefix}/${step}.${index}`;
    const call: Call = {
      open,
      index,
      branch,
      identity,
      idempotencyKey,
      tools: tools(),
      flight,
      interrupted: open.began.includes(index),
      approval: open.approvals.find((approval) => approval.call === index),
      held: state.fork?.effects === 'held',
    };
    return dispatch(call, this.#dispatchPorts);
  }

  #spawn(at: { readonly step: number; readonly call: number }, decision: SpawnTask): Landing {
    const { deps, state } = this.#ports;
    const landing = spawn(state, at, decision, deps.clock.now(), this.#promised());
    const [spawned] = landing.entries;
    this.#spawning = spawned?.kind === 'spawned' ? (spawned.reserved.costMicroUsd ?? 0) : 0;
    return landing;
  }

  #promised(): number {
    let sum = 0;
    for (const reserved of this.#reserved.values()) sum += reserved;
    return sum;
  }

  #reserve({ index }: Call, costMicroUsd: number): boolean {
    const left = leftOf(this.#ports.state).costMicroUsd ?? Number.POSITIVE_INFINITY;
    if (costMicroUsd > left - this.#promised() - this.#spawning) return false;
    this.#reserved.set(index, costMicroUsd);
    return true;
  }

  #resolveArgs({ open, index, branch: { args } }: Pick<Call, 'open' | 'index' | 'branch'>): Json | Promise<Json> {
    const approved = open.approvals.find(({ call }) => call === index)?.args;
    if (approved !== undefined) return approved;
    // A call alone has no earlier branch to refer to.
    if (open.calls.length === 1) return args;
    const ids = referencesIn(args);
    return ids.size === 0 ? args : this.#resolveFrom(open, args, ids);
  }

  async #resolveFrom({ calls }: OpenStep, args: Json, ids: ReadonlySet<string>): Promise<Json> {
    const { deps, state } = this.#ports;
    const values = new Map<string, Json>();
    for (const id of ids) {
      const index = this.#graph?.graph.indexById.get(id);
      const outcome = index === undefined ? undefined : calls[index]?.outcome;
      if (outcome?.kind === 'value') values.set(id, await wholeValue(outcome, state.identity, deps.artifacts));
    }
    return resolveReferences(args, (id) => values.get(id));
  }
}

function callEnded({ move }: OpenStep, call: number, result: CallResult): CallEnded {
  const { outcome, startedAt, attempts, costMicroUsd, discovered, artifacts } = result;
  const ended: { -readonly [K in keyof CallEnded]: CallEnded[K] } = {
    kind: 'call_ended',
    step: move.step,
    call,
    outcome,
    attempts,
  };
  if (startedAt !== undefined) ended.startedAt = startedAt;
  if (costMicroUsd !== undefined) ended.costMicroUsd = costMicroUsd;
  if (discovered !== undefined) ended.discovered = discovered;
  if (artifacts !== undefined) ended.artifacts = artifacts;
  return ended;
}

/** A call that was begun before a crash, and that its join does not need any more. */
function mayHaveHappened(): Outcome {
  const message = 'It was started before a crash and may have happened; the join had what it needed without it.';
  return { kind: 'unknown', error: { code: 'outcome_unknown', message } };
}

/** The decision as it is carried out today: recorded calls may know their tools under older names. */
function withRenamedTools(decision: Decision, renamed: Readonly<Record<string, string>>): Decision {
  const rename = <T extends { readonly tool: string }>(call: T): T => {
    const tool = renamed[call.tool];
    return tool === undefined ? call : { ...call, tool };
  };
  if (decision.kind === 'call_tool') return rename(decision);
  return decision.kind === 'call_parallel' ? { ...decision, branches: decision.branches.map(rename) } : decision;
}

function isTaskCall(decision: Decision): decision is TaskCall {
  return decision.kind === 'spawn_task' || decision.kind === 'await_task';
}

/** A task call alone, in the shape of those that stand beside others. */
function asBranch({ kind }: TaskCall): Branch {
  return { tool: kind === 'spawn_task' ? SPAWN_TOOL : AWAIT_TOOL, args: null };
}

function joinIsMet(): PilotageError {
  return new PilotageError('cancelled', 'The join has what it needed.');
}
