/** What is played in a case: equal seeds give equal cases. */

import type { Effect } from '#pilotage/tools';
import { seededRandom } from '#testing';
import { misbehaviours } from './replies.ts';
import { behaviourOf, effects } from './tools.ts';

export const modes = ['native', 'text', 'pipeline'] as const;
export type Mode = (typeof modes)[number];

export interface Plan {
  readonly seed: number;
  readonly mode: Mode;
  /** How the server misbehaves, and for how many replies; then it calls the tool. */
  readonly server: string;
  readonly misbehaves: number;
  readonly tool: string;
  readonly effect: Effect;
  readonly listens: boolean;
}

const servers = Object.keys(misbehaviours);

export function planOf(seed: number): Plan {
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  const mode = modes[below(modes.length)] ?? 'native';
  return {
    seed,
    mode,
    server: servers[below(servers.length)] ?? '',
    // Half of the cases are about the tool.
    misbehaves: [0, 0, 1, 9][below(4)] ?? 0,
    tool: behaviourOf(below(1_000)),
    effect: effects[below(effects.length)] ?? 'once',
    listens: random() < 0.5,
  };
}
