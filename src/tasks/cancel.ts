/** Tells tasks to stop, each by its own rule, through those that have ended already. */
import { defined, type OnCancel, PilotageError } from '#core';
import type { Journal } from '#journal';
import type { RunState } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';

type CascadeDeps = Pick<DriverDeps, 'journal' | 'woke'>;

export interface Stop {
  /** The run that stops its tasks. */
  readonly by: string;
  readonly reason: string;
  /** The stopping run goes on: what is in doubt below it is to be settled before the task ends. */
  readonly dismisses?: boolean;
  /** Nor does a task undo any more what it has done. */
  readonly stopsUndo?: boolean;
}

/** The tasks of a run that stop when it does; also those that have ended, for the sake of their own. */
export function cascading({ tasks }: RunState): readonly string[] {
  return tasks.filter(({ onCancel }) => onCancel === 'cascade').map(({ id }) => id);
}

/**
 * Every one of these tasks of the run has the cancel in its inbox, or had ended, when this returns. A run that only has the
 * id of one, and another parent, hears nothing. Doing it twice changes nothing.
 */
export async function stopTasks(deps: CascadeDeps, tasks: readonly string[], stop: Stop): Promise<void> {
  for (const task of tasks) {
    const record = await deps.journal.get(task);
    if (record === undefined || record.parent === stop.by) await stopTask(deps, task, stop);
  }
}

async function stopTask(deps: CascadeDeps, task: string, stop: Stop): Promise<void> {
  if (!(await sendCancel(deps, task, stop))) await stopTasksOf(deps, task, stop);
}

/** The tasks of a run that has ended: it starts no more, and nobody else tells them. */
async function stopTasksOf(deps: CascadeDeps, run: string, stop: Stop): Promise<void> {
  for (let after: string | undefined; ; ) {
    const page = await deps.journal.list({ parent: run, limit: PAGE, ...defined({ after }) });
    for (const { identity } of page) {
      if ((await policyOf(deps.journal, identity.run)) === 'cascade') await stopTask(deps, identity.run, stop);
    }
    after = page.at(-1)?.identity.run;
    if (page.length < PAGE) return;
  }
}

const PAGE = 200;

async function policyOf(journal: Journal, run: string): Promise<OnCancel | undefined> {
  const [first] = await journal.read(run, 1, 1);
  return first?.kind === 'started' ? first.task?.onCancel : undefined;
}

/** False: the run has ended. */
async function sendCancel(
  { journal, woke }: CascadeDeps,
  run: string,
  { by, reason, dismisses = false, stopsUndo = false }: Stop,
): Promise<boolean> {
  try {
    const payload = stopsUndo ? { reason, cascaded: true, stopsUndo } : { reason, cascaded: true };
    const cancel = { type: 'CANCEL', payload } as const;
    const id = `${stopsUndo ? 'stop' : 'cancel'}:${by}`;
    await journal.signal(run, dismisses ? { ...cancel, id: `dismiss:${by}`, dismisses } : { ...cancel, id });
  } catch (error) {
    if (PilotageError.is(error, 'run_ended')) return false;
    throw error;
  }
  woke(run);
  return true;
}
