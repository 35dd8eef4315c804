/** What whoever answers a question is told that is not open any more. */
import { PilotageError } from '#core';
import { pauseExpired } from '#journal';
import { type ClosedPause, whyClosed } from '#state';

/** Why an answer of this type to a pause that was closed comes too late. */
export function tooLate(type: string, { token, at, how }: ClosedPause): PilotageError {
  const when = new Date(at).toISOString();
  switch (how.with) {
    case 'time':
      return pauseExpired(how.expiresAt, token);
    case 'answer': {
      const who = how.by === undefined ? '' : ` by ${how.by.user}`;
      const message = `The pause ${token} was answered with ${how.verdict}${who} at ${when}; ${type} comes too late.`;
      return new PilotageError('pause_not_found', message);
    }
    case 'withdrawal':
      return isWithdrawn(type, token, how.control === undefined ? `since ${how.why}` : `by ${how.control}`);
    case 'end': {
      if (how.undoes) return closedBefore(type, token, when, whyClosed(how));
      const message = `The question ${token} was open still when the run ended, at ${when}: ${whyClosed(how)}; ${type} comes too late.`;
      return new PilotageError('run_ended', message);
    }
    default:
      return closedBefore(type, token, when, whyClosed(how));
  }
}

function closedBefore(type: string, token: string, when: string, why: string): PilotageError {
  const message = `The question ${token} was closed at ${when} before anybody answered, since ${why}; ${type} comes too late.`;
  return new PilotageError('superseded', message);
}

/** @param how `by …` or `since …`. */
export function isWithdrawn(type: string, token: string, how: string): PilotageError {
  const message = `The question ${token} was withdrawn ${how} before it was answered; ${type} comes too late, and nothing was called. What the run asks now has another token.`;
  return new PilotageError('superseded', message);
}
