/** Starts a run under a key: which run there is then, the store decides. */
import type { StartKey } from '#core';
import type { NewRun } from '#journal';
import type { RunHost } from './run-host.ts';

/** @returns the run that is there under the key then, which is driven when its time has come. @throws as `Journal.startByKey`. */
export async function startByKey({ fleet, deps }: RunHost, run: NewRun, key: StartKey): Promise<string> {
  let id = run.identity.run;
  const isDriven = await fleet.launch(run, async (leased) => {
    const started = await deps.journal.startByKey(leased, key);
    id = started.run;
    return started.claim;
  });
  // Its first entry may be another one now.
  deps.states.forget(id);
  if (!isDriven) fleet.wake(id);
  return id;
}
