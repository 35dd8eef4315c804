/** Looks at the tasks of a run from time to time, for readers who want to see them move. It records nothing and wakes nobody. */
import type { Clock, EventPayloads } from '#core';
import type { Journal } from '#journal';
import type { RunState } from '#state';
import { taskStatus } from './task-record.ts';

export type TaskProgress = EventPayloads['task.progress'];

const LOOK_EVERY_MS = 1_000;

interface ProgressPorts {
  readonly journal: Journal;
  readonly clock: Clock;
  /** The owner as its reader knows it; `undefined` before the first entry. */
  state(): RunState | undefined;
  /** Called when a task that has not ended is not as it was last. */
  tell(progress: TaskProgress): void;
  onFault(error: unknown): void;
}

/** Looks every second until the returned function is called. */
export function watchProgressOfTasks({ journal, clock, state, tell, onFault }: ProgressPorts): () => void {
  const last = new Map<string, string>();
  let stopped = false;
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    for (const { id, end } of state()?.tasks ?? []) {
      if (stopped) return;
      const record = end === undefined ? await journal.get(id) : undefined;
      if (record === undefined) continue;
      const progress = { taskId: id, status: await taskStatus(journal, record), entries: record.head };
      const shown = `${progress.status} ${progress.entries}`;
      if (stopped || last.get(id) === shown) continue;
      last.set(id, shown);
      tell(progress);
    }
  };
  const again = (): void => {
    // Who reads keeps the process alive while it waits.
    if (!stopped) cancel = clock.after(LOOK_EVERY_MS, () => void look().catch(onFault).then(again), { holds: false });
  };
  again();
  return () => {
    stopped = true;
    cancel();
  };
}
