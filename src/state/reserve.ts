/** What a run with `onCeiling: 'answer'` keeps back from the beginning, for the one move in which its planner says what it has found. */
import type { TaskShare } from '#core';
import type { RunState } from './state.ts';

/** At least this part of the limits on tokens and on cost, of the time, and never more than half of the first two. */
const PART = 10;
const MOST_PART = 2;
/** The last move is as large as the one before it, with what that one's calls came to. */
const GROWTH = 1.25;
const MOST_MS = 30_000;

/** How much of the limit on this axis is for the last move; 0 when there is none, or it is being made. */
export function reserveOn(
  state: Pick<RunState, 'limits' | 'answering' | 'steps' | 'open'>,
  axis: Exclude<keyof TaskShare, 'deadlineAt'>,
): number {
  const { limits, answering } = state;
  if (limits.onCeiling !== 'answer' || answering !== null || axis === 'calls') return 0;
  if (axis === 'steps') return 1;
  const limit = limits[axis];
  if (limit === undefined) return 0;
  // The move whose calls are under way is the last one, as it will be when they have ended.
  const { inputTokens = 0, outputTokens = 0, costMicroUsd = 0 } = (state.open?.move ?? state.steps.at(-1))?.usage ?? {};
  const last = axis === 'tokens' ? inputTokens + outputTokens : costMicroUsd;
  return Math.ceil(Math.min(Math.max(limit / PART, last * GROWTH), limit / MOST_PART));
}

/**
 * How long the run may take in all, in milliseconds: to its deadline, or as long as its agent gives a turn, whichever is less. `undefined`: as long as
 * it takes. A turn may have waited for long before its time began.
 */
export function wholeTimeMs({
  limits,
  startedAt,
  turn,
}: Pick<RunState, 'limits' | 'startedAt' | 'turn'>): number | undefined {
  const { deadlineAt = Number.POSITIVE_INFINITY } = limits;
  const wholeMs = Math.min(turn?.deadlineMs ?? Number.POSITIVE_INFINITY, Math.max(0, deadlineAt - startedAt));
  return Number.isFinite(wholeMs) ? wholeMs : undefined;
}

/** When the time of the run is over; of a run that has a last move to make, when it has to be asked for it. */
export function deadlineOf(state: Pick<RunState, 'limits' | 'answering' | 'startedAt' | 'turn'>): number | undefined {
  const { limits, answering } = state;
  const { deadlineAt } = limits;
  if (deadlineAt === undefined || limits.onCeiling !== 'answer' || answering !== null) return deadlineAt;
  return deadlineAt - Math.min((wholeTimeMs(state) ?? 0) / PART, MOST_MS);
}
