/** What became of a question that is not open any more: its run is folded up to where it was closed. */
import { deepFreeze, type Entry, isDismissal, type Json } from '#core';
import { closedWith, type HowClosed, howClosed } from './closed-with.ts';
import { applyEntry, openState } from './fold.ts';
import type { OpenPause, RunState } from './state.ts';

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
  /** Those whose calls were given up, with nothing behind them yet but the ends of other calls. */
  let givenUp: readonly string[] = [];
  for (const entry of rest) {
    const now = closedNow(state, deepFreeze(entry)).filter(isMeant);
    closed = now.at(-1) ?? closed;
    const undoes = entry.kind === 'unwinding';
    if (undoes || entry.kind === 'finished' || entry.kind === 'failed') {
      const open = undoes ? undefined : state.pauses.findLast(isMeant)?.token;
      const last = open ?? givenUp.at(-1);
      const isDismissed = state.cancel !== null && isDismissal(state.cancel);
      const how = { with: 'end' as const, ending: undoes ? entry.ending : entry, isDismissed, undoes };
      if (last !== undefined) closed = { token: last, at: entry.at, how };
    }
    const given = now.flatMap(({ token: one, how }) => (how.with === 'call' && isGivenUp(how) ? [one] : []));
    givenUp = entry.kind === 'call_ended' ? [...givenUp, ...given] : [];
    applyEntry(state, entry);
    // Whoever opens a run again finds what it asks as it was.
    if (entry.kind === 'reopened' && state.pauses.some((pause) => pause.token === closed?.token)) closed = undefined;
  }
  return closed;
}

function closedNow(state: RunState, entry: Entry): readonly ClosedPause[] {
  return closedWith(state, entry).map((pause) => {
    return { token: pause.token, at: entry.at, how: howClosed(state, entry, pause) };
  });
}

/** Its run may have ended with it. */
function isGivenUp({ ended, isCancelled }: Extract<HowClosed, { readonly with: 'call' }>): boolean {
  return !isCancelled && (ended === 'cancelled' || ended === 'unknown');
}
