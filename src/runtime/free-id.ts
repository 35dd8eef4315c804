/** Ids that nobody may give to a run of their own, because a run that is there may come to start a task of that id. */
import { PilotageError, spawnerOf } from '#core';
import type { Journal } from '#journal';

/**
 * A run that is there already is not asked about: it may be that task.
 * @throws PilotageError `invalid_config` for the id of a task that another run may still start.
 */
export async function assertNoTaskId(journal: Journal, run: string): Promise<void> {
  const spawner = spawnerOf(run);
  if (spawner === undefined || (await journal.get(spawner)) === undefined) return;
  if ((await journal.get(run)) !== undefined) return;
  throw new PilotageError(
    'invalid_config',
    `The run id ${run} is kept for a task of the run ${spawner}. Leave it out, and a fresh one is made.`,
    { data: { run } },
  );
}
