/** The objects of a problem by type, and what the variables stand for. */
import type { HddlDomain, HddlProblem, Term } from './model.ts';

/** The objects that the variables stand for, by slot; `''` where there is none yet. */
export type Binding = string[];
export type Row = readonly string[];

export interface ObjectSet {
  /** Each object as a row of one, in the order of the files. */
  readonly rows: readonly Row[];
  has(name: string): boolean;
}

export interface World {
  ofType(type: string): ObjectSet;
  /** By the order of their objects in the files. */
  compare(left: Row, right: Row): number;
}

export function objectOf(term: Term, binding: Binding): string {
  return typeof term === 'string' ? term : (binding[term] ?? '');
}

export function objectsOf(terms: readonly Term[], binding: Binding): string[] {
  return terms.map((term) => objectOf(term, binding));
}

export function createWorld(domain: HddlDomain, problem: HddlProblem): World {
  const types = objectsByType(domain, problem);
  const order = new Map([...problem.objects.keys()].map((name, index) => [name, index]));
  const none: ObjectSet = { rows: [], has: () => false };
  return {
    ofType: (type) => types.get(type) ?? none,
    compare: (left, right) => {
      for (const [index, name] of left.entries()) {
        const difference = (order.get(name) ?? 0) - (order.get(right[index] ?? '') ?? 0);
        if (difference !== 0) return difference;
      }
      return 0;
    },
  };
}

function objectsByType(domain: HddlDomain, problem: HddlProblem): ReadonlyMap<string, ObjectSet> {
  const types = new Map<string, Set<string>>();
  for (const [name, type] of problem.objects) {
    for (const ancestor of domain.types.get(type) ?? []) {
      types.set(ancestor, (types.get(ancestor) ?? new Set()).add(name));
    }
  }
  return new Map(
    Array.from(types, ([type, names]): [string, ObjectSet] => [
      type,
      { rows: Array.from(names, (name) => [name]), has: (name) => names.has(name) },
    ]),
  );
}
