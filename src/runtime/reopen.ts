/** A run that has failed goes on from where it was: that is written down, and then it is driven like any other. */
import { type Caller, type Clock, deepFreeze, defined, type Entry, PilotageError, type TaskMessage } from '#core';
import type { Journal, Told } from '#journal';
import { answerable, foldEntries, isPaused, type RunState } from '#state';
import { taskEndOf } from '../tasks/ending.ts';

export interface Reopening {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly owner: string;
  readonly leaseMs: number;
  /** From 0 up to, not including, 1. */
  random(): number;
}

/**
 * Nothing happens when the run has not failed. When somebody else is about to reopen it, that is waited for: whoever looks at the run
 * then does not see the failure of before.
 * @throws PilotageError `run_ended` for a run that ended otherwise, or a task whose owner was told of the failure.
 */
export async function reopen(ports: Reopening, run: string, by: Caller | undefined): Promise<void> {
  assertReopens(foldEntries(await ports.journal.read(run)));
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const news = untilNews(ports, run, tries);
    try {
      if ((await ports.journal.get(run))?.status !== 'failed' || (await tryToReopen(ports, run, by))) return;
      await news.come;
    } finally {
      news.stop();
    }
  }
}

const MAX_TRIES = 10;
const LEAST_DELAY_MS = 50;

/** What the other one writes; or a while, by chance, for it may have died, and two who lose to each other are not to meet again. */
function untilNews(
  { journal, clock, random }: Reopening,
  run: string,
  tries: number,
): { come: Promise<void>; stop(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unwatch = journal.watch(run, resolve);
  const cancel = clock.after(LEAST_DELAY_MS * (1 + random() * 2 ** tries), resolve);
  const stop = (): void => {
    unwatch();
    cancel();
  };
  return { come: promise, stop };
}

/** False: somebody else has claimed it, and may not have written it down. */
async function tryToReopen(
  { journal, clock, owner, leaseMs }: Reopening,
  run: string,
  by: Caller | undefined,
): Promise<boolean> {
  const claim = await journal.claim({ run, owner, leaseMs, reopens: true });
  if (claim === undefined) return false;
  const { fence } = claim;
  try {
    const state = foldEntries(await journal.read(run));
    if (state.ending?.kind === 'failed') {
      const entry: Entry = deepFreeze({
        kind: 'reopened',
        ...defined({ by }),
        seq: state.head + 1,
        at: clock.now(),
      });
      const tells = await missedNews(journal, state);
      await journal.append({ run, fence, expected: state.head, entries: [entry], status: 'running', tells });
    }
    await journal.release({ run, fence }, { seenSignals: claim.signals });
    return true;
  } catch (error) {
    if (PilotageError.is(error, 'lease_lost') || PilotageError.is(error, 'journal_conflict')) return false;
    throw error;
  }
}

function assertReopens({ ending, task, identity: { run } }: RunState): void {
  if (ending === null) return;
  if (ending.kind === 'finished') throw new PilotageError('run_ended', `The run ${run} has ended: ${ending.reason}.`);
  if (task === null) return;
  throw new PilotageError(
    'run_ended',
    `The task ${run} has failed, and ${task.parent}, which it worked for, was told so and has gone on. Resume that run, or fork this one.`,
    { data: { run, parent: task.parent } },
  );
}

/** What happened to its tasks since the run failed: a run that has ended is told nothing. */
async function missedNews(journal: Journal, { identity: { run }, tasks }: RunState): Promise<readonly Told[]> {
  const messages: TaskMessage[] = [];
  for (const { id, end } of tasks) {
    if (end !== undefined) continue;
    const state = foldEntries(await journal.read(id));
    const ended = taskEndOf(state);
    if (ended !== undefined) messages.push({ id: `ended:${id}`, type: 'TASK_ENDED', end: ended });
    else if (isPaused(state)) {
      const { head } = state;
      messages.push({
        id: `pauses:${id}:${head}`,
        type: 'TASK_PAUSES',
        task: id,
        pauses: answerable(state),
        asOf: head,
      });
    }
  }
  return messages.map((message) => ({ run, message }));
}
