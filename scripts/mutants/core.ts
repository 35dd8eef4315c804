/** Faults in `src/core`. */
import type { Mutant } from './mutant.ts';

export const CORE: readonly Mutant[] = [
  {
    name: 'listen to anybody',
    file: 'core/control.ts',
    find: "if (from === undefined || from.scope === 'admin') return;",
    replace: 'if (from === undefined || from.tenant !== null) return;',
  },
];
