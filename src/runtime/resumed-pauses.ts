/** What the open pauses of a run say to whoever resumes it. */
import { type ErrorCode, PilotageError } from '#core';
import { answerable, cannotRetry, type RunState } from '#state';

/** Whether the run waits for an approval or another answer that `resume` alone cannot give. */
export function acceptsOnly({ pauses }: RunState, acceptChanges: boolean): boolean {
  if (!acceptChanges) return false;
  return pauses.some(
    ({ call, reason }) => call !== undefined && (reason === 'approval_required' || reason === 'in_doubt'),
  );
}

/**
 * The pause in which the run, or one below it, asks what is to become of its failed plan.
 * @throws PilotageError `payload_invalid` when the run waits for something else.
 */
export function pauseOfPlan(state: RunState): { readonly token: string } | undefined {
  const open = answerable(state);
  const asked = open.find(({ reason }) => reason === 'plan_failed');
  if (asked !== undefined || open.length === 0) return asked;
  throw cannotRetry(`the run is paused (${open.map(({ reason }) => reason).join(', ')}); answer that first`);
}

const OLD_NEWS: ReadonlySet<ErrorCode> = new Set(['run_ended', 'pause_not_found', 'pause_expired', 'superseded']);

/** Somebody else has answered, or nothing asks any more. */
export function unlessOldNews(error: unknown): void {
  if (!PilotageError.is(error) || !OLD_NEWS.has(error.code)) throw error;
}
