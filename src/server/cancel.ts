/** Cancelling for a client, who cannot know whether the run has ended meanwhile. */
import { PilotageError } from '#core';
import type { Run } from '#runtime';
import { withinTime } from './within-time.ts';

type CancelOptions = Parameters<Run['cancel']>[0];

/** Cancels the run; one that has ended stays as it is. @throws as `Run.cancel`. */
export async function cancelUnlessEnded(run: Run, options: CancelOptions = {}): Promise<void> {
  try {
    await run.cancel(options);
  } catch (error) {
    if (!PilotageError.is(error, 'run_ended')) throw error;
  }
}

/**
 * Cancels the run and waits until it has ended: before that a run that asks something would still seem to wait for an answer.
 * @param waitMs how long it waits at most. A call that does not heed its abort may take longer; the run ends all the same.
 * @param signal aborted when the client is gone.
 * @throws as `Run.cancel`.
 */
export async function cancelledWithin(
  run: Run,
  waitMs: number,
  signal: AbortSignal,
  options: CancelOptions = {},
): Promise<void> {
  const { head } = await run.record();
  await cancelUnlessEnded(run, options);
  await withinTime(waitMs, signal, async (over) => {
    // The result of a paused run is there at once, before the cancel is taken.
    for await (const _ of run.events({ overPauses: true, from: head + 1, signal: over }));
  });
}
