/** What a run waits for. */
import { defined, type TaskPause } from '#core';
import type { RunSnapshot } from '#state';

/** The questions of the run and of its tasks that are open. Other calls of the run may still be under way: then its status is not `paused`. */
export function openPauses({ identity, ending, open, pauses, tasks }: RunSnapshot): readonly TaskPause[] {
  if (ending !== null) return [];
  const { run } = identity;
  const saidWith = (step: number | undefined) => (step !== undefined && step === open?.step ? open.text : undefined);
  const own = pauses.map((pause) => ({ ...pause, run, ...defined({ text: saidWith(pause.step) }) }));
  return [...own, ...tasks.flatMap((task) => task.pauses)];
}
