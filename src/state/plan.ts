/** The plan that a run carries out, node by node, as people and programs look at it. Pure, and linear in the plan's size. */
import {
  type AtOnce,
  type Branch,
  branchesOf,
  branchId,
  type CallRecord,
  type Decision,
  dependenciesOf,
  type ErrorData,
  errorOf,
  type HeldBack,
  isPlan,
  type Json,
  type Outcome,
  openRoute,
  type Route,
  type Step,
} from '#core';
import { heldBack } from './held-back.ts';
import type { OpenPause, OpenStep, RunState } from './state.ts';

/**
 * `waiting`: for the nodes that it comes after. `ready`: it may start, or has; of tools that may be called twice the start is
 * not recorded. `running`: its start is recorded, or it waits for a task. `paused`: somebody has to answer.
 */
export type PlanNodeStatus =
  | 'waiting'
  | 'ready'
  | 'running'
  | 'paused'
  | 'done'
  | 'failed'
  | 'skipped'
  | 'cancelled'
  | 'unknown';

export interface PlanNodeView {
  readonly id: string;
  /** Its index among the calls of the step. */
  readonly call: number;
  readonly tool: string;
  /**
   * As they were given, or as somebody changed them; references are not resolved. Of a node with routes those of the one
   * that it goes; null as long as that is not known.
   */
  readonly args: Json;
  /** Ids of the nodes that it comes after, each once: by order, condition or reference. */
  readonly after: readonly string[];
  readonly when?: NonNullable<Branch['when']>;
  /** The ways to it, of which the first open one is gone. */
  readonly routes?: NonNullable<Branch['routes']>;
  readonly status: PlanNodeStatus;
  readonly error?: ErrorData;
}

export interface PlanView {
  /** Its id. */
  readonly plan: string;
  /** The index of the step that carries it out. */
  readonly step: number;
  /** The planner goes on with it. */
  readonly growing: boolean;
  /** Nodes that could run at once, and do not. */
  readonly held: readonly HeldBack[];
  /** In the order in which they were given. */
  readonly nodes: readonly PlanNodeView[];
}

/** The plan of the open step, else the last one that was carried out; `undefined` when there is none. */
export function planOf({ open, pauses, steps }: RunState): PlanView | undefined {
  const now = open === null ? undefined : planOfOpenStep(open, pauses);
  if (now !== undefined) return now;
  const last = steps.findLast((step) => isPlan(step.decision) && step.calls.length > 0);
  return last && planOfStep(last);
}

/** Of a step that has ended; `undefined` when it has carried out none. */
export function planOfStep({ decision, calls, index, atOnce }: Step): PlanView | undefined {
  // A plan that did not pass has no calls.
  if (calls.length === 0) return undefined;
  return view(decision, { step: index, calls, atOnce });
}

/** As it is made: nothing of it was begun. `undefined` for a decision that is no plan. */
export function planOfDecision(decision: Decision, step: number = 0, growing: boolean = false): PlanView | undefined {
  return view(decision, { step, growing });
}

function planOfOpenStep(open: OpenStep, pauses: readonly OpenPause[]): PlanView | undefined {
  const { move, calls, began, waits, edits, approvals } = open;
  const asked = pauses.flatMap(({ step, call }) => (step === move.step && call !== undefined ? [call] : []));
  const given = [...edits, ...approvals].flatMap(({ call, args }): [number, Json][] =>
    args === undefined ? [] : [[call, args]],
  );
  return view(move.decision, {
    step: move.step,
    calls,
    growing: move.growing === true,
    atOnce: move.atOnce,
    running: new Set([...began, ...waits].map(({ call }) => call)),
    paused: new Set(asked),
    args: new Map(given),
  });
}

/** What is known of the nodes beside the decision, each by its index. */
interface Progress {
  readonly step: number;
  readonly growing?: boolean;
  readonly atOnce?: AtOnce | undefined;
  readonly calls?: readonly (CallRecord | null)[];
  readonly running?: ReadonlySet<number>;
  readonly paused?: ReadonlySet<number>;
  readonly args?: ReadonlyMap<number, Json>;
}

function view(decision: Decision, progress: Progress): PlanView | undefined {
  if (!isPlan(decision)) return undefined;
  const branches = branchesOf(decision);
  const { step, growing = false, calls = [] } = progress;
  const ended = new Map(branches.map((branch, index) => [branchId(branch, index), calls[index]]));
  const nodes = branches.map((branch, call): PlanNodeView => {
    const after = dependenciesOf(branch);
    const outcome = calls[call]?.outcome;
    const error = outcome && errorOf(outcome);
    const way = wayOf(branch, after, ended);
    return {
      id: branchId(branch, call),
      call,
      tool: branch.tool,
      args: progress.args?.get(call) ?? (branch.routes === undefined ? branch.args : (way?.args ?? null)),
      after,
      ...(branch.when === undefined ? {} : { when: branch.when }),
      ...(branch.routes === undefined ? {} : { routes: branch.routes }),
      status: outcome === undefined ? openStatus(call, way !== undefined, progress) : ENDED[outcome.kind],
      ...(error === undefined ? {} : { error }),
    };
  });
  return { plan: decision.plan, step, growing, held: heldBack({ decision, atOnce: progress.atOnce }), nodes };
}

/** The way that the node goes; `undefined` before all that it needs has ended, and when it goes none. */
function wayOf(
  branch: Branch,
  needs: readonly string[],
  ended: ReadonlyMap<string, CallRecord | null | undefined>,
): Route | undefined {
  if (needs.some((id) => ended.get(id) == null)) return undefined;
  return openRoute(branch, (id) => ended.get(id)?.outcome);
}

function openStatus(call: number, isFree: boolean, { running, paused }: Progress): PlanNodeStatus {
  if (paused?.has(call) === true) return 'paused';
  if (running?.has(call) === true) return 'running';
  return isFree ? 'ready' : 'waiting';
}

const ENDED: Readonly<Record<Outcome['kind'], PlanNodeStatus>> = {
  value: 'done',
  verdict: 'done',
  error: 'failed',
  skipped: 'skipped',
  cancelled: 'cancelled',
  unknown: 'unknown',
};
