/** What a run calls its task is its task, and runs say nothing to those that are none of theirs. */
import { type EndedRun, entriesOf, parentOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';

type Runs = ReadonlyMap<string, EndedRun>;

export function checkOrigins(run: EndedRun, runs: Runs, ledger: Ledger): void {
  for (const { task } of entriesOf(run, 'spawned')) {
    const child = runs.get(task);
    if (child !== undefined && parentOf(child) !== run.id) {
      ledger.violated('ids', `it took ${task} for its task, which somebody else had started`, run.id);
    }
  }
  for (const { message } of run.messages.values()) {
    const by = senderOf(message.id);
    if (by !== undefined && !isBelow(run, by, runs)) {
      ledger.violated('ids', `${by} has it stopped, and is none of the runs above it`, run.id);
    }
    if (message.type === 'TASK_ENDED' && parentOf(runs.get(message.end.task)) !== run.id) {
      if (!hasAsked(run, runs.get(message.end.task)))
        ledger.violated('ids', `it is told of the end of ${message.end.task}, which is none of its tasks`, run.id);
    }
  }
}

/** Whether the one run has asked the other to be told. Before it has noted that it waits it may find that the other has ended. */
function hasAsked(run: EndedRun, other: EndedRun | undefined): boolean {
  const asked = [...(other?.messages.values() ?? [])];
  return asked.some(({ message }) => message.type === 'WATCH' && message.by === run.id);
}

/** The run that stops another because it has ended, or does not need it any more. */
function senderOf(id: string): string | undefined {
  return /^(?:cancel|dismiss):(.+)$/.exec(id)?.[1];
}

function isBelow(run: EndedRun, above: string, runs: Runs): boolean {
  for (let at = parentOf(run); at !== undefined; at = parentOf(runs.get(at))) {
    if (at === above) return true;
  }
  return false;
}
