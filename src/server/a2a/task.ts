/** A run as a task of A2A. It is read from the journal each time, so that every process tells the same, also after a restart. */
import { defined, type Json, type TaskPause } from '#core';
import type { RunRecord } from '#journal';
import type { Run, RunResult } from '#runtime';
import type { RunSnapshot } from '#state';
import { openPauses } from '../open-pauses.ts';
import { loginOf } from '../pause-words.ts';
import type { ErrorText } from '../problem.ts';
import type { Visit } from '../visit.ts';
import { askedWords, pauseData } from './questions.ts';
import {
  type A2aMessage,
  type A2aPart,
  type A2aTaskStatus,
  type Artifact,
  isTerminal,
  type Task,
  type TaskStateName,
} from './wire.ts';

/** A task, with the state of its run. */
export interface TaskSeen {
  readonly task: Task;
  /** The run that is under way. It is another one than the task's when the conversation was handed over. */
  readonly run: Run;
  readonly record: RunRecord;
  readonly state: RunSnapshot;
  /** The open questions. The task waits for answers to them when nothing else of it is under way. */
  readonly pauses: readonly TaskPause[];
  /** The last words of the run, with the step that said them. */
  readonly said: { readonly step: number; readonly text: string } | undefined;
}

export interface TaskSource {
  /** Finds the runs that may be seen. @throws PilotageError `run_not_found`. */
  readonly runs: Pick<Visit, 'run'>;
  readonly errorText: ErrorText;
}

/** Why a message did not answer the question. */
export interface Note {
  /** The id of the message. */
  readonly to: string;
  readonly text: string;
}

/** The limit for the files that come with a task: their total size in bytes. */
const MAX_FILE_BYTES = 1_048_576;
const ANSWER = 'answer';

/**
 * @param options `historyLength`: how many of the last messages come with the task; default all. `note`: to a message that did not answer the question.
 * @throws PilotageError `run_not_found`.
 */
export async function viewTask(
  { runs, errorText }: TaskSource,
  id: string,
  options: { readonly historyLength?: number; readonly note?: Note } = {},
): Promise<TaskSeen> {
  const { run: first, record: begun } = await runs.run(id);
  const state = await first.state();
  const { run: now } = state.identity;
  const { run, record } = now === id ? { run: first, record: await first.record() } : await runs.run(now);
  const pauses = openPauses(state);
  const result = state.ending === null ? undefined : await run.result();
  const of = { taskId: id, contextId: begun.identity.session };
  const said = lastSaid(state);
  const status = statusOf(state, { record, pauses, result, errorText, of, note: options.note });
  // What it has said stays, also when it came to no answer.
  const words = status.state === 'TASK_STATE_COMPLETED' ? undefined : said?.text;
  const artifacts = isTerminal(status.state) ? await artifactsOf(run, result, words) : asArtifacts(words);
  const history = historyOf(begun, of, options.historyLength);
  const task: Task = {
    id,
    contextId: of.contextId,
    status,
    ...(artifacts.length > 0 && { artifacts }),
    ...(history.length > 0 && { history }),
  };
  return { task, run, record, state, pauses, said };
}

/** The last words of the run that are recorded. */
function lastSaid({ open, steps }: RunSnapshot): TaskSeen['said'] {
  if (open?.text) return { step: open.step, text: open.text };
  const last = steps.findLast(({ text = '' }) => text !== '');
  return last?.text === undefined ? undefined : { step: last.index, text: last.text };
}

interface Facts {
  readonly record: RunRecord;
  readonly pauses: readonly TaskPause[];
  readonly result: RunResult | undefined;
  readonly errorText: ErrorText;
  readonly of: { readonly taskId: string; readonly contextId: string };
  readonly note: Note | undefined;
}

