/** The calls of the open step that this process has in flight: starts what may start, and collects what has landed. */
import type { Branch } from '../core/decision.ts';
import type { CallEnded } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { scopeKey } from '../core/identity.ts';
import type { Json } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import { referencesIn, resolveReferences } from '../core/reference.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import type { OpenStep, RunState } from '../view/run-state.ts';
import { type BranchGraph, branchGraph, planBranches } from './branches.ts';
import { type Call, type CallResult, type DispatchPorts, dispatch } from './dispatch.ts';
import type { DriverDeps } from './driver-deps.ts';
import { Flight } from './flight.ts';
import { wholeValue } from './heavy.ts';
import { setUp } from './set-up.ts';
import { SharedTimer } from './shared-timer.ts';

export interface CallPorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  /** Makes durable that a call begins. */
  begin(step: number, call: number): Promise<void>;
  tools(): AuthorisedTools;
}

export class Calls {
  readonly #ports: CallPorts;
  readonly #inFlight = new Map<number, Flight>();
  readonly #landed: CallEnded[] = [];
  /** Money set aside in the open step, by call; one that has been recorded counts as spent instead. */
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
      begin: ({ open, index }) => ports.begin(open.move.step, index),
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
  advance(open: OpenStep): Promise<readonly CallEnded[]> {
    const { step, decision } = open.move;
    // A call alone waits for nothing and nothing waits for it: the short cut changes no outcome.
    if (decision.kind === 'call_tool') return this.#flyAlone(open, decision);
    if (this.#graph?.step === step) return this.#turn(open, this.#graph.graph);
    const begin = (refused: readonly CallEnded[]): Promise<readonly CallEnded[]> => {
      if (refused.length > 0) return Promise.resolve(refused);
      this.#graph = { step, graph: branchGraph(decision) };
      this.#reserved.clear();
      return this.#turn(open, this.#graph.graph);
    };
    return setUp(open, this.#ports.tools(), this.#dispatchPorts).then(begin);
  }

  #turn(open: OpenStep, graph: BranchGraph): Promise<readonly CallEnded[]> {
    const { step } = open.move;
    // What landed while the last results were being written has ended, although the state does not say so yet.
    if (this.#landed.length > 0) return Promise.resolve(this.take());
    const plan = planBranches(graph, open.calls, this.#inFlight, (call, starting) =>
      this.#mayStart(graph, call, starting),
    );
    for (const call of plan.stop) this.#inFlight.get(call)?.abort(joinIsMet());
    if (plan.settle.length > 0) {
      const settled = plan.settle.map(({ call, outcome }): CallEnded => {
        const known = open.began.includes(call) ? mayHaveHappened() : outcome;
        return { kind: 'call_ended', step, call, outcome: known, attempts: 0 };
      });
      return Promise.resolve(settled);
    }
    for (const call of plan.start) this.#start(open, call, graph.branches[call] as Branch);
    return this.#landing();
  }

  async #landing(): Promise<readonly CallEnded[]> {
    while (this.#landed.length === 0 && this.#refusal === undefined && this.#inFlight.size > 0) await this.#change();
    if (this.#refusal !== undefined) throw this.#refusal.error;
    return this.take();
  }

  /** Waits until nothing is in flight; what landed can be taken. */
  async settle(): Promise<void> {
    while (this.#inFlight.size > 0) await this.#change();
  }

  /** What has landed and was not taken yet. */
  take(): readonly CallEnded[] {
    return this.#landed.splice(0);
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
    this.#fly(open, index, branch).then(
      (result) => {
        this.#inFlight.delete(index);
        this.#landed.push(callEnded(open, index, result));
        this.#wake?.();
      },
      (error: unknown) => {
        this.#inFlight.delete(index);
        this.#refusal = { error };
        this.#wake?.();
      },
    );
  }

  #flyAlone(open: OpenStep, branch: Branch): Promise<readonly CallEnded[]> {
    this.#reserved.clear();
    return this.#fly(open, 0, branch).then(
      (result) => {
        this.#inFlight.delete(0);
        return [callEnded(open, 0, result)];
      },
      (error: unknown) => {
        this.#inFlight.delete(0);
        throw error;
      },
    );
  }

  /**
   * In flight until the caller takes it out, in the moment in which it keeps the result: a call that is neither in flight
   * nor ended would be started again.
   * @throws the journal's refusal to let the call begin: it did not run.
   */
  #fly(open: OpenStep, index: number, branch: Branch): Promise<CallResult> {
    const { deps, state, tools } = this.#ports;
    const { step } = open.move;
    const { identity } = state;
    const { tool } = branch;
    const flight = new Flight(this.#timer, () =>
      deps.hub.tell(identity.run, { type: 'late', step, call: index, tool }),
    );
    this.#inFlight.set(index, flight);
    const idempotencyKey = `${this.#keyPrefix}/${step}.${index}`;
    const interrupted = open.began.includes(index);
    const call: Call = { open, index, branch, identity, idempotencyKey, tools: tools(), flight, interrupted };
    return dispatch(call, this.#dispatchPorts);
  }

  #reserve({ open: { calls }, index }: Call, costMicroUsd: number): boolean {
    const { limits, totals } = this.#ports.state;
    let room = (limits.costMicroUsd ?? Number.POSITIVE_INFINITY) - totals.costMicroUsd;
    for (const [other, reserved] of this.#reserved) if (calls[other] === null) room -= reserved;
    if (costMicroUsd > room) return false;
    this.#reserved.set(index, costMicroUsd);
    return true;
  }

  #resolveArgs({ open, branch: { args } }: Call): Json | Promise<Json> {
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

function joinIsMet(): PilotageError {
  return new PilotageError('cancelled', 'The join has what it needed.');
}
