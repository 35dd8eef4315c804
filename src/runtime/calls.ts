/** The calls of the open step that this process has in flight: starts what may start, and collects what has landed. */
import { branchesOf } from '../core/decision.ts';
import type { CallEnded } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { scopeKey } from '../core/identity.ts';
import type { Json } from '../core/json.ts';
import { referencesIn, resolveReferences } from '../core/reference.ts';
import type { AuthorisedTools } from '../tools/catalogue.ts';
import type { OpenStep, RunState } from '../view/run-state.ts';
import { type BranchGraph, branchGraph, planBranches } from './branches.ts';
import { type CallResult, dispatch } from './dispatch.ts';
import type { DriverDeps } from './driver-deps.ts';
import { Flight } from './flight.ts';
import { wholeValue } from './heavy.ts';
import { setUp } from './set-up.ts';

export interface CallPorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  /** Makes durable that a call begins. */
  begin(step: number, call: number): Promise<void>;
  tools(): AuthorisedTools;
}

interface InFlight {
  readonly flight: Flight;
  readonly tool: string;
}

export class Calls {
  readonly #ports: CallPorts;
  readonly #inFlight = new Map<number, InFlight>();
  readonly #landed: CallEnded[] = [];
  /** Money set aside in the open step, by call; one that has been recorded counts as spent instead. */
  readonly #reserved = new Map<number, number>();
  #graph: { readonly step: number; readonly graph: BranchGraph } | undefined;
  #wake: (() => void) | undefined;
  #refusal: { readonly error: unknown } | undefined;
  readonly #keyPrefix: string;

  constructor(ports: CallPorts) {
    this.#ports = ports;
    const { identity } = ports.state;
    this.#keyPrefix = `${scopeKey(identity)}/${encodeURIComponent(identity.run)}`;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  abort(reason: unknown): void {
    for (const { flight } of this.#inFlight.values()) flight.abort(reason);
  }

  /**
   * One turn of the executor: what is refused or will never run, or, when there is no such thing, what lands next.
   * @throws the journal's refusal to let a call begin.
   */
  async advance(open: OpenStep): Promise<readonly CallEnded[]> {
    const { step, decision } = open.move;
    if (this.#graph?.step !== step) {
      const refused = decision.kind === 'call_tool' ? [] : await setUp(open, this.#ports.tools());
      if (refused.length > 0) return refused;
      this.#graph = { step, graph: branchGraph(decision) };
      this.#reserved.clear();
    }
    const { graph } = this.#graph;
    const plan = planBranches(graph, open.calls, this.#inFlight, (call) => this.#mayStart(graph, call));
    for (const call of plan.stop) this.#inFlight.get(call)?.flight.abort(joinIsMet());
    if (plan.settle.length > 0) {
      return plan.settle.map(({ call, outcome }) => ({ kind: 'call_ended', step, call, outcome, attempts: 0 }));
    }
    for (const call of plan.start) this.#start(open, call);
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

  #mayStart(graph: BranchGraph, call: number): boolean {
    const tool = graph.branches[call]?.tool ?? '';
    const limit = this.#ports.tools().ready(tool)?.concurrency ?? Number.POSITIVE_INFINITY;
    if (limit === Number.POSITIVE_INFINITY) return true;
    return [...this.#inFlight.values()].filter((running) => running.tool === tool).length < limit;
  }

  #start(open: OpenStep, call: number): void {
    const { deps, state, tools, begin } = this.#ports;
    const branch = branchesOf(open.move.decision)[call];
    if (branch === undefined) return;
    const { step } = open.move;
    const { identity } = state;
    const { tool } = branch;
    const flight = new Flight(deps.clock, () => deps.hub.tell(identity.run, { type: 'late', step, call, tool }));
    this.#inFlight.set(call, { flight, tool });
    const job = {
      branch,
      identity,
      idempotencyKey: `${this.#keyPrefix}/${step}.${call}`,
      tools: tools(),
      flight,
      interrupted: open.began.includes(call),
    };
    const ports = {
      clock: deps.clock,
      artifacts: deps.artifacts,
      begin: () => begin(step, call),
      reserve: (costMicroUsd: number) => this.#reserve(open, call, costMicroUsd),
      resolveArgs: (args: Json) => (open.calls.length === 1 ? args : this.#resolveArgs(open, args)),
    };
    dispatch(job, ports).then(
      (result) => this.#land(step, call, result),
      // Only the journal refuses here: the call could not be begun, so it did not run.
      (error: unknown) => {
        this.#inFlight.delete(call);
        this.#refusal = { error };
        this.#wake?.();
      },
    );
  }

  #land(step: number, call: number, result: CallResult): void {
    this.#inFlight.delete(call);
    this.#landed.push({ kind: 'call_ended', step, call, ...result });
    this.#wake?.();
  }

  #reserve({ calls }: OpenStep, call: number, costMicroUsd: number): boolean {
    const { limits, totals } = this.#ports.state;
    let room = (limits.costMicroUsd ?? Number.POSITIVE_INFINITY) - totals.costMicroUsd;
    for (const [other, reserved] of this.#reserved) if (calls[other] === null) room -= reserved;
    if (costMicroUsd > room) return false;
    this.#reserved.set(call, costMicroUsd);
    return true;
  }

  async #resolveArgs({ calls }: OpenStep, args: Json): Promise<Json> {
    const ids = referencesIn(args);
    if (ids.size === 0) return args;
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

function joinIsMet(): PilotageError {
  return new PilotageError('cancelled', 'The join has what it needed.');
}
