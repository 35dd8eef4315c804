/** Which run a control is for: the one that it was sent to, or one below it. */
import { type Control, type Entry, PilotageError, type TaskPause } from '#core';
import type { Journal, RunRecord } from '#journal';
import { answerable, nextStep, pausesOfTasks, type RunState } from '#state';
import { isVerdict, mustName } from '../loop/answers.ts';
import { KnownStates } from '../loop/known-states.ts';
import { foldable } from './readable.ts';
import type { RunHost } from './run-host.ts';
import { answeredOf } from './send-control.ts';

/** Where a control goes. */
export interface Addressee {
  readonly run: string;
  /** The pause of a task that it answers. */
  readonly token?: string;
}

/**
 * The run that a control sent to `run` is for: an answer goes to the task that waits for it, a message to the task whose question to
 * the user is what the run waits for, a priority to the task that it names.
 * @throws PilotageError `run_not_found`; `task_not_found` for a task that is not one of the run's; or `pause_not_found` for an answer
 * that names none of several questions of its tasks.
 */
export async function addressee(
  journal: Journal,
  run: string,
  { type, payload }: Control,
  states: KnownStates = new KnownStates(journal),
): Promise<Addressee> {
  if (type === 'PRIORITIZE') {
    const task = payload?.['task_id'];
    if (typeof task !== 'string' || task === run) return { run };
    const record = await journal.get(task);
    if (record?.parent === run) return { run: task };
    throw new PilotageError('task_not_found', `The run ${run} has no task ${JSON.stringify(task)}.`);
  }
  // Every control asks for the record, so that what is said at once keeps its order.
  const record = await journal.get(run);
  if (type === 'USER_MESSAGE' && record?.status === 'paused')
    return { run: await askerBelow(journal, run, record, states) };
  if (!isVerdict({ type })) return { run };
  // A run that has spawned nothing, and is paused itself, is asked for its own answers; most are.
  if (await isAlone(journal, run, record)) return { run };
  const state = await states.of(run);
  const token = payload?.['token'];
  if (typeof token === 'string') return (await askedBelow(journal, state, token)) ?? { run };
  return (state.pauses.length === 0 ? await onlyAskedBelow(journal, state, type) : undefined) ?? { run };
}

/** A run, as its own journal has it. */
interface Read {
  readonly entries: readonly Entry[];
  readonly state: RunState;
}

/** Where this was asked: by a task, which knows itself what became of a question that is not open any more. */
async function askedBelow(journal: Journal, state: RunState, token: string): Promise<Addressee | undefined> {
  if (state.pauses.some((pause) => pause.token === token)) return undefined;
  const waiting = pausesBelow(state).find((pause) => pause.token === token);
  if (waiting !== undefined) return { run: waiting.run, token };
  const entries = await journal.read(state.identity.run);
  if (hasAsked({ entries, state }, token)) return undefined;
  const told = entries.flatMap((entry) => (entry.kind === 'task_paused' ? entry.pauses : []));
  const asker = told.find((pause) => pause.token === token)?.run;
  if (asker !== undefined) return { run: asker };
  for await (const below of runsBelow(journal, state, () => true)) {
    if (hasAsked(below, token)) return { run: below.state.identity.run, token };
  }
  return undefined;
}

function hasAsked({ entries }: Read, token: string): boolean {
  return entries.some((entry) => entry.kind === 'paused' && entry.token === token);
}

/** What an answer that names no question is for, when the run itself asks nothing. */
async function onlyAskedBelow(journal: Journal, above: RunState, type: string): Promise<Addressee | undefined> {
  const asked: Pick<TaskPause, 'run' | 'token' | 'reason'>[] = [];
  // Between two of its steps a run waits for nobody.
  for await (const { state } of above.open === null ? [] : runsBelow(journal, above, isLive)) {
    const { pauses, identity } = state;
    asked.push(...pauses.map(({ token, reason }) => ({ run: identity.run, token, reason })));
  }
  const open = asked.length > 0 ? asked : pausesBelow(above);
  const [only] = open;
  if (open.length > 1) throw mustName(type, open);
  return only && { run: only.run, token: only.token };
}

/** It goes on, or has ended in the last step of the run above. */
function isLive({ end, step }: RunState['tasks'][number], above: RunState): boolean {
  return end === undefined || step === nextStep(above) - 1;
}

/**
 * The runs below, whether they have told what they ask or not: a task tells it when nothing else of it is under way.
 * @param isMeant which tasks of each run. Below one that has ended others may go on.
 */
