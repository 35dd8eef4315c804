/** A run as far as it can be read: what is wrong with it further on hides nothing of what came before. */
import { decodeEntry, type Entry, PilotageError } from '#core';
import { isWhole, type Journal } from '#journal';
import { applyEntry, foldEntries, openState, type RunState } from '#state';

export interface Readable {
  readonly entries: readonly Entry[];
  /** Why the entry after these cannot be read, or cannot follow. */
  readonly problem?: PilotageError;
}

/**
 * Entries from seq `from` on, up to the last before one that cannot be read.
 * @throws PilotageError `run_not_found`, or a store error.
 */
export async function readable(journal: Journal, run: string, from = 1): Promise<Readable> {
  try {
    return { entries: await journal.read(run, from) };
  } catch (problem) {
    if (!isUnreadable(problem)) throw problem;
    const { entries: stored } = await journal.examine(run);
    const entries: Entry[] = [];
    for (const { seq, text } of stored) {
      const entry = seq === entries.length + 1 ? read(text, seq) : undefined;
      if (entry === undefined || !isWhole(entry)) break;
      entries.push(entry);
    }
    return { entries: entries.slice(from - 1), problem };
  }
}

/** The same, and folded, up to the last before one that cannot follow. @throws PilotageError also for a run without a beginning. */
export async function foldable(journal: Journal, run: string): Promise<Readable & { readonly state: RunState }> {
  const { entries, problem } = await readable(journal, run);
  const [first, ...rest] = entries;
  if (first === undefined) throw problem ?? new PilotageError('journal_corrupt', `The journal of run ${run} is empty.`);
  const state = openState(first);
  for (const [index, entry] of rest.entries()) {
    try {
      applyEntry(state, entry);
    } catch (error) {
      if (!PilotageError.is(error)) throw error;
      const good = entries.slice(0, index + 1);
      return { entries: good, problem: error, state: foldEntries(good) };
    }
  }
  return problem === undefined ? { entries, state } : { entries, problem, state };
}

function read(text: string, seq: number): Entry | undefined {
  try {
    return decodeEntry(text, seq);
  } catch {
    return undefined;
  }
}

/** Whether the error is about this run alone: the journal as a whole can be read. */
export function isUnreadable(error: unknown): error is PilotageError {
  if (!PilotageError.is(error)) return false;
  const { code, data } = error;
  if (code === 'journal_entry_unknown' || code === 'unknown_decision_kind') return true;
  const isOfRun = code === 'journal_corrupt' || code === 'journal_newer' || code === 'artifact_not_found';
  return isOfRun && data?.['run'] !== undefined;
}
