/** Says something to a run, from any process: checked, and durable when it returns. Drives nothing. */
import { assertMaySend, type Control, type Message, validateControl } from '../core/control.ts';
import { PilotageError } from '../core/errors.ts';
import type { Journal, RunRecord } from '../journal/port.ts';
import { foldEntries } from '../view/run-state.ts';

/**
 * Stores a control in the inbox of the run that it is for.
 * @returns the run as it was before. The same control id again changes nothing.
 * @throws PilotageError `run_not_found`, `run_ended`, `inbox_full`, `unknown_control_type`, `payload_invalid`,
 * `scope_invalid` or `scope_mismatch`: nothing was stored.
 */
export async function sendControl(journal: Journal, run: string, control: Control): Promise<RunRecord> {
  const checked = validateControl(control);
  const record = await journal.get(run);
  if (record === undefined) throw new PilotageError('run_not_found', `There is no run ${run} in this journal.`);
  assertMaySend(checked.type, checked.from, record.identity);
  const priority = checked.type === 'PRIORITIZE' ? Number(checked.payload?.['priority']) : undefined;
  await journal.signal(run, checked satisfies Message, priority);
  return record;
}

/**
 * The run that a control sent to `run` is for: an answer goes to the task that waits for it, a priority to the task that
 * it names.
 * @throws PilotageError `run_not_found`, or `task_not_found` for a task that is not one of the run's.
 */
export async function addressee(journal: Journal, run: string, { type, payload }: Control): Promise<string> {
  if (type === 'PRIORITIZE') {
    const task = payload?.['task_id'];
    if (typeof task !== 'string' || task === run) return run;
    const record = await journal.get(task);
    if (record?.parent === run) return task;
    throw new PilotageError('task_not_found', `The run ${run} has no task ${JSON.stringify(task)}.`);
  }
  if (type !== 'APPROVE' && type !== 'REJECT' && type !== 'RESUME') return run;
  const { pauses, tasks } = foldEntries(await journal.read(run));
  const token = payload?.['token'];
  const waiting = tasks.flatMap((task) => task.pauses);
  if (token !== undefined) return waiting.find((pause) => pause.token === token)?.run ?? run;
  const [only] = waiting;
  return pauses.length === 0 && waiting.length === 1 && only !== undefined ? only.run : run;
}
