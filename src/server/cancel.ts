/** Cancelling for a client, who cannot know whether the run has ended meanwhile. */
import { PilotageError } from '#core';
import type { Run } from '#runtime';

/** Cancels the run; one that has ended stays as it is. @throws as `Run.cancel`. */
export async function cancelUnlessEnded(run: Run, options: Parameters<Run['cancel']>[0] = {}): Promise<void> {
  try {
    await run.cancel(options);
  } catch (error) {
    if (!PilotageError.is(error, 'run_ended')) throw error;
  }
}
