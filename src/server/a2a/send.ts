/** Accepts a client's message: it begins a task, is sent to a task that is under way, or answers the question of one. A message counts once, by its id. */
import { createHash } from 'node:crypto';
import { defined, type InputFile, PilotageError } from '#core';
import type { FileAtUrl, UserMessage } from '#messages';
import type { Run } from '#runtime';
import { fileBytes } from '../request-body.ts';
import type { Visit } from '../visit.ts';
import { A2aRefused } from './errors.ts';
import { answerIn, givenAnswer, pauseMeant, takesWords, textIn, tokenIn } from './questions.ts';
import { type Note, type TaskSeen, type TaskSource, viewTask } from './task.ts';
import { type A2aMessage, type A2aPart, isTerminal } from './wire.ts';

/** The sender of a message. */
export interface A2aSender extends TaskSource {
  readonly visit: Visit;
}

/** What became of a message. */
export interface MessageTaken {
  readonly taskId: string;
  /** Set when the message did not answer the question. Nothing has changed. */
  readonly note?: Note;
}

/** @throws A2aRefused, PilotageError `run_not_found` for a task that the visitor does not have; and as `Session.send` and `Run.answer`. */
export async function acceptMessage(
  source: A2aSender,
  message: A2aMessage,
  agent: string | undefined,
): Promise<MessageTaken> {
  const { visit } = source;
  const { taskId, messageId } = message;
  if (taskId !== undefined && taskId !== '') return tellTask(source, taskId, message);
  const contextId = message.contextId || visit.access.identity.session || contextOf(visit.owner, messageId);
  const session = await visit.session(contextId, 'start', defined({ agent }));
  const sent = await session.send(userMessageOf(message), { id: messageId });
  return { taskId: sent.turn };
}

/** The context that a message without one begins. It is the same when the message is sent again. */
function contextOf({ tenant, user }: { readonly tenant: string; readonly user: string }, messageId: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([tenant, user, messageId]))
    .digest('hex');
  return `context_${digest.slice(0, 32)}`;
}

async function tellTask(source: A2aSender, taskId: string, message: A2aMessage): Promise<MessageTaken> {
  const { contextId, messageId: id } = message;
  const view = await viewTask(source, taskId);
  if (contextId && contextId !== view.task.contextId)
    throw new A2aRefused('INVALID_PARAMS', `The task ${taskId} is not one of the context ${contextId}.`);
  const began = view.record.turnOrigin?.messages.some((each) => each.id === id) === true;
  if (began) return { taskId };
  if (isTerminal(view.task.status.state)) return repeated(view, message);
  // Also while other calls of the task are under way: words would withdraw a question that is open.
  if (view.pauses.length > 0 || tokenIn(message) !== undefined) return answerTask(source, view, message);
  const { run } = await source.visit.run(view.run.id, 'control');
  await run.send(userMessageOf(message), { id });
  return { taskId };
}

/** Accepts a message again that the task has heard before it ended. Any other message comes too late. */
async function repeated({ run, task: { id: taskId } }: TaskSeen, message: A2aMessage): Promise<MessageTaken> {
  try {
    await run.send(userMessageOf(message), { id: message.messageId });
    return { taskId };
  } catch (error) {
    if (!PilotageError.is(error, 'run_ended')) throw error;
    const late = await whyLate(run, message);
    const words = `${late}The task ${taskId} has ended, and takes no more messages. Send one with its contextId alone: it begins a task that knows this one.`;
    throw new A2aRefused('UNSUPPORTED_OPERATION', words);
  }
}

/** What became of the question whose token the message names. */
async function whyLate(run: Run, message: A2aMessage): Promise<string> {
  const token = tokenIn(message);
  const given = givenAnswer(message);
  if (token === undefined || given === undefined) return '';
  try {
    await run.answer(token, given, { id: message.messageId });
    return '';
  } catch (error) {
    if (PilotageError.is(error, 'superseded') || PilotageError.is(error, 'run_ended')) return `${error.message} `;
    if (PilotageError.is(error, 'payload_invalid')) return '';
    throw error;
  }
}

async function answerTask(source: A2aSender, view: TaskSeen, message: A2aMessage): Promise<MessageTaken> {
  const { id: taskId } = view.task;
  const id = message.messageId;
  const { run } = await source.visit.run(view.run.id, 'answer');
  const pause = pauseMeant(message, view.pauses);
  try {
    if (pause !== undefined && takesWords(pause)) {
      await run.send(userMessageOf(message), { id, until: 'applied' });
      return { taskId };
    }
    const token = pause?.token ?? tokenIn(message);
    // Whoever names a question that is closed may send an answer again that was heard: the id says so.
    const isOfClosed = pause === undefined && token !== undefined;
    const answer = isOfClosed ? givenAnswer(message) : pause && answerIn(message, pause);
    if (answer === undefined)
      return { taskId, note: { to: id, text: 'That was no answer, and nothing has happened.' } };
    await run.answer(token, answer, { id });
    return { taskId };
  } catch (error) {
    if (!PilotageError.is(error) || !NO_ANSWER.has(error.code)) throw error;
    return { taskId, note: { to: id, text: `That answer was not taken: ${error.message}` } };
  }
}

/** Codes of answers that were not taken. The task says whether its question is still open. */
const NO_ANSWER: ReadonlySet<string> = new Set([
  'payload_invalid',
  'validation_failed',
  'pause_not_found',
  'pause_expired',
  'superseded',
]);

function userMessageOf(message: A2aMessage): UserMessage {
  const data = message.parts.flatMap((part) => (part.data === undefined ? [] : [JSON.stringify(part.data)]));
  const text = [textIn(message), ...data].filter((each) => each !== '').join('\n\n');
  const inputs = message.parts.flatMap(fileIn);
  return { text, ...(inputs.length > 0 && { inputs }) };
}

function fileIn({ raw, url, mediaType, filename }: A2aPart): (InputFile | FileAtUrl)[] {
  const name = filename ? { fileName: filename } : {};
  if (url !== undefined) return [{ url, ...(mediaType ? { mime: mediaType } : {}), ...name }];
  if (raw === undefined) return [];
  return [{ bytes: fileBytes(raw), mime: mediaType || 'application/octet-stream', ...name }];
}
