/** Those who start runs under names that are taken, or that somebody else will need. */
import type { Dice } from './dice.ts';
import type { Root } from './script.ts';
import type { Clash } from './script-world.ts';

export function generateClashes(dice: Dice, roots: readonly Root[], workers: number): readonly Clash[] {
  if (dice.chance(0.7)) return [];
  return dice.list(1, 3, () => clash(dice, roots, workers));
}

function clash(dice: Dice, roots: readonly Root[], workers: number): Clash {
  const like = roots[dice.between(0, roots.length - 1)];
  const isOwn = dice.chance(0.4);
  const common = {
    at: dice.pick([0, dice.between(0, 1_500)]),
    worker: dice.between(0, workers - 1),
    tenant: isOwn ? (like?.tenant ?? 't0') : dice.pick(['t0', 't1']),
    user: isOwn ? (like?.user ?? 'ann') : dice.pick(['ann', 'bob']),
    session: isOwn ? (like?.session ?? 's') : dice.pick(['s', 'z']),
    plan: dice.pick([like?.plan ?? 'p0', 'p0', 'p1']),
  };
  if (dice.chance(0.5)) {
    const { worker, plan } = common;
    const again = {
      worker: dice.between(0, workers - 1),
      afterMs: dice.pick([0, dice.between(0, 600)]),
      plan: dice.chance(0.7) ? plan : 'p2',
    };
    return { ...common, worker, kind: 'key', key: dice.pick(['k0', 'k0', 'k1']), again };
  }
  // The id of a root, or that of a task that it comes to spawn.
  const below = dice.pick(['', '.0.0', '.0.0', '.0.1', '.1.0', '.2.0']);
  return { ...common, kind: 'id', run: `${like?.run ?? 'r0'}${below}` };
}
