/** Waits until a run has taken a control, without a look at what it did before. */
import { type Entry, PilotageError } from '#core';
import type { Journal } from '#journal';
import type { NoticeHub } from './notices.ts';

export interface TakenPorts {
  readonly journal: Journal;
  readonly hub: NoticeHub;
  readonly run: string;
  /** This process drives the run now. */
  isDriven(): boolean;
}

export interface Wait {
  /** @throws why the control was refused, `run_ended`, or why this process let go of the run. */
  readonly done: Promise<void>;
  stop(): void;
}

/** Listens from now on for the entry that takes the control. @param head entries up to here cannot have taken it. */
export function untilTaken({ journal, hub, run, isDriven }: TakenPorts, control: string, head: number): Wait {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let seen = head;
  const see = (entry: Entry): void => {
    seen = Math.max(seen, entry.seq);
    if (entry.kind === 'control' && entry.control.id === control) {
      if (entry.error === undefined) resolve();
      else reject(PilotageError.fromData(entry.error));
    } else if (entry.kind === 'finished' || entry.kind === 'failed') {
      reject(new PilotageError('run_ended', `The run ${run} ended before it took the control.`));
    }
  };
  const look = (): void => {
    journal.read(run, seen + 1).then((entries) => {
      for (const entry of entries) see(entry);
    }, reject);
  };
  const unlisten = hub.listen(
    run,
    (notice) => {
      if (notice.type === 'entry') see(notice.entry);
      else if (notice.type === 'exit' && notice.error !== undefined) reject(notice.error);
      else if (notice.type === 'exit') look();
    },
    false,
  );
  const unwatch = journal.watch(run, () => {
    if (!isDriven()) look();
  });
  const stop = (): void => {
    unlisten();
    unwatch();
  };
  const done = promise.finally(stop);
  // Whoever sends the control awaits it only when it is stored.
  done.catch(() => {});
  return { done, stop };
}
