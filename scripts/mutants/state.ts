/** Faults in `src/state`. */
import type { Mutant } from './mutant.ts';

export const STATE: readonly Mutant[] = [
  {
    name: 'let a call in doubt run again when it is only to be looked up',
    file: 'state/open-step.ts',
    find: "if (verdict !== 'settle') return;",
    replace: "if (verdict !== 'settle') return beginAnew(open, call);",
  },
  {
    name: 'set nothing aside for tasks',
    file: 'state/budget.ts',
    find: 'return tasks.length === 0 ? 0 : sumOfShares(',
    replace: 'return tasks.length >= 0 ? 0 : sumOfShares(',
  },
  {
    name: 'forget what tasks have used',
    file: 'state/task-state.ts',
    find: 'countUsage(totals, fresh);',
    replace: 'countUsage(totals, {});',
  },
  {
    name: 'show a group twice',
    file: 'state/task-state.ts',
    find: 'state.background = pushed(state.background, deepFreeze({ atStep: nextStep(state), group }));',
    replace:
      'for (const later of [0, 1]) state.background = pushed(state.background, deepFreeze({ atStep: nextStep(state) + later, group }));',
  },
  {
    name: 'the end of a group is not shown when the end of one of its members was',
    file: 'state/task-state.ts',
    find: 'members.every(({ consumed }) => consumed)',
    replace: 'members.some(({ consumed }) => consumed)',
  },
];
