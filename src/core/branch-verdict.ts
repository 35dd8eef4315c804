/**
 * The verdict on a branch, from the outcomes of the branches that it waits for; and the verdict on a parallel call, when it needs nothing
 * more. This is the one definition: the schedule that starts branches and the question whether a run is blocked both ask it.
 */
import type { BranchGraph } from './branch-graph.ts';
import { FINISH_TOOL } from './builtin-tools.ts';
import type { Branch, CallParallel, Join } from './decision.ts';
import { jsonEquals } from './json.ts';
import { failureKindOf, type Outcome } from './outcome.ts';
import { blockOf, openRoute, waysOf } from './routes.ts';
import { isPassedOver } from './skip-reason.ts';

/** The branch may start; or the index of a branch that it waits for; or its outcome, because it will never run. */
export type BranchVerdict = 'ready' | number | Outcome;

/** The outcome of a branch by its index; `undefined` when it has not ended. */
export type EndOf = (call: number) => Outcome | undefined;

/** Results that were found before. They stay valid, as an outcome never changes; the cache only saves time. */
export interface JudgedBefore {
  /** For each branch, how many of its needs, from the first one on, do not block it any more. */
  readonly met: number[];
  /** For branches without a value: whether they were skipped on purpose. */
  readonly passed: Map<number, boolean>;
  /** Skipped branches whose predecessors have all ended. */
  readonly clear: Set<number>;
}

/** @param size the number of branches. */
export function nothingJudged(size: number = 0): JudgedBefore {
  return { met: new Array<number>(size).fill(0), passed: new Map(), clear: new Set() };
}

/** When several needs failed, the outcome names the first of them in the order of the needs, not in the order of time. */
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

/** The first open route is taken, which is known only when every branch that any route needs has ended. */
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

/** Whether the branch failed, or was skipped because of a branch that failed. */
function isLost(call: number, endOf: EndOf, { passed }: JudgedBefore): boolean {
  return endOf(call)?.kind !== 'value' && !isPassedOver(call, endOf, passed);
}

/**
 * Branches before a skipped branch that have not ended: a branch that comes after a step also comes after everything that the step
 * waited for, even if the step was skipped earlier.
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

/** Why a parallel call needs nothing more, so that its other branches are stopped. */
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

  /** Records the end of a branch. It must be called once for each branch. */
  note(branch: Branch, outcome: Outcome): void {
    if (isFailure(outcome, branch)) this.#hasFailed = true;
    if (outcome.kind !== 'value') return;
    this.#values += 1;
    if (this.#isPlan && branch.tool === FINISH_TOOL) this.#isFinished = true;
  }

  /**
   * Whether the call needs nothing more: enough branches have succeeded for the join, the plan has reached its end, or a failure
   * stops the others.
   */
  get over(): CallOver | undefined {
    if (this.#isFinished) return 'plan_ended';
    if (this.#values >= this.#winners) return 'join_met';
    return this.#isFailFast && this.#hasFailed ? 'failed_fast' : undefined;
  }
}

/** Whether this outcome stops the other branches of a call that fails fast. */
function isFailure(outcome: Outcome, branch: Branch): boolean {
  const kind = failureKindOf(outcome);
  return kind !== undefined && branch.tolerates?.includes(kind) !== true;
}

/** How many values a join needs; `undefined` when it needs all of them. */
export function winnersOf(join: Join | undefined): number | undefined {
  if (join?.kind === 'first_success') return 1;
  return join?.kind === 'n' ? join.n : undefined;
}
