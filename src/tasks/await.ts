/** Waiting for a task: what the wait begins with, and what it comes to. */
import {
  type Awaiting,
  type AwaitTask,
  callEnded,
  defined,
  type EntryBody,
  type ErrorCode,
  type GroupView,
  type Json,
  type Outcome,
  PilotageError,
  type TaskEnd,
  taskCallAt,
  taskCallsOf,
  timeAfter,
} from '#core';
import type { Journal } from '#journal';
import { isJournalGone } from '#journal';
import { foldEntries, groupView, itemIn, liveIn, membersIn, type OpenStep, type RunState, type TaskWait } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { taskEndOf } from './ending.ts';
import { refused } from './spawn.ts';

interface AwaitDeps extends Pick<DriverDeps, 'journal' | 'woke'> {
  readonly state: RunState;
  readonly now: number;
}

/**
 * The entries with which a call begins to wait, or what it comes to at once. The wait is in the journal before this is
 * asked: of two runs that begin to wait for each other, the later one finds the cycle.
 */
export async function beginAwait(
  open: OpenStep,
  call: number,
  decision: AwaitTask,
  deps: AwaitDeps,
): Promise<readonly EntryBody[]> {
  try {
    return await begin(open, call, decision, deps);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    const message = `${decision.taskId}, or a run that it waits for, cannot be read here, and was not awaited: ${error.message}`;
    return [refused({ step: open.move.step, call }, error.code, message)];
  }
}

/** A refusal because of another run is not this run's fault, and trying again does not help. */
function isUnreadable(error: unknown): error is PilotageError {
  if (!PilotageError.is(error) || isJournalGone(error)) return false;
  return UNREADABLE.has(error.code);
}

const UNREADABLE: ReadonlySet<ErrorCode> = new Set([
  'journal_corrupt',
  'journal_entry_unknown',
  'journal_newer',
  'unknown_decision_kind',
]);

async function begin(
  { move: { step } }: OpenStep,
  call: number,
  decision: AwaitTask,
  deps: AwaitDeps,
): Promise<readonly EntryBody[]> {
  const { state, now } = deps;
  const { taskId: task, groupId: group, timeoutMs } = decision;
  const at = { step, call };
  const known = knownEnd(state, task, group);
  if (known === 'unknown group') {
    return [refused(at, 'task_not_found', `This run has no group ${JSON.stringify(group)}.`)];
  }
  if (known !== undefined) return [callEnded(at, { outcome: known, attempts: 0 })];
  const own = itemIn(state.tasks, task) !== undefined;
  const target = await stateOf(task, deps);
  if (target === undefined) return [refused(at, 'task_not_found', `There is no task ${JSON.stringify(task)}.`)];
  const cycle = await cycleTo(state.identity.run, target, deps.journal);
  if (cycle !== undefined) {
    const path = [state.identity.run, ...cycle].join(' → ');
    return [refused(at, 'await_cycle', `Waiting for ${task} would never end: ${path}. The task was not awaited.`)];
  }
  const ended = group === undefined ? await watch(target, at, own, deps) : undefined;
  if (ended !== undefined) return [callEnded(at, { outcome: taskOutcome(ended), attempts: 0 })];
  const awaiting: Awaiting = {
    kind: 'awaiting',
    ...at,
    task,
    ...defined({ group }),
    ...(timeoutMs === undefined ? {} : { until: timeAfter(now, timeoutMs) }),
  };
  return [awaiting];
}

/** The outcome of a wait that is over. */
export function endOfWait(state: RunState, { task, group, until }: TaskWait, now: number): Outcome {
  const known = knownEnd(state, task, group);
  if (known !== undefined && known !== 'unknown group') return known;
  if (until !== undefined && until <= now) {
    const what = group === undefined ? `The task ${task}` : `The group ${group}`;
    return { kind: 'error', error: { code: 'await_timeout', message: `${what} has not ended in time, and goes on.` } };
  }
  // A message came first.
  return { kind: 'value', value: { task_id: task, status: 'running' } };
}

