/** The questions of a task, in words and as data, and how a message answers them. */
import { asksForBudget, asksOpenly, defined, isJsonObject, type Json, type JsonObject, type TaskPause } from '#core';
import type { PauseAnswer } from '#runtime';
import { loginOf, questionOf, shownOf } from '../pause-words.ts';
import { rememberIn } from '../remember-in.ts';
import type { A2aMessage } from './wire.ts';

/** The questions in words, for a person or a model. */
export function askedWords(pauses: readonly TaskPause[]): string {
  const [first] = pauses;
  if (first === undefined) return '';
  if (pauses.length === 1) return `${questionOf(first)} ${howOf(first)}`;
  const lines = pauses.map((pause) => `- ${pause.token}: ${questionOf(pause)} ${howOf(pause)}`);
  return `${pauses.length} questions are open. Name the token of the one that you answer in a data part, such as {"token": "${first.token}", "approved": true}.\n${lines.join('\n')}`;
}

/** The question as data, for a form or a program. */
export function pauseData(pause: TaskPause): JsonObject {
  const { token, reason, payload, schema, expiresAt, text, missing } = pause;
  const shown = payload && shownOf(pause);
  return { token, reason, ...defined({ payload: shown, schema, expiresAt, text, missing }) };
}

function howOf(pause: TaskPause): string {
  const { reason, payload = {}, schema, wait } = pause;
  if (asksForBudget(pause)) return 'The task goes on when whoever runs the agent has raised it.';
  if (reason === 'client_tool') return 'Answer with a data part {"value": …}: what it gave.';
  if (wait !== undefined || asksOpenly(pause))
    return schema === undefined ? 'Answer with words.' : `Answer with a data part that fits ${JSON.stringify(schema)}.`;
  if (reason === 'in_doubt') return 'Answer with a data part {"happened": true, "value": …} or {"happened": false}.';
  if (loginOf(pause) !== undefined) return 'Answer "approve" when that is done.';
  const more = payload['tool'] === undefined ? '' : ', which may have other "args"';
  return `Answer "approve" or "reject", or with a data part {"approved": true}${more}.`;
}

/** The question that a message answers: the one whose token it names, or the only one that is open. */
export function pauseMeant(message: A2aMessage, pauses: readonly TaskPause[]): TaskPause | undefined {
  const token = tokenIn(message);
  if (token !== undefined) return pauses.find((pause) => pause.token === token);
  return pauses.length === 1 ? pauses[0] : undefined;
}

/** The token that the message names. */
export function tokenIn(message: A2aMessage): string | undefined {
  const named = message.metadata?.['token'] ?? dataIn(message)?.['token'];
  return typeof named === 'string' ? named : undefined;
}

/** Whether the question takes words for the planner that has asked, which are sent as a message. */
export function takesWords({ reason, wait, schema, payload = {} }: TaskPause): boolean {
  if (reason !== 'await_input') return false;
  return wait === undefined
    ? payload['tool'] === undefined && payload['url'] === undefined && schema === undefined
    : false;
}

const YES = /^\s*approved?[.!]?\s*$/i;
const NO = /^\s*reject(?:ed)?[.!]?\s*$/i;

/** The answer in a message. `undefined` when the message does not answer the question, which is then asked again. */
export function answerIn(message: A2aMessage, pause: TaskPause): PauseAnswer | undefined {
  const { reason, wait, schema } = pause;
  const data = dataIn(message);
  const words = textIn(message);
  if (wait !== undefined) return valueIn(message, data, words, schema);
  if (reason === 'in_doubt') return settlementIn(data);
  const verdict = verdictIn(data, words);
  if (verdict?.kind === 'approve' && asksForBudget(pause)) return undefined;
  if (verdict !== undefined) return verdict;
  const isOpen = reason !== 'approval_required' && data !== undefined;
  return isOpen ? { kind: 'payload', payload: withoutToken(data) as JsonObject } : undefined;
}

/** The answer in a message to a question that is not open, of which nothing is known but what the message says. */
export function givenAnswer(message: A2aMessage): PauseAnswer | undefined {
  const data = dataIn(message);
  return verdictIn(data, textIn(message)) ?? valueIn(message, data, textIn(message), undefined);
}

function valueIn(
  message: A2aMessage,
  data: JsonObject | undefined,
  words: string,
  schema: JsonObject | undefined,
): PauseAnswer | undefined {
  if (data?.['approved'] === false || (data === undefined && NO.test(words))) return { kind: 'reject' };
  if (data !== undefined && 'value' in data) return { kind: 'answer', value: data['value'] ?? null };
  const given = message.parts.find((part) => part.data !== undefined)?.data;
  if (given !== undefined) return { kind: 'answer', value: withoutToken(given) };
  const takesText = schema === undefined || schema['type'] === 'string';
  return words !== '' && takesText ? { kind: 'answer', value: words } : undefined;
}

function settlementIn(data: JsonObject | undefined): PauseAnswer | undefined {
  if (typeof data?.['happened'] !== 'boolean') return undefined;
  const { happened, value, reason } = data;
  const why = typeof reason === 'string' ? { reason } : {};
  if (!happened) return { kind: 'settle', happened: false, ...why };
  return { kind: 'settle', happened: true, ...why, ...defined({ value }) };
}

function verdictIn(data: JsonObject | undefined, words: string): PauseAnswer | undefined {
  const approved = data?.['approved'];
  const reason = typeof data?.['reason'] === 'string' ? { reason: data['reason'] } : {};
  if (approved === true) {
    const digest = typeof data?.['digest'] === 'string' ? { digest: data['digest'] } : {};
    return { kind: 'approve', ...reason, ...digest, ...rememberIn(data), ...defined({ args: data?.['args'] }) };
  }
  if (approved === false) return { kind: 'reject', ...reason, ...rememberIn(data) };
  if (data !== undefined) return undefined;
  if (YES.test(words)) return { kind: 'approve' };
  return NO.test(words) ? { kind: 'reject' } : undefined;
}

function dataIn({ parts }: A2aMessage): JsonObject | undefined {
  const data = parts.find((part) => part.data !== undefined)?.data;
  return isJsonObject(data) ? data : undefined;
}

/** The words of a message, without what is in its data and files. */
export function textIn({ parts }: A2aMessage): string {
  return parts.flatMap(({ text }) => text ?? []).join('\n\n');
}

function withoutToken(value: Json): Json {
  if (!isJsonObject(value)) return value;
  const { token: _, ...rest } = value;
  return rest;
}
