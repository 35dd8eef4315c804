/** Pauses as interrupts of AG-UI, and a client's answers to them. */
import {
  asksForBudget,
  asksOpenly,
  type EventPayloads,
  isJsonObject,
  type Json,
  type JsonObject,
  PilotageError,
  type TaskPause,
} from '#core';
import { clientCallId } from '#messages';
import type { PauseAnswer } from '#runtime';
import { questionOf, shownOf } from '../pause-words.ts';
import { rememberIn } from '../remember-in.ts';
import type { Mapper } from './mapper.ts';
import type { Interrupt, ResumeEntry } from './protocol.ts';

/** The protocol's own words for common reasons. */
const REASONS: Readonly<Record<string, string>> = {
  await_input: 'input_required',
  external_event: 'confirmation',
  constraints_conflict: 'confirmation',
};

const YES_OR_NO: JsonObject = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    remember: {
      description: 'The answer holds for questions to come: { scope: run, session or user, match, expiresInMs }.',
    },
    editedArgs: { description: 'The arguments in whole, in the place of those that were asked for.' },
    reason: { type: 'string' },
  },
  required: ['approved'],
};
const WORDS: JsonObject = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const WHAT_BECAME: JsonObject = {
  type: 'object',
  properties: { happened: { type: 'boolean' }, value: {}, reason: { type: 'string' } },
  required: ['happened'],
};

/** The question as a client shows it. */
export function interruptOf(pause: TaskPause, mapper: Mapper): Interrupt {
  const { token, run, expiresAt } = pause;
  const toolCallId = mapper.callOf(token) ?? clientCallId(pause);
  return {
    id: token,
    reason: reasonOf(pause, toolCallId),
    message: questionOf(pause),
    ...(toolCallId !== undefined && { toolCallId }),
    responseSchema: schemaFor(pause),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    metadata: { ...shownOf(pause), pilotage: { run, reason: pause.reason } },
    ...(mapper.isTask(run) && { subagentRunId: run }),
  };
}

function reasonOf(pause: TaskPause, toolCallId: string | undefined): string {
  const { reason, wait } = pause;
  if (asksForBudget(pause)) return 'pilotage:budget';
  if (reason === 'approval_required') return toolCallId === undefined ? 'confirmation' : 'tool_call';
  if (wait !== undefined) return 'input_required';
  return REASONS[reason] ?? `pilotage:${reason}`;
}

function schemaFor(pause: TaskPause): JsonObject {
  if (pause.schema !== undefined) return pause.schema;
  switch (kindOf(pause)) {
    case 'approve':
      return YES_OR_NO;
    case 'settle':
      return WHAT_BECAME;
    default:
      return WORDS;
  }
}

/** Which kind of answer the pause takes. */
function kindOf(pause: Pick<TaskPause, 'reason' | 'schema' | 'wait'>): PauseAnswer['kind'] {
  if (pause.wait !== undefined) return 'answer';
  if (pause.reason === 'in_doubt') return 'settle';
  return asksOpenly(pause) || pause.reason === 'plan_failed' ? 'payload' : 'approve';
}

/**
 * A client's answer as an answer to the pause. It is `undefined` when the user refuses to answer and the pause takes no refusal: then the run has to end.
 * @throws PilotageError `payload_invalid` for an answer that says neither yes nor no.
 */
export function pauseAnswerOf(
  { interruptId, status, payload }: ResumeEntry,
  pause: TaskPause,
): PauseAnswer | undefined {
  const kind = kindOf(pause);
  if (status === 'cancelled') return kind === 'settle' || kind === 'payload' ? undefined : rejection(payload);
  switch (kind) {
    case 'answer':
      return { kind, value: pause.schema === undefined ? asWords(payload) : (payload ?? null) };
    case 'payload':
      return { kind, payload: isJsonObject(payload) ? payload : { text: wordsOf(payload) } };
    case 'settle':
      return settlement(interruptId, payload);
    default:
      return decision(interruptId, payload);
  }
}

function rejection(payload: Json | undefined): PauseAnswer {
  const reason = isJsonObject(payload) ? payload['reason'] : undefined;
  return { kind: 'reject', ...(typeof reason === 'string' && { reason }), ...rememberIn(payload) };
}

function decision(id: string, payload: Json | undefined): PauseAnswer {
  const approved = isJsonObject(payload) ? payload['approved'] : payload;
  if (approved === false) return rejection(payload);
  // Only an explicit yes lets something happen.
  if (approved !== true) throw unclear(id, '{ approved: true } or { approved: false }');
  const args = isJsonObject(payload) ? payload['editedArgs'] : undefined;
  return { kind: 'approve', ...(args !== undefined && args !== null && { args }), ...rememberIn(payload) };
}

function settlement(id: string, payload: Json | undefined): PauseAnswer {
  const happened = isJsonObject(payload) ? payload['happened'] : undefined;
  if (happened === false) return { kind: 'settle', happened };
  if (happened !== true || !isJsonObject(payload))
    throw unclear(id, '{ happened: true, value } or { happened: false }');
  return { kind: 'settle', happened, value: payload['value'] ?? null };
}

/** A call that asks without a schema gets words, as from every client: the form of such a question is `{ text }`. */
function asWords(payload: Json | undefined): Json {
  const text = isJsonObject(payload) && Object.keys(payload).length === 1 ? payload['text'] : undefined;
  return text ?? payload ?? null;
}

function wordsOf(payload: Json | undefined): string {
  if (payload === undefined || payload === null) return '';
  return typeof payload === 'string' ? payload : JSON.stringify(payload);
}

function unclear(id: string, fits: string): PilotageError {
  const message = `The answer to the interrupt ${id} does not say what is to be done. Give as payload ${fits}.`;
  return new PilotageError('payload_invalid', message);
}

type Resumed = EventPayloads['pause.resumed'];

/** Whether the client's answer is the one that was given before. */
export function isSameAnswer(answer: PauseAnswer | undefined, { verdict, args, value, payload }: Resumed): boolean {
  if (answer === undefined) return verdict !== 'approve' && verdict !== 'answer';
  switch (answer.kind) {
    case 'approve':
      return verdict === 'approve' && isEqual(answer.args, args);
    case 'reject':
      return verdict === 'reject';
    case 'answer':
      return verdict === 'answer' && isEqual(answer.value, value ?? null);
    case 'payload':
      return verdict === 'resume' && isEqual(answer.payload, payload);
    case 'settle':
      return verdict === 'settle';
    default:
      return answer satisfies never;
  }
}

function isEqual(one: Json | undefined, other: Json | undefined): boolean {
  return sorted(one) === sorted(other);
}

/** The value as JSON with sorted keys. */
function sorted(value: Json | undefined): string | undefined {
  return JSON.stringify(value, (_, each: Json) =>
    isJsonObject(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each,
  );
}
