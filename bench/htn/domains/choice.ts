/** Each variable gets a value, and only when all have one is it seen whether they fit: nothing can be cut off early. */
import { type HtnDomain, type HtnState, type HtnTask, htnDomain } from '#planners/htn';

const VALUES = [0, 1, 2, 3];

export const choice: HtnDomain = htnDomain({
  operators: {
    set_value: (state: HtnState, x: string, value: number) => {
      state.set('value', x, value);
      return true;
    },
    check_all: (state: HtnState) => {
      const value = state.table('value');
      return state.table('want').find((x, wanted) => value.get(x) !== wanted) === undefined;
    },
  },
  tasks: {
    choose: VALUES.map((value) => (state: HtnState, x: string): HtnTask[] | undefined => {
      const width = state.get('width', 'n');
      return typeof width === 'number' && value < width ? [['set_value', x, value]] : undefined;
    }),
  },
});
