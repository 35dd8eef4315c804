/** Calls whose next attempt is made later. */
import { type Branch, type CallAway, type CallEnded, type CallPlace, type Clock, callEnded, timeAfter } from '#core';
import type { AwayCall, OpenStep } from '#state';
import type { AwayAsk } from './call-ports.ts';
import { failedOutcome } from './outcome.ts';

/** The call takes no place until its next attempt. */
export function awayEntry(
  at: CallPlace,
  { kind: _, waitMs, ...failure }: AwayAsk,
  clock: Pick<Clock, 'now'>,
): CallAway {
  const failedAt = clock.now();
  return { kind: 'call_away', ...at, ...failure, failedAt, retryAt: timeAfter(failedAt, waitMs) };
}

/** Attempts were made before, however this one has ended. */
export function withAttempts<T extends object>(result: T, attempts: number): T {
  return 'attempts' in result && result.attempts === 0 ? { ...result, attempts } : result;
}

/** The end of a call that is not tried again, since the goal was changed while it waited. */
export function givenUp(open: OpenStep, { tool }: Branch, { call, error, attempts, startedAt }: AwayCall): CallEnded {
  const outcome = failedOutcome(error, tool, attempts);
  return callEnded({ step: open.move.step, call }, { outcome, attempts, startedAt });
}
