/**
 * What becomes of a branch, by how those have ended that it waits for, and when nothing more is wanted of a parallel call. This is
 * the one definition: the schedule that starts branches and the question whether a run is blocked both ask it.
 */
import type { BranchGraph } from './branch-graph.ts';
import { FINISH_TOOL } from './builtin-tools.ts';
import type { Branch, CallParallel, Join } from './decision.ts';
import { jsonEquals } from './json.ts';
import { failureKindOf, type Outcome } from './outcome.ts';
import { blockOf, openRoute, waysOf } from './routes.ts';
import { isPassedOver } from './skip-reason.ts';

/** It may start; or the index of a branch that it waits for; or its outcome, because it will never run. */
export type BranchVerdict = 'ready' | number | Outcome;

/** By the index of a branch; `undefined`: it has not ended. */
export type EndOf = (call: number) => Outcome | undefined;

/** What was found out before, and stays so: an outcome never changes. Only saves time. */
export interface JudgedBefore {
  /** By the branch: how many of its needs, from the first one on, do not hold it up any more. */
  readonly met: number[];
  /** Of branches that have no value: whether they were passed over. */
  readonly passed: Map<number, boolean>;
  /** Skipped branches before which all has ended. */
  readonly clear: Set<number>;
}

/** @param size so many branches there are. */
export function nothingJudged(size: number = 0): JudgedBefore {
  return { met: new Array<number>(size).fill(0), passed: new Map(), clear: new Set() };
}

/** Of needs that failed, the outcome names the first one in the order of the needs, whichever failed first. */
export function judgeBranch(graph: BranchGraph, call: number, endOf: EndOf, before: JudgedBefore): BranchVerdict {
  const branch = graph.branch(call);
  if (branch.routes !== undefined) return judgeRoutes(graph, call, endOf, before);
  const needs = graph.needs(call);
  for (let met = before.met[call] ?? 0; met < needs.length; met += 1) {
    const need = needs[met] as number;
    const outcome = endOf(need);
    if (outcome === undefined) return need;
    if (outcome.kind !== 'value') {
      if (!graph.mayBePassed(call, need) || isLost(need, endOf, before)) {
        return skipped(`The branch needs branch ${need}, which did not end with a value.`, need);
      }
      const open = openBefore(graph, need, endOf, before);
      if (open !== undefined) return open;
    }
    before.met[call] = met + 1;
  }
  const { when } = branch;
  if (when === undefined) return 'ready';
  const route = graph.indexOf(when.branch) as number;
  const outcome = endOf(route);
  return outcome?.kind === 'value' && jsonEquals(outcome.value, when.equals)
    ? 'ready'
    : skipped(`The condition on branch ${route} does not hold.`, route);
}

/** The first route that is open is taken, and which that is is known only when all that any of them needs has ended. */
function judgeRoutes(graph: BranchGraph, call: number, endOf: EndOf, before: JudgedBefore): BranchVerdict {
  const needs = graph.needs(call);
  for (let met = before.met[call] ?? 0; met < needs.length; met += 1) {
    const need = needs[met] as number;
    if (endOf(need) === undefined) return need;
    before.met[call] = met + 1;
  }
  const branch = graph.branch(call);
  const outcomeOf = (id: string): Outcome | undefined => endOf(graph.indexOf(id) as number);
  if (openRoute(branch, outcomeOf) !== undefined) return 'ready';
  const failed = needs.find((need) => isLost(need, endOf, before));
  if (failed !== undefined)
    return skipped(`No route of the branch is open; branch ${failed} did not end with a value.`, failed);
  const [first] = waysOf(branch);
  const passed = graph.indexOf((first && blockOf(first, outcomeOf)) ?? '') ?? 0;
  return skipped(`No route of the branch is open; branch ${passed} led elsewhere, or was skipped.`, passed);
}

/** It failed, or was skipped because of one that did. */
function isLost(call: number, endOf: EndOf, { passed }: JudgedBefore): boolean {
  return endOf(call)?.kind !== 'value' && !isPassedOver(call, endOf, passed);
}

/**
 * What has not ended before a branch that was passed over: what stands behind a step stands behind all that the step waited for,
 * though it was passed over before that.
 */
function openBefore(graph: BranchGraph, skip: number, endOf: EndOf, { clear }: JudgedBefore): number | undefined {
  const seen = new Set<number>();
  const left = [skip];
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    if (seen.has(at) || clear.has(at)) continue;
    const outcome = endOf(at);
    if (outcome === undefined) return at;
    seen.add(at);
    // What has run did so when all before it had ended.
    if (outcome.kind === 'skipped') for (const need of graph.needs(at)) left.push(need);
  }
  for (const each of seen) clear.add(each);
  return undefined;
}

function skipped(message: string, branch: number): Outcome {
  return { kind: 'skipped', error: { code: 'branch_not_started', message, data: { branch } } };
}

/** Why nothing more is wanted of a parallel call: the others are stopped. */
export type CallOver = 'plan_ended' | 'join_met' | 'failed_fast';

/** Counts how the branches of a parallel call end. */
export class BranchEnds {
  readonly #isPlan: boolean;
  readonly #isFailFast: boolean;
  readonly #winners: number;
  #values = 0;
  #isFinished = false;
  #hasFailed = false;

  constructor({ join, plan, failFast }: Pick<CallParallel, 'join' | 'plan' | 'failFast'>) {
    this.#isPlan = plan !== undefined;
    this.#isFailFast = failFast === true;
    this.#winners = winnersOf(join) ?? Number.POSITIVE_INFINITY;
  }

  /** To be told of each branch once. */
  note(branch: Branch, outcome: Outcome): void {
    if (isFailure(outcome, branch)) this.#hasFailed = true;
    if (outcome.kind !== 'value') return;
    this.#values += 1;
    if (this.#isPlan && branch.tool === FINISH_TOOL) this.#isFinished = true;
  }

  /** Enough branches have ended well for what the join asks, the plan has its end, or one has failed that stops the others. */
  get over(): CallOver | undefined {
    if (this.#isFinished) return 'plan_ended';
    if (this.#values >= this.#winners) return 'join_met';
    return this.#isFailFast && this.#hasFailed ? 'failed_fast' : undefined;
  }
}

/** What stops the other branches of a call that fails fast. */
function isFailure(outcome: Outcome, branch: Branch): boolean {
  const kind = failureKindOf(outcome);
  return kind !== undefined && branch.tolerates?.includes(kind) !== true;
}

/** After how many values a join wants no more; `undefined`: it wants them all. */
export function winnersOf(join: Join | undefined): number | undefined {
  if (join?.kind === 'first_success') return 1;
  return join?.kind === 'n' ? join.n : undefined;
}
