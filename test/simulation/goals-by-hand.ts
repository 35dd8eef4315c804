/** A task that had reached its goal, and undid what it did for a run above it that did not: it has two ends, and is a task of its goal until the second. */
import type { Entry } from '#core';
import type { Append } from '#journal';
import { type EndedRun, endingOf, startOf } from './ended-run.ts';
import type { LedgerRun } from './ledger.ts';

/** The seq of the first entry behind its goal; none when it was never asked to undo what it did. */
function goesOnAt({ entries }: Pick<EndedRun, 'entries'>): number | undefined {
  const begun = entries.find(({ kind, seq }) => kind === 'unwinding' && entries[seq - 2]?.kind === 'finished');
  return begun?.seq;
}

/** So often it has ended. */
export function timesEnded(run: Pick<EndedRun, 'entries'>): number {
  return goesOnAt(run) === undefined ? 1 : 2;
}

/** The run as it was when it had reached its goal; itself, when it was not asked to undo what it did. */
export function atItsGoal(run: EndedRun): EndedRun {
  const next = goesOnAt(run);
  if (next === undefined) return run;
  return { ...run, entries: run.entries.slice(0, next - 1), endedAt: run.landed[next - 2] };
}

/** Whether a call that a task has carried out leaves something to undo: something that has a value in it, or was carried out in its turn. */
export function hasToUndo(run: EndedRun | undefined, isMade: (run: EndedRun) => boolean): boolean {
  if (run === undefined || startOf(run)?.undo === undefined) return false;
  const before = atItsGoal(run);
  const ending = endingOf(before);
  const isGoal = ending?.kind === 'finished' && ending.reason === 'goal';
  return isGoal && !before.entries.some(({ kind }) => kind === 'unwinding') && isMade(before);
}

/** The task that this step has undo what it did. */
export function undoneTask(move: Entry | undefined): string | undefined {
  if (move?.kind !== 'moved' || move.undoes === undefined || move.decision.kind !== 'call_tool') return undefined;
  const { args } = move.decision;
  const task = typeof args === 'object' && args !== null && 'task' in args ? args['task'] : undefined;
  return typeof task === 'string' ? task : undefined;
}

/** A task that had reached its goal goes on only to undo what it did, when the run above it wants that. */
export function isToUndo(
  { entries }: LedgerRun,
  { run, entries: [next] }: Append,
  runs: ReadonlyMap<string, LedgerRun>,
): boolean {
  const [first] = entries;
  const last = entries.at(-1);
  const above =
    first?.kind === 'started' && first.task !== undefined ? runs.get(first.task.parent)?.entries : undefined;
  const isWanted = above?.some(
    (entry) =>
      entry.kind === 'moved' &&
      entry.undoes !== undefined &&
      entry.decision.kind === 'call_tool' &&
      JSON.stringify(entry.decision.args) === JSON.stringify({ task: run }),
  );
  const isDone = last?.kind === 'finished' && last.reason === 'goal';
  return isDone && next?.kind === 'unwinding' && isWanted === true;
}
