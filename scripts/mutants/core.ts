/** Faults in `src/core`. */
import type { Mutant } from './mutant.ts';

export const CORE: readonly Mutant[] = [
  {
    name: 'listen to anybody',
    file: 'core/control.ts',
    find: 'if (from === undefined || mayKnow(from, owner)) return;',
    replace: "if (from === undefined || mayKnow(from, owner) || owner.tenant !== '') return;",
  },
];
