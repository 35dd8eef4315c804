/** The graph of the branches of a parallel call: which branch waits for which, in what order they may run, and what becomes of each. */
import { type Branch, branchId, type CallParallel, type Join, type Route } from './decision.ts';
import { PilotageError } from './errors.ts';
import { jsonEquals } from './json.ts';
import { failureKindOf, isPassedOver, type Outcome } from './outcome.ts';
import { referencesIn } from './reference.ts';
import { FINISH_TOOL } from './tool.ts';

// The ways to a branch: what each needs, and which one is open.

/** A route, or a branch that has but one. */
type Way = Route & Pick<Branch, 'behind'>;

/** The routes of a branch; of one without routes its only way. */
export function waysOf(branch: Branch): readonly Way[] {
  return branch.routes ?? [branch];
}

/** The ids of the branches that a way needs, each once. */
export function needsOf(way: Way): ReadonlySet<string> {
  const ids = strictNeedsOf(way);
  for (const id of way.behind ?? []) ids.add(id);
  return ids;
}

/** Ids of the branches that must have a value. */
function strictNeedsOf({ after, when, args }: Route): Set<string> {
  const ids = new Set(after);
  if (when !== undefined) ids.add(when.branch);
  for (const id of referencesIn(args)) ids.add(id);
  return ids;
}

/** By the id of a branch. `undefined`: it has not ended. */
type OutcomeOf = (id: string) => Outcome | undefined;

/** The branch because of which a way is closed; `undefined`: it is open, as far as values go. */
function blockOf(route: Route, outcomeOf: OutcomeOf): string | undefined {
  for (const id of strictNeedsOf(route)) if (outcomeOf(id)?.kind !== 'value') return id;
  const { when } = route;
  if (when === undefined) return undefined;
  const outcome = outcomeOf(when.branch);
  return outcome?.kind === 'value' && jsonEquals(outcome.value, when.equals) ? undefined : when.branch;
}

/** The way that a branch goes when all that it needs has ended: the first open one. */
export function openRoute(branch: Branch, outcomeOf: OutcomeOf): Route | undefined {
  return waysOf(branch).find((route) => blockOf(route, outcomeOf) === undefined);
}

export interface BranchLinks {
  /** Indices of branches, by the names that other branches use for them. */
  readonly indexById: Map<string, number>;
  /** For each branch, the indices of the branches that it waits for, each once. */
  readonly needs: (readonly number[])[];
}

/**
 * Adds `branches` behind those that are linked already, in place.
 * @throws PilotageError `invalid_decision` when two branches have the same id, and when a branch refers to an unknown id.
 */
export function linkBranches(
  branches: readonly Branch[],
  links: BranchLinks = { indexById: new Map(), needs: [] },
): BranchLinks {
  const { indexById, needs } = links;
  const first = needs.length;
  for (const [at, branch] of branches.entries()) {
    const id = branchId(branch, first + at);
    if (indexById.has(id)) throw invalid(`two branches have the id ${JSON.stringify(id)}`);
    indexById.set(id, first + at);
  }
  for (const [at, branch] of branches.entries()) {
    const indices = dependenciesOf(branch).map((id) => {
      const found = indexById.get(id);
      if (found !== undefined) return found;
      throw invalid(`branches[${first + at}] refers to the branch ${JSON.stringify(id)}, which does not exist`);
    });
    needs.push(indices);
  }
  return links;
}

/** The ids of the branches that must have ended before this branch can start, over all its routes. */
export function dependenciesOf(branch: Branch): string[] {
  if (branch.routes === undefined) return [...needsOf(branch)];
  return [...new Set(branch.routes.flatMap((route) => [...needsOf(route)]))];
}

/** For each branch, the branches that wait for it. */
export function dependentsOf(needs: readonly (readonly number[])[]): number[][] {
  const dependents = needs.map((): number[] => []);
  for (const [index, list] of needs.entries()) for (const need of list) dependents[need]?.push(index);
  return dependents;
}

const NONE: ReadonlySet<number> = new Set();

/** Branches by their index, with the branches that each waits for. Branches never change; more may be added at the end. */
export class BranchGraph {
  readonly #branches: Branch[] = [];
  readonly #links: BranchLinks = { indexById: new Map(), needs: [] };
  readonly #dependents: number[][] = [];
  readonly #passable: ReadonlySet<number>[] = [];

  /** @throws PilotageError `invalid_decision` as `linkBranches`. */
  constructor(branches: readonly Branch[] = []) {
    this.grow(branches);
  }

  get size(): number {
    return this.#branches.length;
  }

