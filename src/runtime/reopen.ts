/** A run that has failed goes on from where it was: that is written down, and then it is driven like any other. */
import { type Caller, type Clock, deepFreeze, defined, type Entry, PilotageError, type TaskMessage } from '#core';
import type { Journal, Told } from '#journal';
import { answerable, failedPlan, foldEntries, isPaused, type RunState, waitChanges } from '#state';
import { endMessage, taskEndOf } from '../tasks/ending.ts';
import { retriesOf } from '../tasks/retries.ts';
import { noteReopened } from './part-store.ts';

export interface Reopening {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly owner: string;
  readonly leaseMs: number;
  /** From 0 up to, not including, 1. */
  random(): number;
}

export interface ReopenAs {
  readonly by?: Caller | undefined;
  /** Set when nodes of the run's plan are carried out once more. `nodes`: their ids; by default all that have failed. */
  readonly retry?: { readonly nodes?: readonly string[] | undefined };
}

/**
 * Nothing happens when the run has not failed. When somebody else is about to reopen it, that is waited for: whoever looks at the run
 * then does not see the failure of before. Tasks that carry out nodes that are retried are reopened too.
 * @returns the run, and the tasks that were reopened with it.
 * @throws PilotageError `run_ended` for a run that ended otherwise, or a task whose owner was told of the failure; `payload_invalid` for a
 * retry of a run without a plan that has failed, or of nodes that have not; `budget_exceeded` when what a task may still use is not left.
 */
export async function reopen(ports: Reopening, run: string, as: ReopenAs): Promise<readonly string[]> {
  assertReopens(foldEntries(await ports.journal.read(run)));
  return [run, ...(await reopenTree(ports, run, as))];
}

/** @returns the tasks that were reopened. */
async function reopenTree(ports: Reopening, run: string, as: ReopenAs): Promise<readonly string[]> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const news = untilNews(ports, run, tries);
    try {
      if ((await ports.journal.get(run))?.status !== 'failed' || (await tryToReopen(ports, run, as))) break;
      await news.come;
    } finally {
      news.stop();
    }
  }
  return as.retry === undefined ? [] : reopenTasks(ports, run, as.by);
}

/**
 * Reopens the tasks that carry out nodes which are retried: also those of a retry whose process died before it had come to them.
 * @returns the tasks that were reopened.
 */
export async function reopenTasks(ports: Reopening, run: string, by: Caller | undefined): Promise<readonly string[]> {
  const { open, tasks } = foldEntries(await ports.journal.read(run));
  const waited = tasks.filter(({ id, end }) => end === undefined && open?.waits.some(({ task }) => task === id));
  const reopened: string[] = [];
  for (const { id } of waited) {
    if ((await ports.journal.get(id))?.status !== 'failed') continue;
    const task = foldEntries(await ports.journal.read(id));
    const retry = failedPlan(task) === undefined ? {} : { retry: {} };
    reopened.push(id, ...(await reopenTree(ports, id, { by, ...retry })));
  }
  return reopened;
}

const MAX_TRIES = 10;
const LEAST_DELAY_MS = 50;

/** What the other one writes; or a while, by chance, for it may have died, and two who lose to each other are not to meet again. */
export function untilNews(
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
  { by, retry }: ReopenAs,
): Promise<boolean> {
  const claim = await journal.claim({ run, owner, leaseMs, reopens: true });
  if (claim === undefined) return false;
  const { fence } = claim;
  try {
    const entries = await journal.read(run);
    const state = foldEntries(entries);
    if (state.ending?.kind === 'failed') {
      const retries = retry === undefined ? undefined : await retriesOf(journal, state, retry.nodes, entries);
      const entry: Entry = deepFreeze({
        kind: 'reopened',
        ...defined({ by, retries }),
        seq: state.head + 1,
        at: clock.now(),
      });
      const tells = await missedNews(journal, state);
      const waits = waitChanges(state, [entry]);
      await noteReopened(journal, state.identity);
      const changes = { status: 'running', tells, ...defined({ waits }) } as const;
      await journal.append({ run, fence, expected: state.head, entries: [entry], ...changes });
    }
    await journal.release({ run, fence }, { seenSignals: claim.signals });
    return true;
  } catch (error) {
    if (PilotageError.is(error, 'lease_lost') || PilotageError.is(error, 'journal_conflict')) return false;
    if (isRefusal(error)) await journal.release({ run, fence }, { seenSignals: claim.signals });
    throw error;
  }
}

/** The run stays as it is. */
function isRefusal(error: unknown): boolean {
  const codes = ['payload_invalid', 'budget_exceeded', 'session_busy'] as const;
  return codes.some((code) => PilotageError.is(error, code));
}

function assertReopens({ ending, task, erased, unwinding, identity: { run } }: RunState): void {
  if (ending === null) return;
  if (erased !== null) throw new PilotageError('run_ended', `The content of run ${run} was erased: it cannot go on.`);
  if (ending.kind === 'finished') throw new PilotageError('run_ended', `The run ${run} has ended: ${ending.reason}.`);
  if (unwinding !== null) {
    const message = `The run ${run} has undone what it had done, as it was told to (onFail). It cannot go on from there: start it anew, or fork it, which goes on as if nothing were undone.`;
    throw new PilotageError('run_unwound', message, { data: { run } });
  }
  if (task === null) return;
  throw new PilotageError(
    'run_ended',
    `The task ${run} has failed, and ${task.parent}, which it worked for, was told so and has gone on. Resume or retry that run, or fork this one.`,
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
    if (ended !== undefined) messages.push(endMessage(state, ended));
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
