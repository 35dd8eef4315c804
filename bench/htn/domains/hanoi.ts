/** Towers of Hanoi: disk d1 is the smallest. */
import { type HtnDomain, type HtnState, type HtnTask, htnDomain } from '#planners/htn';

export const hanoi: HtnDomain = htnDomain({
  operators: { move },
  tasks: {
    move_tower: {
      none: (_state: HtnState, n: number) => (n === 0 ? [] : undefined),
      recurse: (_state: HtnState, n: number, from: string, to: string, via: string): HtnTask[] | undefined =>
        n > 0
          ? [
              ['move_tower', n - 1, from, via, to],
              ['move', `d${n}`, from, to],
              ['move_tower', n - 1, via, to, from],
            ]
          : undefined,
    },
  },
});

function move(state: HtnState, disk: string, from: string, to: string): boolean {
  const on = state.table('on');
  if (on.get(disk) !== from) return false;
  for (let size = Number(disk.slice(1)) - 1; size > 0; size -= 1) {
    const peg = on.get(`d${size}`);
    if (peg === from || peg === to) return false;
  }
  on.set(disk, to);
  return true;
}