function statusOf(state: RunSnapshot, facts: Facts): A2aTaskStatus {
  const { record, pauses, result, errorText, of, note } = facts;
  const timestamp = new Date(state.updatedAt).toISOString();
  const referenceTaskIds = state.tasks.map(({ id }) => id);
  const saying = (name: TaskStateName, parts: readonly A2aPart[]): A2aTaskStatus => ({
    state: name,
    message: messageOf({ of, about: name, referenceTaskIds }, parts),
    timestamp,
  });
  // A message is what refers to other tasks.
  const telling = (name: TaskStateName): A2aTaskStatus =>
    referenceTaskIds.length === 0 ? { state: name, timestamp } : saying(name, [{ text: SHARED }]);
  if (result?.status === 'failed') return saying('TASK_STATE_FAILED', [{ text: errorText(result.error) }]);
  if (result?.status === 'finished') {
    const name = STATE_OF[result.reason] ?? (isRefused(state) ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED');
    if (name === 'TASK_STATE_COMPLETED') return telling(name);
    return saying(name, [{ text: result.answer ?? `The task ended without its goal (${result.reason}).` }]);
  }
  if (pauses.length > 0 && record.status === 'paused')
    return asksWhat({ of, pauses, timestamp, note, referenceTaskIds });
  const isBegun = record.status !== 'pending' && record.waits !== true;
  const name = isBegun ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED';
  if (note === undefined) return telling(name);
  const about = `${name}+${note.to}`;
  return { state: name, message: messageOf({ of, about, referenceTaskIds }, [{ text: note.text }]), timestamp };
}

const SHARED = 'Other tasks do a part of this one.';

/** Whether the policy has refused a call of the last step that had any. */
function isRefused({ steps }: RunSnapshot): boolean {
  const last = steps.findLast(({ calls }) => calls.length > 0)?.calls ?? [];
  return last.some(({ outcome }) => outcome?.kind === 'error' && outcome.error.code === 'policy_refused');
}

interface Asking extends Omit<Saying, 'about'> {
  readonly pauses: readonly TaskPause[];
  readonly timestamp: string;
  readonly note?: Note | undefined;
}

/** The status of a task that waits for its client: in words, and as data. */
export function asksWhat({ pauses, timestamp, note, ...saying }: Asking): A2aTaskStatus {
  const words = [...(note === undefined ? [] : [note.text]), askedWords(pauses)].join('\n');
  const parts: readonly A2aPart[] = [{ text: words }, { data: { pauses: pauses.map(pauseData) } }];
  const state = pauses.some((pause) => loginOf(pause) !== undefined)
    ? 'TASK_STATE_AUTH_REQUIRED'
    : 'TASK_STATE_INPUT_REQUIRED';
  const about = [...pauses.map(({ token }) => token), ...(note === undefined ? [] : [note.to])].join('+');
  return { state, message: messageOf({ ...saying, about }, parts), timestamp };
}

interface Saying {
  readonly of: Facts['of'];
  /** What is said: the questions that are open, or the state. The id of the message is made of it, so that it is the same whoever asks and whenever. */
  readonly about: string;
  readonly referenceTaskIds?: readonly string[];
}

function messageOf({ of, about, referenceTaskIds = [] }: Saying, parts: readonly A2aPart[]): A2aMessage {
  const messageId = `${of.taskId}:${about}`;
  return {
    ...{ messageId, ...of, role: 'ROLE_AGENT' as const, parts },
    ...(referenceTaskIds.length > 0 && { referenceTaskIds }),
  };
}

const STATE_OF: Readonly<Record<string, TaskStateName>> = {
  goal: 'TASK_STATE_COMPLETED',
  length: 'TASK_STATE_COMPLETED',
  continued: 'TASK_STATE_COMPLETED',
  handed_over: 'TASK_STATE_COMPLETED',
  cancelled: 'TASK_STATE_CANCELED',
  refused: 'TASK_STATE_REJECTED',
  constraints_conflict: 'TASK_STATE_REJECTED',
};

/** The artifact with the words of a run. */
export function answerArtifact(parts: readonly A2aPart[]): Artifact {
  return { artifactId: ANSWER, name: ANSWER, parts };
}

function asArtifacts(text: string | undefined): readonly Artifact[] {
  return text === undefined ? [] : [answerArtifact([{ text }])];
}

/** @param words what stands for an answer when there is none. */
async function artifactsOf(
  run: Run,
  result: RunResult | undefined,
  words: string | undefined,
): Promise<readonly Artifact[]> {
  if (result?.status !== 'finished') return asArtifacts(words);
  const { answer, payload, stored, files = [] } = result;
  const parts: A2aPart[] = [];
  const isWords = payload === undefined || payload === null || typeof payload === 'string';
  if (answer !== undefined && (isWords || hasWords(payload))) parts.push({ text: answer });
  if (!isWords && stored === undefined) parts.push({ data: payload });
  if (stored !== undefined && answer !== undefined && parts.length === 0) parts.push({ text: answer });
  const made: Artifact[] = parts.length === 0 ? [...asArtifacts(words)] : [answerArtifact(parts)];
  let room = MAX_FILE_BYTES;
  for (const [index, file] of files.entries()) {
    room -= file.sizeBytes;
    const found = room < 0 ? undefined : await run.artifact(file.artifactRef);
    if (found === undefined) continue;
    const raw = Buffer.from(found.bytes).toString('base64');
    const about = defined({ filename: file.fileName });
    made.push({ artifactId: `file-${index + 1}`, parts: [{ raw, mediaType: file.mime, ...about }] });
  }
  return made;
}

function hasWords(payload: Json): boolean {
  return (
    typeof payload === 'object' && payload !== null && 'answer' in payload && typeof payload['answer'] === 'string'
  );
}

/** The message that began the task. What the agent says is in the artifacts and the status. */
function historyOf(
  { query, turnOrigin }: RunRecord,
  { taskId, contextId }: Facts['of'],
  length: number | undefined,
): readonly A2aMessage[] {
  const messageId = turnOrigin?.messages.at(-1)?.id ?? `${taskId}:1`;
  const history: A2aMessage[] = [{ messageId, taskId, contextId, role: 'ROLE_USER', parts: [{ text: query }] }];
  return length === undefined ? history : history.slice(Math.max(0, history.length - length));
}
