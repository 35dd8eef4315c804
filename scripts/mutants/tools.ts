/** Faults in tools. */
import type { Mutant } from './mutant.ts';

export const TOOLS: readonly Mutant[] = [
  {
    name: 'show everybody every tool',
    file: 'tools/catalogue.ts',
    find: 'tool.scopes.every((scope) => held.has(scope))',
    replace: 'tool.scopes.every((scope) => scope !== undefined || held.has(scope))',
  },
];
