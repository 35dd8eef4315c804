/** Faults in core values. */
import type { Mutant } from './mutant.ts';

export const CORE_VALUES: readonly Mutant[] = [
  {
    name: 'read what was thrown as if it were an error',
    file: 'core/thrown.ts',
    find: 'this.message = describeThrown(value);',
    replace: 'this.message = String((value as Error).message);',
  },
  {
    name: 'take the last open way to a branch',
    file: 'core/branch-graph.ts',
    find: 'return waysOf(branch).find((route) => blockOf(route, outcomeOf) === undefined);',
    replace: 'return waysOf(branch).findLast((route) => blockOf(route, outcomeOf) === undefined);',
  },
  {
    name: 'go a way on another value than the one asked for',
    file: 'core/branch-graph.ts',
    find: 'jsonEquals(outcome.value, when.equals) ? undefined : when.branch;',
    replace: 'jsonEquals(outcome.value, when.equals) ? undefined : undefined;',
  },
  {
    name: 'let a guest redirect',
    file: 'core/control.ts',
    find: "REDIRECT: 'owner_user',",
    replace: "REDIRECT: 'session_user',",
  },
  {
    name: 'let an owner push to the front',
    file: 'core/control.ts',
    find: "PRIORITIZE: 'admin',",
    replace: "PRIORITIZE: 'owner_user',",
  },
];
