/** Tells the tasks that a run waits for what the run was told: their open questions are withdrawn, and their planners hear why. */
import { type Control, defined, PilotageError } from '#core';
import { hasEnded, type Journal } from '#journal';
import { awaitedTasks, foldEntries, type RunState, withdrawals } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';

interface WithdrawDeps extends Pick<DriverDeps, 'journal'> {
  /** Told of each task that something is in its inbox. Absent where nothing is driven. */
  readonly woke?: DriverDeps['woke'];
}

/**
 * Every task that the run waits for, and every task that one of those waits for, has it in its inbox, or had ended, when this returns.
 * Doing it twice changes nothing.
 * @returns the tokens of the questions that they had open, and that it withdraws.
 */
export async function withdrawBelow(deps: WithdrawDeps, state: RunState, control: Control): Promise<readonly string[]> {
  const { journal, woke } = deps;
  const told = toldBelow(state.identity.run, control);
  const withdrawn: string[] = [];
  for (const task of awaitedTasks(state)) {
    if (!(await isOpen(journal, task, state.identity.run))) continue;
    const entries = await journal.read(task);
    const below = foldEntries(entries);
    withdrawn.push(...(await withdrawBelow(deps, below, told)));
    await tell(journal, task, told);
    woke?.(task);
    // What it asks after it has heard the control stays open.
    const hasHeard = entries.some((entry) => entry.kind === 'control' && entry.control.id === told.id);
    const heard = hasHeard ? below : { ...below, fresh: [...below.fresh, told] };
    const withdrawal = withdrawals(heard);
    const closed = below.pauses.filter((pause) => withdrawal(pause) !== undefined);
    withdrawn.push(...closed.map(({ token }) => token));
  }
  return withdrawn;
}

/** The same in each run below: whoever tells a run of it again changes nothing. */
function toldBelow(run: string, { id, type, payload, from, withdraws }: Control): Control {
  if (withdraws !== undefined) return { id, type, ...defined({ payload, from }), withdraws };
  return {
    id: `withdraw:${id}`,
    type: 'INJECT_CONTEXT',
    payload: { ...payload, told_to_the_run_above: run },
    ...defined({ from }),
    withdraws: type === 'REDIRECT' ? type : 'USER_MESSAGE',
  };
}

/** False for a task that has ended, or that another run has started under that id. */
async function isOpen(journal: Journal, task: string, owner: string): Promise<boolean> {
  const record = await journal.get(task);
  return record !== undefined && record.parent === owner && !hasEnded(record.status);
}

async function tell(journal: Journal, task: string, control: Control): Promise<void> {
  try {
    await journal.signal(task, control);
  } catch (error) {
    if (!PilotageError.is(error, 'run_ended')) throw error;
  }
}
