/** The plan that a run carries out, node by node, as people and programs look at it. Pure, and linear in the plan's size. */
import {
  type AtOnce,
  type Branch,
  branchesOf,
  branchId,
  type CallRecord,
  type Decision,
  defined,
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
 * `waiting`: the node waits for the nodes that it comes after. `ready`: the node may start, or has started; the start of a tool that may be
 * called twice is not recorded. `running`: the start is recorded, or the node waits for a task. `paused`: somebody must answer.
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
  /** The index of the node among the calls of the step. */
  readonly call: number;
  readonly tool: string;
  /**
   * The arguments as they were given, or as somebody changed them; references are not resolved. A node with routes has the
   * arguments of the route that was taken; null as long as that is not known.
   */
  readonly args: Json;
  /** Ids of the nodes that this node comes after, each once: by order, condition or reference. */
  readonly after: readonly string[];
  readonly when?: NonNullable<Branch['when']>;
  /** The routes to the node, of which the first open one is taken. */
  readonly routes?: NonNullable<Branch['routes']>;
  readonly status: PlanNodeStatus;
  readonly error?: ErrorData;
}

export interface PlanView {
  /** The id of the plan. */
  readonly plan: string;
  /** The index of the step that carries the plan out. */
  readonly step: number;
  /** True: the planner is still adding nodes. */
  readonly growing: boolean;
  /** Nodes that could run at once but are held back. */
  readonly held: readonly HeldBack[];
  /** In the order in which they were given. */
  readonly nodes: readonly PlanNodeView[];
}

/** The plan of the open step, else the last plan that was carried out; `undefined` for a run without a plan. */
export function planOf({ open, pauses, steps }: RunState): PlanView | undefined {
  const now = open === null ? undefined : planOfOpenStep(open, pauses);
  if (now !== undefined) return now;
  const last = steps.findLast((step) => isPlan(step.decision) && step.calls.length > 0);
  return last && planOfStep(last);
}

/** The plan of a step that has ended; `undefined` when the step carried out no plan. */
export function planOfStep({ decision, calls, index, atOnce }: Step): PlanView | undefined {
  // A plan that did not pass has no calls.
  if (calls.length === 0) return undefined;
  return view(decision, { step: index, calls, atOnce });
}

/** The plan of a decision, with no node begun; `undefined` for a decision that is not a plan. */
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
      ...defined({ when: branch.when, routes: branch.routes }),
      status: outcome === undefined ? openStatus(call, way !== undefined, progress) : ENDED[outcome.kind],
      ...defined({ error }),
    };
  });
  return { plan: decision.plan, step, growing, held: heldBack({ decision, atOnce: progress.atOnce }), nodes };
}

/** The route that the node takes; `undefined` before everything that it needs has ended, and when no route is open. */
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