async function* runsBelow(
  journal: Journal,
  above: RunState,
  isMeant: typeof isLive,
  seen: Set<string> = new Set([above.identity.run]),
): AsyncGenerator<Read> {
  const { open, tasks } = above;
  const own = tasks.flatMap((task) => (isMeant(task, above) ? [task.id] : []));
  const awaited = open?.waits.flatMap(({ task, group }) => (group === undefined ? [task] : [])) ?? [];
  for (const run of new Set([...awaited, ...own])) {
    if (seen.has(run)) continue;
    seen.add(run);
    const { entries, state } = await foldable(journal, run);
    yield { entries, state };
    yield* runsBelow(journal, state, isMeant, seen);
  }
}

/** The task that asks the user something, when nothing else holds the run; otherwise the run itself. */
async function askerBelow(journal: Journal, run: string, record: RunRecord, states: KnownStates): Promise<string> {
  if (await isAlone(journal, run, record)) return run;
  const state = await states.of(run);
  const asked = state.pauses.length === 0 ? pausesOfTasks(state) : [];
  const questions = asked.filter(({ reason }) => reason === 'await_input');
  return questions.length === 1 && questions[0] !== undefined ? questions[0].run : run;
}

async function isAlone(journal: Journal, run: string, record: RunRecord | undefined): Promise<boolean> {
  if (record?.status !== 'paused') return false;
  const [task] = await journal.list({ parent: run, limit: 1 });
  if (task !== undefined) return false;
  // The run may wait for the task of another run, as one of its last entries says.
  const last = await journal.read(run, Math.max(1, record.head - LAST_ENTRIES));
  return (
    last.some((entry) => entry.kind === 'paused') &&
    !last.some(({ kind }) => kind === 'task_paused' || kind === 'awaiting')
  );
}

const LAST_ENTRIES = 8;

/** Every pause of a task, its own or another's, that a run has been told of. */
export function pausesBelow({ tasks, otherPauses }: RunState): readonly TaskPause[] {
  return [...tasks, ...otherPauses].flatMap(({ pauses }) => pauses);
}

/** Questions of tasks below that are answered, and of which the run has not heard yet, though its tasks go on: their tokens. */
export async function answeredBelow(
  host: Pick<RunHost, 'deps' | 'fleet' | 'toolsOf' | 'goOn'>,
  state: RunState | undefined,
): Promise<readonly string[]> {
  const { journal, states } = host.deps;
  if (state === undefined || state.ending !== null || host.toolsOf(state) === undefined) return [];
  const answered: string[] = [];
  for (const { run, token } of pausesOfTasks(state)) {
    // What is stored is looked at first: an answer that is taken between the two is missing there, and its question here.
    const isStored = (await answeredOf({ journal, states }, run, [token])).length > 0;
    const task = await states.of(run).catch(() => undefined);
    if (task === undefined) continue;
    const isAsked = task.pauses.some((pause) => pause.token === token);
    const isAnswered = isAsked
      ? isStored && host.fleet.driven(run) !== undefined
      : task.ending !== null || (await goesOn(host, run));
    if (isAnswered) answered.push(token);
  }
  return answered;
}

/** Whether the run asks these questions and no others. */
export function asksTheSame(state: RunState, tokens: readonly string[]): boolean {
  const asked = answerable(state);
  return asked.length === tokens.length && asked.every(({ token }) => tokens.includes(token));
}

/** The process that took the answer may have died before it told anybody: then the task goes on here, if it can. */
async function goesOn(host: Pick<RunHost, 'deps' | 'fleet' | 'goOn'>, task: string): Promise<boolean> {
  if (host.fleet.driven(task) !== undefined) return true;
  await host.goOn(task);
  return host.fleet.driven(task) !== undefined || (await host.deps.journal.get(task))?.lease !== undefined;
}

/**
 * Whether the run, in a state to come, has read what it was told of this question until now: a task may have told of it, and the answer, while
 * nobody looked.
 */
export async function hearing(journal: Journal, run: string, token: string): Promise<(state: RunState) => boolean> {
  const told = (await journal.inbox(run)).flatMap(({ message }) =>
    message.type === 'TASK_PAUSES' && message.pauses.some((pause) => pause.token === token) ? [message] : [],
  );
  return ({ tasks, otherPauses, otherEnds }) =>
    told.every(
      ({ task, asOf }) =>
        tasks.some(({ id, end, pausesAsOf }) => id === task && (end !== undefined || pausesAsOf >= asOf)) ||
        otherPauses.some((other) => other.task === task && other.asOf >= asOf) ||
        otherEnds.some((end) => end.task === task),
    );
}
