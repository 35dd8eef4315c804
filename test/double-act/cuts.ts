/** The ways in which a play is cut, each at a moment that a seed chooses. */
import type { Json } from '#pilotage';
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
  /** How long a process stands still that is stopped from outside. */
  readonly stillMs: number;
  /** What `reconcile` says that is not the truth: nothing, or that it cannot say. */
  readonly vague?: 'unknown' | 'throws';
  /** Of the whole run, from its start. */
  readonly deadlineMs?: number;
  /** Nobody settles what is in doubt: the run is cancelled. */
  readonly cancelsInDoubt?: true;
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
const DEADLINE_MS = 1_000;

const PLAIN: Json = 'The room is to be paid in advance.';

/** In the order in which a run comes by them. Those just before and in the effect are the most dangerous. */
const IN_CALL: readonly Place[] = ['begin', 'began', 'began', 'entered', 'entered', 'done', 'ending', 'ended'];
const IN_TOOL: readonly Place[] = ['entered', 'done'];

/** @param random from 0 up to 1. */
export function script(cut: CutName, random: () => number): Script {
  const below = (count: number): number => Math.floor(random() * count);
  const pick = <T>(list: readonly [T, ...T[]] | readonly T[]): T => list[below(list.length)] as T;
  const stillMs = STILL_MS[0] + below(STILL_MS[1] - STILL_MS[0]);
  const usual: Script = { cut, stillMs, resume: random() < 0.5, timeoutMs: LONG_MS, page: PLAIN };
  const stillIn = (place: Place): number => (IN_TOOL.includes(place) || random() < 0.5 ? stillMs : LONG_STILL_MS);
  // Reads have outcomes too, and only two calls are written down before they begin.
  const trapOf = (act: Trap['act']): Trap => {
    const place = pick(IN_CALL);
    const most = place === 'ending' || place === 'ended' ? 5 : place === 'begin' || place === 'began' ? 2 : 3;
    return { place, nth: 1 + below(most), act, ms: stillIn(place) };
  };
  // Whoever took over is cut as well, while it asks what became of the call, or does it again.
  const second = (): Pick<Script, 'second'> => {
    if (random() >= 0.3) return {};
    const place = pick(['asked', 'asked', 'began', 'entered', 'done', 'ended'] as const);
    return { second: { place, nth: 1, act: pick(['kill', 'stop'] as const), ms: stillMs } };
  };
  const vague = (): Pick<Script, 'vague'> => (random() < 0.25 ? { vague: pick(['unknown', 'throws'] as const) } : {});
  switch (cut) {
    case 'kill':
    case 'stop': {
      if (random() < 0.15) return { ...usual, afterMs: below(120) };
      return { ...usual, trap: trapOf(cut), ...second(), ...vague() };
    }
    case 'block':
      return { ...usual, trap: trapOf('block'), ...second(), ...vague() };
    case 'limit': {
      const trap = hanging(random);
      if (random() < 0.3) return { ...usual, trap, deadlineMs: DEADLINE_MS, ...vague() };
      return { ...usual, trap, timeoutMs: SHORT_MS, ...vague() };
    }
    case 'abort':
      if (random() < 0.3) return { ...usual, trap: trapOf('kill'), vague: 'unknown', cancelsInDoubt: true };
      return { ...usual, trap: hanging(random), ...vague() };
    case 'hostile':
      return { ...usual, page: pick(pages), slip: { remark: below(remarks.length), turn: below(5) } };
    default:
      return cut satisfies never;
  }
}

/** In a tool, until it is aborted, or for longer than its time limit without listening. */
function hanging(random: () => number): Trap {
  const below = (count: number): number => Math.floor(random() * count);
  const act = random() < 0.5 ? 'hang' : 'deaf';
  return { place: random() < 0.5 ? 'entered' : 'done', nth: 1 + below(3), act, ms: SHORT_MS + 100 + below(300) };
}
