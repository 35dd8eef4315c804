/** What a run waits for. */
import type { TaskPause } from '#core';
import type { RunSnapshot } from '#state';

/** The questions of the run and of its tasks that are open. Other calls of the run may still be under way: then its status is not `paused`. */
export function openPauses({ identity: { run }, ending, pauses, tasks }: RunSnapshot): readonly TaskPause[] {
  if (ending !== null) return [];
  return [...pauses.map((pause) => ({ ...pause, run })), ...tasks.flatMap((task) => task.pauses)];
}
