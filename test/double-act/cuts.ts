/** The ways in which a play is cut, each at a moment that a seed chooses. */
import type { Json } from '../../src/index.ts';
import { pages, remarks } from './hostile.ts';
import type { Slip } from './model.ts';
import type { Place, Trap } from './traps.ts';

export const cuts = ['kill', 'stop', 'block', 'limit', 'abort', 'hostile'] as const;
export type CutName = (typeof cuts)[number];

/** What is to happen in a play. Equal seeds give equal scripts. */
export interface Script {
  readonly cut: CutName;
  /** In the process that begins. */
  readonly trap?: Trap;
  /** In the one that takes over. */
  readonly second?: Trap;
  /** Instead of a trap: so long after the start, from outside. */
  readonly afterMs?: number;
  /** How long a process stands still. */
  readonly stillMs: number;
  /** Whoever takes over asks for the run by its name, and so sees whether its owner is dead. */
  readonly resume: boolean;
  readonly timeoutMs: number;
  readonly page: Json;
  readonly slip?: Slip;
}

export const LEASE_MS = 300;
export const GRACE_MS = 3_000;
/** What stands still in the middle of an effect is awake again well before whoever took over believes that nothing happened. */
const STILL_MS = [LEASE_MS + 100, LEASE_MS + 900] as const;
/** What stands still anywhere else may do so for longer. */
const LONG_STILL_MS = GRACE_MS + LEASE_MS + 500;
const LONG_MS = 30_000;
const SHORT_MS = 250;

const PLAIN: Json = 'The room is to be paid in advance.';

/** In the order in which a run comes by them. */
const IN_CALL: readonly Place[] = ['begin', 'began', 'entered', 'done', 'ending', 'ended'];
const IN_TOOL: readonly Place[] = ['entered', 'done'];

/** @param random from 0 up to 1. */
export function script(cut: CutName, random: () => number): Script {
  const below = (count: number): number => Math.floor(random() * count);
  const pick = <T>(list: readonly [T, ...T[]] | readonly T[]): T => list[below(list.length)] as T;
  const stillMs = STILL_MS[0] + below(STILL_MS[1] - STILL_MS[0]);
  const usual: Script = { cut, stillMs, resume: random() < 0.5, timeoutMs: LONG_MS, page: PLAIN };
  // Reads have outcomes too, and only two calls are written down before they begin.
  const trapOf = (act: Trap['act']): Trap => {
    const place = pick(IN_CALL);
    const most = place === 'ending' || place === 'ended' ? 5 : place === 'begin' || place === 'began' ? 2 : 3;
    return { place, nth: 1 + below(most), act, ms: stillMs };
  };
  const stillIn = ({ place }: Trap): number => (IN_TOOL.includes(place) || random() < 0.8 ? stillMs : LONG_STILL_MS);
  // Whoever took over is cut as well, while it asks what became of the call.
  const secondOf = (): Pick<Script, 'second'> =>
    random() < 0.25 ? { second: { place: 'asked', nth: 1, act: pick(['kill', 'stop'] as const) } } : {};
  switch (cut) {
    case 'kill':
    case 'stop': {
      if (random() < 0.15) return { ...usual, afterMs: below(120) };
      const trap = trapOf(cut);
      return { ...usual, trap, stillMs: stillIn(trap), ...secondOf() };
    }
    case 'block': {
      const trap = trapOf('block');
      return { ...usual, trap: { ...trap, ms: stillIn(trap) }, ...secondOf() };
    }
    case 'limit':
    case 'abort': {
      const act = pick(['hang', 'deaf'] as const);
      const trap: Trap = { place: pick(IN_TOOL), nth: 1 + below(3), act, ms: SHORT_MS + 100 + below(300) };
      return { ...usual, trap, timeoutMs: cut === 'limit' ? SHORT_MS : LONG_MS };
    }
    case 'hostile':
      return { ...usual, page: pick(pages), slip: { remark: below(remarks.length), turn: below(5) } };
    default:
      return cut satisfies never;
  }
}