function knownEnd(state: RunState, task: string, group: string | undefined): Outcome | 'unknown group' | undefined {
  if (group !== undefined) {
    const view = groupView(state, group);
    if (view === undefined) return 'unknown group';
    return view.endedAt === undefined ? undefined : { kind: 'value', value: groupValue(view) };
  }
  const end = itemIn(state.tasks, task)?.end ?? state.otherEnds.find((candidate) => candidate.task === task);
  return end && taskOutcome(end);
}

function taskOutcome(end: TaskEnd): Outcome {
  return { kind: 'value', value: taskValue(end) };
}

function taskValue({ task, status, result, error }: TaskEnd): Json {
  return {
    task_id: task,
    status,
    ...defined({ result }),
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
  };
}

function groupValue({ id, status, members, reason }: GroupView): Json {
  return {
    group_id: id,
    status,
    members: members.map((member) =>
      member.end === undefined ? { task_id: member.id, status: 'running' } : taskValue(member.end),
    ),
    ...defined({ reason }),
  };
}

/** A run of the same tenant, user and session; anything else is not there. */
async function stateOf(run: string, { journal, state }: AwaitDeps): Promise<RunState | undefined> {
  const found = await readState(run, journal);
  if (found === undefined) return undefined;
  const { tenant, user, session } = state.identity;
  const { identity } = found;
  return identity.tenant === tenant && identity.user === user && identity.session === session ? found : undefined;
}

async function readState(run: string, journal: Journal): Promise<RunState | undefined> {
  try {
    return foldEntries(await journal.read(run));
  } catch (error) {
    if (PilotageError.is(error, 'run_not_found')) return undefined;
    throw error;
  }
}

/** The way from a run back to `own`, over the runs that each waits for. */
async function cycleTo(own: string, from: RunState, journal: Journal): Promise<readonly string[] | undefined> {
  const seen = new Set<string>();
  const search = async (state: RunState): Promise<readonly string[] | undefined> => {
    const { run } = state.identity;
    if (run === own) return [run];
    if (seen.has(run)) return undefined;
    seen.add(run);
    for (const target of targetsOf(state)) {
      const next = await readState(target, journal);
      const way = next && (await search(next));
      if (way !== undefined) return [run, ...way];
    }
    return undefined;
  };
  return search(from);
}

/**
 * The runs that a run waits for: also those that it is about to wait for, and its tasks, as it may come to wait for what is
 * set aside for them.
 */
function targetsOf({ open, tasks, ending }: RunState): readonly string[] {
  if (ending !== null) return [];
  const live = liveIn(tasks).map(({ id }) => id);
  if (open === null) return live;
  const { decision } = open.move;
  const waiting = open.waits.flatMap(({ task, group }) =>
    group === undefined ? [task] : membersIn(tasks, group).map(({ id }) => id),
  );
  const about = taskCallsOf(decision).flatMap((call) => {
    const made = open.calls[call] === null ? taskCallAt(decision, call) : undefined;
    return made?.kind === 'await_task' ? [made.taskId] : [];
  });
  return [...live, ...waiting, ...about];
}

/** Asks to be told of the end. The owner of a task is told in any case. */
async function watch(
  target: RunState,
  { step, call }: { readonly step: number; readonly call: number },
  own: boolean,
  deps: AwaitDeps,
): Promise<TaskEnd | undefined> {
  // The end of an own task comes through the inbox, where its cost is taken too.
  if (own) return undefined;
  const ended = taskEndOf(target);
  if (ended !== undefined) return ended;
  const { run } = deps.state.identity;
  const { run: to } = target.identity;
  try {
    await deps.journal.signal(to, { id: `watch:${run}:${step}.${call}`, type: 'WATCH', by: run });
    deps.woke(to);
    return undefined;
  } catch (error) {
    if (!PilotageError.is(error, 'run_ended')) throw error;
    const now = await readState(to, deps.journal);
    return now && taskEndOf(now);
  }
}
