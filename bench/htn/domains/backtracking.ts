/** One flag, and methods of which the first ones fail only later. */
import { type HtnDomain, type HtnState, type HtnTask, htnDomain } from '#planners/htn';

const always = (tasks: readonly HtnTask[]) => (): readonly HtnTask[] => tasks;
const get = (value: number): HtnTask => ['getv', value];
const put = (value: number): HtnTask => ['putv', value];

export const backtracking: HtnDomain = htnDomain({
  operators: {
    putv: (state: HtnState, value: number) => {
      state.set('flag', 'scalar', value);
      return true;
    },
    getv: (state: HtnState, value: number) => state.get('flag', 'scalar') === value,
  },
  tasks: {
    put_it: [always([put(0), get(1)]), always([put(0), get(0)]), always([put(1), get(1)])],
    need0: [always([get(0)])],
    need1: [always([get(1)])],
    need01: [always([get(0)]), always([get(1)])],
    need10: [always([get(1)]), always([get(0)])],
  },
});
