/** What became of a question that is not open any more: its run is folded up to where it was closed. */
import { deepFreeze, type Entry, isDismissal, type Json } from '#core';
import { closedWith, type HowClosed, howClosed } from './closed-with.ts';
import { applyEntry, openState } from './fold.ts';
import type { OpenPause } from './state.ts';

export interface ClosedPause {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly how: HowClosed;
}

/**
 * How a pause of the run was closed.
 * @param token absent: the one that was closed last.
 * @returns `undefined`: it was never asked, or is open.
 * @throws PilotageError `journal_corrupt`.
 */
export function closedIn(entries: readonly Entry[], token: Json | undefined): ClosedPause | undefined {
  const [first, ...rest] = entries;
  if (first === undefined) return undefined;
  const state = openState(deepFreeze(first));
  const isMeant = (pause: Pick<OpenPause, 'token'>): boolean => token === undefined || pause.token === token;
  let closed: ClosedPause | undefined;
  let givenUp: readonly GivenUp[] = [];
  for (const entry of rest) {
    const meant = closedWith(state, deepFreeze(entry)).filter(isMeant);
    const now = meant.map((pause) => ({ token: pause.token, at: entry.at, how: howClosed(state, entry, pause) }));
    closed = now.at(-1) ?? closed;
    const undoes = entry.kind === 'unwinding';
    if (undoes || entry.kind === 'finished' || entry.kind === 'failed') {
      const open = undoes ? undefined : state.pauses.findLast(isMeant)?.token;
      const last = open ?? givenUp.at(-1)?.token;
      const isDismissed = state.cancel !== null && isDismissal(state.cancel);
      const how = { with: 'end' as const, ending: undoes ? entry.ending : entry, isDismissed, undoes };
      if (last !== undefined) closed = { token: last, at: entry.at, how };
    }
    givenUp = [...stillGivenUp(givenUp, entry), ...now.flatMap(givenUpWith)];
    applyEntry(state, entry);
    // Whoever opens a run again finds what it asks as it was.
    if (entry.kind === 'reopened' && state.pauses.some((pause) => pause.token === closed?.token)) closed = undefined;
  }
  return closed;
}

/** A question whose call was given up, perhaps since its run is to end: then no move comes before the ending. */
interface GivenUp {
  readonly token: string;
  /** False: nobody knows what it came to, and nothing but the ends of other calls comes before the ending. */
  readonly isStopped: boolean;
}

function givenUpWith({ token, how }: ClosedPause): readonly GivenUp[] {
  if (how.with !== 'call' || how.isCancelled) return [];
  const isStopped = how.ended === 'cancelled';
  return isStopped || how.ended === 'unknown' ? [{ token, isStopped }] : [];
}

function stillGivenUp(before: readonly GivenUp[], { kind }: Entry): readonly GivenUp[] {
  if (before.length === 0 || kind === 'call_ended') return before;
  return kind === 'moved' ? [] : before.filter(({ isStopped }) => isStopped);
}
