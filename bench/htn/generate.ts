/** Problems of three domains in the form of the files, so that planner and floor can be compared without any. */
import type { Entry, Problem } from './problem.ts';

/** Blocks in random towers, to be put in other random towers. The same seed gives the same problem. */
export function blocksProblem(blocks: number, seed: number): Problem {
  const random = randomOf(seed);
  const before = towers(blocks, random);
  const after = towers(blocks, random);
  const covered = new Set(before.map(([, place]) => place));
  return {
    name: `blocks-${blocks}-seed-${seed}`,
    domain: 'blocks_htn',
    state: {
      pos: before,
      clear: before.map(([block]): Entry => [block, !covered.has(block)]),
      holding: [['hand', false]],
    },
    goals: { G: { pos: after } },
    todo: [['achieve', { goal: 'G' }]],
  };
}

export function hanoiProblem(disks: number): Problem {
  const on = Array.from({ length: disks }, (_, index): Entry => [`d${index + 1}`, 'peg1']);
  const todo: Problem['todo'] = [['move_tower', disks, 'peg1', 'peg3', 'peg2']];
  return { name: `hanoi-${disks}`, domain: 'hanoi_htn', state: { on }, goals: {}, todo };
}

/** Of the values of each variable, only the last one fits. */
export function choiceProblem(variables: number, values: number): Problem {
  const names = Array.from({ length: variables }, (_, index) => `x${index + 1}`);
  return {
    name: `choice-${variables}x${values}`,
    domain: 'choice_htn',
    state: {
      value: names.map((name): Entry => [name, false]),
      want: names.map((name): Entry => [name, values - 1]),
      width: [['n', values]],
    },
    goals: {},
    todo: [...names.map((name) => ['choose', name] as const), ['check_all']],
  };
}

/** In random order each block is put on the table or on one of the tops; listed by name. */
function towers(blocks: number, random: (below: number) => number): Entry[] {
  const names = Array.from({ length: blocks }, (_, index) => `b${index + 1}`);
  const waiting = [...names];
  const tops: string[] = [];
  const places = new Map<string, string>();
  while (waiting.length > 0) {
    const [block = ''] = waiting.splice(random(waiting.length), 1);
    const choice = random(tops.length + 1);
    places.set(block, tops[choice] ?? 'table');
    tops[choice] = block;
  }
  return names.map((name): Entry => [name, places.get(name) ?? 'table']);
}

/** Numbers of 32 bits by a linear congruence; the low bits are the weak ones, so they are dropped. */
function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