  /** @throws PilotageError `invalid_decision` as `linkBranches`. */
  grow(branches: readonly Branch[]): void {
    const first = this.size;
    linkBranches(branches, this.#links);
    for (const branch of branches) {
      const { behind } = branch;
      this.#branches.push(branch);
      this.#dependents.push([]);
      this.#passable.push(behind === undefined ? NONE : new Set(behind.map((id) => this.indexOf(id) as number)));
    }
    for (let call = first; call < this.size; call += 1) {
      for (const need of this.needs(call)) this.#dependents[need]?.push(call);
    }
  }

  branch(call: number): Branch {
    return this.#branches[call] as Branch;
  }

  indexOf(id: string): number | undefined {
    return this.#links.indexById.get(id);
  }

  /** The branches that this branch waits for, each once, in the order in which it names them. */
  needs(call: number): readonly number[] {
    return this.#links.needs[call] as readonly number[];
  }

  /** The branches that wait for this branch. */
  dependents(call: number): readonly number[] {
    return this.#dependents[call] as readonly number[];
  }

  /** Whether the branch runs also when this need was skipped. */
  mayBePassed(call: number, need: number): boolean {
    return this.#passable[call]?.has(need) === true;
  }

  /** The branches from `first` on, each after its needs. */
  orderFrom(first: number): readonly number[] {
    return orderOf(this.#links.needs, first);
  }
}

/**
 * The branches from `first` on, each after the branches that it waits for. No branch before `first` waits for a later one.
 * @returns indices of branches; those in a cycle, and what waits for them, are left out.
 */
export function orderOf(needs: readonly (readonly number[])[], first: number = 0): number[] {
  if (first === 0) return topologicalOrder(dependentsOf(needs));
  const inside = needs.slice(first).map((list) => list.flatMap((need) => (need < first ? [] : [need - first])));
  return topologicalOrder(dependentsOf(inside)).map((index) => first + index);
}

/**
 * Kahn's algorithm over the numbers from 0: each number comes after all that lead to it. Numbers in a cycle, and numbers that a cycle
 * leads to, are left out. Numbers that become free together stay in the order in which they are listed.
 * @param leadsTo for each number, the numbers that come after it.
 */
export function topologicalOrder(leadsTo: readonly (readonly number[])[]): number[] {
  const open = leadsTo.map(() => 0);
  for (const targets of leadsTo) for (const target of targets) open[target] = (open[target] ?? 0) + 1;
  const order = open.flatMap((count, index) => (count === 0 ? [index] : []));
  for (const index of order) {
    for (const target of leadsTo[index] ?? []) {
      const left = (open[target] ?? 0) - 1;
      open[target] = left;
      if (left === 0) order.push(target);
    }
  }
  return order;
}

function invalid(what: string): PilotageError {
  return new PilotageError('invalid_decision', `The planner's decision is invalid: ${what}.`);
}

// The verdict on a branch, from the outcomes of the branches that it waits for; and the verdict on a parallel call,
// when it needs nothing more. This is the one definition: the schedule that starts branches and the question whether
// a run is blocked both ask it.

/** The branch may start; or the index of a branch that it waits for; or its outcome, because it will never run. */
export type BranchVerdict = 'ready' | number | Outcome;

/** The outcome of a branch by its index; `undefined` when it has not ended. */
export type EndOf = (call: number) => Outcome | undefined;

/** Results that were found before. They stay valid, as an outcome never changes; the cache only saves time. */
interface JudgedBefore {
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
export type CallOver = 'plan_ended' | 'join_met' | 'join_missed' | 'failed_fast';

/** Counts how the branches of a parallel call end. */
export class BranchEnds {
  readonly #isPlan: boolean;
  readonly #isFailFast: boolean;
  readonly #winners: number | undefined;
  readonly #branches: number;
  #values = 0;
  #others = 0;
  #isFinished = false;
  #hasFailed = false;

  /** @param how `branches` absent: they are not known yet. */
  constructor({
    join,
    plan,
    failFast,
    branches,
  }: Pick<Partial<CallParallel>, 'join' | 'plan' | 'failFast' | 'branches'>) {
    this.#isPlan = plan !== undefined;
    this.#isFailFast = failFast === true;
    this.#winners = winnersOf(join);
    this.#branches = branches?.length ?? Number.POSITIVE_INFINITY;
  }

  /** Records the end of a branch. It must be called once for each branch. */
  note(branch: Branch, outcome: Outcome): void {
    if (isFailure(outcome, branch)) this.#hasFailed = true;
    if (outcome.kind === 'value') this.#values += 1;
    else this.#others += 1;
    if (outcome.kind === 'value' && this.#isPlan && branch.tool === FINISH_TOOL) this.#isFinished = true;
  }

  /**
   * Whether the call needs nothing more: enough branches have succeeded for the join, too few are left for it, the plan has reached its end,
   * or a failure stops the others.
   */
  get over(): CallOver | undefined {
    if (this.#isFinished) return 'plan_ended';
    if (this.#winners !== undefined && this.#values >= this.#winners) return 'join_met';
    if (this.#winners !== undefined && this.#branches - this.#others < this.#winners) return 'join_missed';
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
