/** Graphs that are put together by hand, and their planner driven without a runtime. */
import {
  type Branch,
  branchesOf,
  branchId,
  type CallParallel,
  type Decision,
  type Json,
  type Move,
  needsOf,
  type Outcome,
  openRoute,
  type Planner,
  resolveReferences,
  type Step,
  validateDecision,
  waysOf,
} from '#core';
import type { FlowGraph, GraphEdge, GraphNode, NodeKind } from '#flow';
import { runView } from '#testing';
import { ANY, make } from '../kit/tools.ts';

export interface Drawn {
  readonly entry: string;
  readonly exits: readonly string[];
  /** `a > b`, or `a < b` for a way from a back to b. */
  readonly edges: readonly string[];
  readonly routers?: readonly string[];
  /** By the join its parents; their edges are implied. */
  readonly joins?: Readonly<Record<string, readonly string[]>>;
}

export function drawn({ entry, exits, edges: given, routers = [], joins = {} }: Drawn): FlowGraph {
  const implied = Object.entries(joins).flatMap(([name, parents]) => parents.map((parent) => `${parent} > ${name}`));
  const edges = [...new Set([...given, ...implied])].map((text): GraphEdge => {
    const [from = '', arrow, to = ''] = text.split(' ');
    return { from, to, back: arrow === '<' };
  });
  const names = [...new Set([entry, ...edges.flatMap(({ from, to }) => [from, to])])];
  const nodes = new Map<string, GraphNode & { parents?: GraphNode[] }>();
  for (const name of names) {
    const kind: NodeKind = routers.includes(name) ? 'router' : name in joins ? 'join' : 'node';
    nodes.set(name, {
      name,
      kind,
      tool: make(name, () => null, { inputSchema: ANY }),
      effect: 'pure',
      allowCycle: true,
      ...(kind === 'join' ? { parents: [] } : {}),
    });
  }
  for (const [name, parents] of Object.entries(joins)) {
    for (const parent of parents) nodes.get(name)?.parents?.push(nodes.get(parent) as GraphNode);
  }
  return { name: 'drawn', nodes, edges, entry, exits, budget: {} };
}

export interface Ran {
  readonly node: string;
  readonly args: Json;
}

export interface Played {
  /** In the order in which they ran. */
  readonly ran: readonly Ran[];
  readonly steps: readonly Step[];
  readonly end: Decision;
}

export interface PlayOptions {
  readonly input?: Json;
  /** What a node comes to. */
  readonly run: (node: string, args: Json) => Json | Outcome;
  /** Which of so many branches that may run is next. Default the first. */
  readonly pick?: (count: number) => number;
  /** After how many calls of a step the goal is changed. Default never. */
  readonly cut?: (step: number) => number;
  /** Branches that somebody takes out. */
  readonly removed?: (id: string) => boolean;
}

const never = new AbortController().signal;

/** Asks the planner for one step after the other, and carries them out as the executor does. */
export function play(planner: Planner, options: PlayOptions): Played {
  const { input = null } = options;
  const steps: Step[] = [];
  const ran: Ran[] = [];
  for (;;) {
    const view = runView({ steps, context: { args: input } });
    const move = planner.next(view, never) as Move;
    const decision = validateDecision(move.decision);
    // The same view, the same decision.
    if (JSON.stringify(move) !== JSON.stringify(planner.next(view, never)))
      throw new Error('It decides anew each time.');
    if (decision.kind !== 'call_parallel') return { ran, steps, end: decision };
    steps.push({ ...move, ...carryOut(decision, steps, ran, options) });
    if (steps.length > 500) throw new Error('It comes to no end.');
  }
}

function carryOut(decision: CallParallel, before: readonly Step[], ran: Ran[], options: PlayOptions): Step {
  const { branches } = decision;
  const index = before.length;
  const outcomes = new Map<string, Outcome>();
  const ids = new Map(branches.map((branch, call) => [branchId(branch, call), call]));
  const outcomeOf = (id: string): Outcome | undefined => outcomes.get(id);
  const left = options.cut?.(index) ?? Number.POSITIVE_INFINITY;
  let calls = 0;
  for (;;) {
    settle(branches, outcomes, ids);
    const ready = branches.filter((branch, call) => !outcomes.has(branchId(branch, call)) && isReady(branch, outcomes));
    if (ready.length === 0 || calls >= left) break;
    calls += 1;
    const branch = ready[options.pick?.(ready.length) ?? 0] as Branch;
    const route = openRoute(branch, outcomeOf);
    if (route === undefined) throw new Error('No way is open.');
    const id = branch.id as string;
    if (options.removed?.(id) === true) {
      outcomes.set(id, { kind: 'skipped', error: { code: 'node_removed', message: 'Somebody took it out.' } });
      continue;
    }
    const args = resolveReferences(route.args, ({ $from, step }) => earlierValue($from, step, outcomes, before));
    ran.push({ node: branch.tool, args });
    const given = options.run(branch.tool, args);
    outcomes.set(id, isOutcome(given) ? given : { kind: 'value', value: given });
  }
  const cut: Outcome = { kind: 'skipped', error: { code: 'plan_redirected', message: 'The goal was changed.' } };
  const records = branches.map((branch, call) => ({
    outcome: outcomes.get(branchId(branch, call)) ?? cut,
    endedAt: 1,
    attempts: 1,
    seq: index * 1_000 + call,
  }));
  return JSON.parse(JSON.stringify({ index, decision, calls: records, startedAt: 0, endedAt: 1 })) as Step;
}

/** Skips what will not run, with all that follows. */
function settle(branches: readonly Branch[], outcomes: Map<string, Outcome>, ids: ReadonlyMap<string, number>): void {
  for (let changed = true; changed; ) {
    changed = false;
    for (const [call, branch] of branches.entries()) {
      const id = branchId(branch, call);
      if (outcomes.has(id) || !allEnded(branch, outcomes)) continue;
      if (openRoute(branch, (need) => outcomes.get(need)) !== undefined) continue;
      const [need] = waysOf(branch).flatMap((way) => [...needsOf(way)]);
      const data = need === undefined ? {} : { branch: ids.get(need) ?? -1 };
      outcomes.set(id, { kind: 'skipped', error: { code: 'branch_not_started', message: 'Passed over.', data } });
      changed = true;
    }
  }
}

function allEnded(branch: Branch, outcomes: ReadonlyMap<string, Outcome>): boolean {
  return waysOf(branch).every((way) => [...needsOf(way)].every((id) => outcomes.has(id)));
}

function isReady(branch: Branch, outcomes: ReadonlyMap<string, Outcome>): boolean {
  return allEnded(branch, outcomes);
}

function earlierValue(
  id: string,
  step: number | undefined,
  outcomes: ReadonlyMap<string, Outcome>,
  before: readonly Step[],
): Json | undefined {
  const outcome = step === undefined ? outcomes.get(id) : earlierOutcome(before[step], id);
  return outcome?.kind === 'value' ? outcome.value : undefined;
}

function earlierOutcome(step: Step | undefined, id: string): Outcome | undefined {
  if (step === undefined) return undefined;
  const call = branchesOf(step.decision).findIndex((branch, index) => branchId(branch, index) === id);
  return step.calls[call]?.outcome;
}

function isOutcome(given: Json | Outcome): given is Outcome {
  return typeof given === 'object' && given !== null && 'kind' in given && 'error' in given;
}
