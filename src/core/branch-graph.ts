/** The graph of the branches of a parallel call: which branch waits for which, and in what order they may run. */
import { type Branch, branchId } from './decision.ts';
import { PilotageError } from './errors.ts';
import { needsOf } from './routes.ts';

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
