/** A task that has reached its goal undoes what it did, since the run above it ends without having reached its own. */
import { deepFreeze, type Entry, type ErrorData, PilotageError, timeAfter } from '#core';
import { foldEntries, type RunState } from '#state';
import { noteReopened } from './part-store.ts';
import { type Reopening, untilNews } from './reopen.ts';

const MAX_TRIES = 10;

/**
 * Written down, once: the task is driven like any other run then, and tells the run above it how it has ended.
 * @returns why it cannot be.
 */
export async function undoTask(ports: Reopening, task: string, owner: string): Promise<ErrorData | undefined> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const news = untilNews(ports, task, tries);
    try {
      const state = foldEntries(await ports.journal.read(task));
      // Told before, perhaps by a process that has died since.
      if (state.unwinding !== null) return undefined;
      const why = whyNot(state, owner);
      if (why !== undefined) return { code: 'undo_failed', message: `The task ${task} was not undone: ${why}.` };
      if (await tryTo(ports, state, owner)) return undefined;
      await news.come;
    } finally {
      news.stop();
    }
  }
  return {
    code: 'undo_failed',
    message: `The task ${task} was not undone: another process has it, and does not let go of it.`,
  };
}

function whyNot({ task, ending, erased, undo }: RunState, owner: string): string | undefined {
  if (task?.parent !== owner) return 'it is of another run';
  if (erased !== null) return 'its content was erased';
  if (undo === null) return 'its agent keeps what it has done';
  return ending?.kind === 'finished' && ending.reason === 'goal' ? undefined : 'it has not reached its goal';
}

/** False: somebody else has claimed it. */
async function tryTo(
  { journal, clock, owner: by, leaseMs }: Reopening,
  state: RunState,
  owner: string,
): Promise<boolean> {
  const { run } = state.identity;
  const claim = await journal.claim({ run, owner: by, leaseMs, reopens: 'undo' });
  if (claim === undefined) return false;
  const { fence } = claim;
  const at = clock.now();
  const entry: Entry = deepFreeze({
    kind: 'unwinding',
    ending: { kind: 'finished', reason: 'cancelled', metadata: { steering: 'undone', run_id: run, undone_for: owner } },
    until: timeAfter(at, state.undo?.timeoutMs ?? 0),
    seq: state.head + 1,
    at,
  });
  try {
    await noteReopened(journal, state.identity);
    await journal.append({ run, fence, expected: state.head, entries: [entry], status: 'running' });
    await journal.release({ run, fence }, { seenSignals: claim.signals });
    return true;
  } catch (error) {
    if (PilotageError.is(error, 'lease_lost') || PilotageError.is(error, 'journal_conflict')) return false;
    throw error;
  }
}
