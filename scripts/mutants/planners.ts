/** Faults in planners. */
import type { Mutant } from './mutant.ts';

export const PLANNERS: readonly Mutant[] = [
  {
    name: 'ask the last rule first',
    file: 'planners/rules/rules.ts',
    find: 'for (const rule of ordered) {',
    replace: 'for (const rule of [...ordered].reverse()) {',
  },
  {
    name: 'reach the goal with a plan that failed',
    file: 'plans/outcome.ts',
    find: "if (undone.length > 0 || notes['error'] !== undefined) return { kind: 'finish', reason: 'no_path', metadata };",
    replace: "if (notes['error'] !== undefined) return { kind: 'finish', reason: 'no_path', metadata };",
  },
];
