/** Waits until a run has taken a control, without a look at what it did before. */
import { type Entry, PilotageError } from '#core';
import type { Journal } from '#journal';
import type { Notice, NoticeHub } from './notices.ts';

export interface TakenPorts {
  readonly journal: Journal;
  readonly hub: NoticeHub;
  readonly run: string;
}

export interface Wait {
  /** @throws why the control was refused, `run_ended`, or why this process let go of the run. */
  readonly done: Promise<void>;
  stop(): void;
}

/** Listens from now on for the entry that takes the control. @param head entries up to here cannot have taken it. */
export function untilTaken({ journal, hub, run }: TakenPorts, control: string, head: number): Wait {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let seen = head;
  /** The driver here tells every entry, and nothing that others wrote before is missing. */
  let isTold = false;
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
  const hear = (notice: Notice): void => {
    if (notice.type === 'entry') {
      // Another process wrote what is missing before this one took over.
      isTold = notice.entry.seq <= seen + 1;
      if (isTold) see(notice.entry);
      else look();
    } else if (notice.type === 'exit') {
      isTold = false;
      if (notice.error === undefined) look();
      else reject(notice.error);
    }
  };
  const unlisten = hub.listen(run, hear, false);
  const unwatch = journal.watch(run, () => {
    if (!isTold) look();
  });
  const stop = (): void => {
    unlisten();
    unwatch();
  };
  const done = promise.finally(stop);
  // The sender awaits the control only when it is stored.
  done.catch(() => {});
  return { done, stop };
}
