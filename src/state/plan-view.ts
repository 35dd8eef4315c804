/** The plan that a run carries out, node by node, as people and programs look at it. Pure, and linear in the size of the plan. */
import {
  type AtOnce,
  type Branch,
  branchesOf,
  branchId,
  type CallParallel,
  type CallRecord,
  type Decision,
  defined,
  dependenciesOf,
  type ErrorData,
  errorOf,
  type HeldBack,
  isPlan,
  type Json,
  linkBranches,
  MAX_AT_ONCE,
  type Outcome,
  openRoute,
  orderOf,
  type Route,
  type Step,
} from '#core';
import { givenArgs, type OpenPause, type OpenStep, type RunState } from './state.ts';

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
  const { move, calls, began, waits, away } = open;
  const asked = pauses.flatMap(({ step, call }) => (step === move.step && call !== undefined ? [call] : []));
  return view(move.decision, {
    step: move.step,
    calls,
    growing: move.growing === true,
    atOnce: move.atOnce,
    running: new Set([...began, ...waits, ...away].map(({ call }) => call)),
    paused: new Set(asked),
    args: givenArgs(open),
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
    const given = progress.args?.get(call);
    return {
      id: branchId(branch, call),
      call,
      tool: branch.tool,
      args: given !== undefined ? given : branch.routes === undefined ? branch.args : (way?.args ?? null),
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

// Which calls of a step could run at once but are held back, by its decision and by the limits that were recorded
// with it.

/** How many calls of the step run at once. */
export function atOnceOf({ concurrency = MAX_AT_ONCE }: Pick<CallParallel, 'concurrency'>, atOnce?: AtOnce): number {
  return Math.min(concurrency, atOnce?.calls ?? MAX_AT_ONCE, MAX_AT_ONCE);
}

/** The limit for all calls first, if it holds any back, then those of tools in the order of the branches. */
export function heldBack({
  decision,
  atOnce,
}: {
  readonly decision: Decision;
  readonly atOnce?: AtOnce | undefined;
}): readonly HeldBack[] {
  if (decision.kind !== 'call_parallel' || decision.branches.length <= 1) return NONE;
  const { branches, concurrency } = decision;
  const limit = atOnceOf(decision, atOnce);
  const tools = Object.entries(atOnce?.tools ?? {});
  // With a concurrency of 1 the planner wants an order: no call counts as held back.
  if (concurrency === 1) return NONE;
  if (branches.length <= limit && tools.length === 0) return NONE;
  const widths = widthsOf(branches);
  const held = widths.all > limit ? [{ by: whoLimits(decision, atOnce, limit), limit, calls: widths.all }] : [];
  const ofTools = tools.flatMap(([tool, most]): HeldBack[] => {
    const calls = widths.tools.get(tool) ?? 0;
    return calls > most ? [{ by: 'tool', tool, limit: most, calls }] : [];
  });
  return [...held, ...ofTools];
}

const NONE: readonly HeldBack[] = Object.freeze([]);

function whoLimits(
  { concurrency }: Extract<Decision, { kind: 'call_parallel' }>,
  atOnce: AtOnce | undefined,
  limit: number,
): HeldBack['by'] {
  if (atOnce?.calls === limit) return atOnce.by ?? 'runtime';
  return concurrency === limit && concurrency < MAX_AT_ONCE ? 'decision' : 'cap';
}

/**
 * The most branches that could run at once, in all and for each tool: branches with equally many before them do not wait for each
 * other.
 */
function widthsOf(branches: readonly Branch[]): { readonly all: number; readonly tools: ReadonlyMap<string, number> } {
  const { needs } = linkBranches(branches);
  const levels = new Array<number>(branches.length).fill(0);
  const counts: { all: number; readonly tools: Map<string, number> }[] = [];
  const most = { all: 0, tools: new Map<string, number>() };
  for (const call of orderOf(needs, 0)) {
    const level = (needs[call] ?? []).reduce((deepest, need) => Math.max(deepest, (levels[need] ?? 0) + 1), 0);
    levels[call] = level;
    counts[level] ??= { all: 0, tools: new Map() };
    const count = counts[level];
    const { tool } = branches[call] as Branch;
    const ofTool = (count.tools.get(tool) ?? 0) + 1;
    count.all += 1;
    count.tools.set(tool, ofTool);
    most.all = Math.max(most.all, count.all);
    most.tools.set(tool, Math.max(most.tools.get(tool) ?? 0, ofTool));
  }
  return most;
}
