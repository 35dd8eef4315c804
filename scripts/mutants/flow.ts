/** Faults in flow. */
import type { Mutant } from './mutant.ts';

export const FLOW: readonly Mutant[] = [
  {
    name: 'go on with a flow when a node has failed',
    file: 'flow/planner.ts',
    find: "if (failure !== undefined) return { do: 'fail', failure };",
    replace: "if (failure === null) return { do: 'fail', failure };",
  },
  {
    name: 'take the last way that a router finds',
    file: 'flow/router.ts',
    find: 'const taken = branches.find((',
    replace: 'const taken = branches.findLast((',
  },
  {
    name: 'go round no more',
    file: 'flow/planner.ts',
    find: 'shape.heads.get(name)?.has(value) === true) heads.set(value, route.args);',
    replace: 'shape.heads.get(name)?.has(value) === false) heads.set(value, route.args);',
  },
  {
    name: 'hand a join only one of its parents',
    file: 'flow/planner.ts',
    find: 'values.push([name, this.#reference(name, status)]);',
    replace: 'if (values.length === 0) values.push([name, this.#reference(name, status)]);',
  },
  {
    name: 'give the items of a list in another order',
    file: 'flow/map.ts',
    find: 'const args = items.map((_, index) => ({ ...values.get(String(index)) }) as Json);',
    replace: 'const args = items.map((_, index) => ({ ...values.get(String(items.length - 1 - index)) }) as Json);',
  },
  {
    name: 'try no node of a flow again',
    file: 'flow/node.ts',
    find: 'retryable: true,\n    cause: thrown,',
    replace: 'retryable: false,\n    cause: thrown,',
  },
  {
    name: 'blame a flow for the wrong fault',
    file: 'flow/progress.ts',
    find: "outcome.kind === 'error' || outcome.kind === 'unknown' || outcome.kind === 'cancelled'",
    replace: "outcome.kind === 'unknown' || outcome.kind === 'cancelled'",
  },
];
