/** What else is played: conversations, forks, readers who leave, and the options of a runtime that go with them. */

import { SECRET_SCOPE } from './call-args.ts';
import type { Dice } from './dice.ts';
import {
  AGENTS,
  FLOWS,
  type FlowInput,
  type FlowName,
  type ForkAct,
  type Reader,
  type Root,
  type SimulatedMemory,
  type SimulationScript,
} from './script.ts';

export function rootMaterial(dice: Dice): Pick<Root, 'scopes' | 'files'> {
  return {
    scopes: dice.chance(0.5) ? [SECRET_SCOPE] : [],
    files: dice.chance(0.1) ? dice.between(1, 2) : 0,
  };
}

export function howItRemembers(dice: Dice): { readonly memory?: SimulatedMemory } {
  return dice.maybe(0.08, () => ({ memory: { turns: dice.between(1, 4) } }));
}

/** One run after the other in the same conversation, mostly. */
export function conversing(dice: Dice, roots: readonly Root[]): Root[] {
  const [first] = roots;
  if (first === undefined) return [];
  const { tenant, user, session } = first;
  const later = dice.list(2, 4, (index) => ({
    ...(roots[index % roots.length] ?? first),
    run: `r${roots.length + index}`,
    at: dice.between(300, 5_000),
  }));
  return [...roots, ...later].map((root) => ({
    ...root,
    ...(dice.chance(0.8) ? { tenant, user, session } : {}),
    ...dice.maybe(0.15, () => ({ aside: true as const })),
  }));
}

export function progressGuard(dice: Dice): Pick<SimulationScript, 'progress'> {
  return dice.maybe(0.4, () => ({
    progress: {
      hintAfter: dice.between(2, 3),
      ...dice.maybe(0.7, () => ({ action: dice.pick(['pause', 'end'] as const), actAfter: dice.between(3, 4) })),
    },
  }));
}

export function forkAct(dice: Dice, roots: readonly Root[], index: number, workers: number): ForkAct {
  return {
    at: dice.between(100, dice.pick([1_500, 5_500])),
    root: dice.pick(roots as [Root]).run,
    task: dice.pick([0, 0, dice.between(0, 5)]),
    worker: dice.between(0, workers - 1),
    run: `f${index}`,
    effects: dice.pick(['held', 'held', 'allowed']),
    ...dice.maybe(0.5, () => ({ step: dice.between(0, 5) })),
    ...dice.maybe(0.2, () => ({ result: true as const })),
  };
}

export function reader(dice: Dice, roots: readonly Root[], workers: number): Reader {
  return {
    at: dice.between(0, dice.pick([800, 4_000])),
    root: dice.pick(roots as [Root]).run,
    worker: dice.between(0, workers - 1),
    how: dice.pick(['unread', 'dropped', 'returned', 'thrown', 'raced', 'replayed', 'replayed']),
    after: dice.between(0, 5),
  };
}

export function flowsOf(dice: Dice): readonly FlowName[] {
  return dice.chance(0.1) ? [...new Set(dice.list(1, 2, () => dice.pick(FLOWS)))] : [];
}

export function flowInput(dice: Dice): FlowInput {
  return {
    path: [],
    way: dice.pick(['left', 'left', 'right', 'right', 'nowhere', 'odd']),
    rounds: dice.between(0, 3),
    items: dice.between(0, 3),
    ms: dice.pick([0, 20, 300]),
    ...dice.maybe(0.25, () => ({
      fails: dice.pick(['a', 'b', 'c', 'left', 'right', 'both', 'again', 'each', 'z', 'last']),
      ...dice.maybe(0.4, () => ({ failsOnce: true as const })),
    })),
    ...dice.maybe(0.3, () => ({ asks: true as const })),
  };
}

/** Some roots are of other planners than the simulated one. */
export function ofOthers(
  dice: Dice,
  roots: readonly Root[],
  flows: readonly FlowName[],
  writeErrands: () => string,
): readonly Root[] {
  const hasAgents = dice.chance(0.08);
  return roots.map((root): Root => {
    const [first, ...more] = flows;
    if (first !== undefined && dice.chance(0.5)) {
      return { ...root, flow: { name: dice.pick([first, ...more]), input: flowInput(dice) } };
    }
    if (!hasAgents || dice.chance(0.2)) return root;
    return { ...root, agent: dice.pick(AGENTS), plan: writeErrands() };
  });
}
