/** The questions of a run as elicitations of MCP, and the meaning of a client's answers. */
import {
  asksForBudget,
  asksOpenly,
  defined,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEquals,
  PilotageError,
  type RunEvent,
} from '#core';
import type { PauseAnswer, PauseNotice, Run } from '#runtime';
import { loginOf, questionOf, shownArgsOf } from '../pause-words.ts';

/** The fields of a pause on which the meaning of an answer depends. */
export type AskedPause = Pick<PauseNotice, 'run' | 'token' | 'reason' | 'payload' | 'schema' | 'wait'>;

/** The kinds of elicitation that a client supports. */
export interface Askable {
  readonly form: boolean;
  readonly url: boolean;
}

export const NOT_ASKABLE: Askable = { form: false, url: false };

/** @param capabilities those of the client. An empty `elicitation` means forms, the only kind of earlier versions. */
export function askableOf(capabilities: unknown): Askable {
  const given = isJsonObject(capabilities as Json) ? (capabilities as JsonObject)['elicitation'] : undefined;
  if (given === undefined || !isJsonObject(given)) return NOT_ASKABLE;
  const { form, url } = given;
  return { form: isJsonObject(form ?? null) || url === undefined, url: isJsonObject(url ?? null) };
}

/** The parameters of `elicitation/create`, or `undefined` for a question that the client cannot be asked. */
export function elicitationOf(pause: PauseNotice, askable: Askable): JsonObject | undefined {
  // Whoever runs the agent raises it.
  if (asksForBudget(pause)) return undefined;
  const url = urlOf(pause);
  const message = questionOf(pause, url !== undefined && askable.url);
  if (url !== undefined) return askable.url ? { mode: 'url', message, url, elicitationId: pause.token } : undefined;
  return askable.form ? { mode: 'form', message, requestedSchema: formOf(pause) } : undefined;
}

/** The address of a login. A question that is to be filled in is a form, whose words name it. */
function urlOf(pause: AskedPause): string | undefined {
  return pause.reason === 'external_event' && pause.schema === undefined ? loginOf(pause) : undefined;
}

type Flat = string | number | boolean;
const isFlat = (value: unknown): value is Flat => ['string', 'number', 'boolean'].includes(typeof value);
const FLAT_TYPES = ['string', 'number', 'integer', 'boolean'];

/** The schema of the form. Forms of MCP are flat: they have texts, numbers, and yes or no. */
function formOf(pause: PauseNotice): JsonObject {
  const { reason, schema, wait } = pause;
  if (reason === 'in_doubt') {
    const happened = { type: 'boolean', title: 'Has it happened?' };
    const value = { type: 'string', title: 'Its value, as JSON', description: 'Only when it has happened.' };
    return { type: 'object', properties: { happened, value }, required: ['happened'] };
  }
  if (reason === 'approval_required' && wait === undefined) {
    const fields = Object.entries(shownArgsOf(pause)).filter(([, value]) => isFlat(value));
    const properties = fields.map(([name, value]) => [name, { type: typeof value, title: name, default: value }]);
    return { type: 'object', properties: Object.fromEntries(properties) };
  }
  if (wait === undefined && !asksOpenly(pause)) return { type: 'object', properties: {} };
  if (schema !== undefined && isFlatForm(schema)) return schema;
  const type = FLAT_TYPES.includes(String(schema?.['type'])) ? { ...schema } : { type: 'string' };
  const asJson =
    schema === undefined || schema['type'] === type['type'] ? {} : { description: `JSON: ${JSON.stringify(schema)}` };
  return { type: 'object', properties: { answer: { ...type, title: 'Answer', ...asJson } }, required: ['answer'] };
}

function isFlatForm({ type, properties }: JsonObject): boolean {
  if (type !== 'object' || properties === undefined || !isJsonObject(properties)) return false;
  return Object.values(properties).every((each) => isJsonObject(each) && FLAT_TYPES.includes(String(each['type'])));
}

/** `later`: the person does not want to decide now. `resume`: the run may go on. */
export type ClientAnswer = PauseAnswer | { readonly kind: 'later' } | { readonly kind: 'resume' };

/** @throws PilotageError `payload_invalid` for a response that does not answer an elicitation. */
export function saidBy(response: unknown, pause: AskedPause): ClientAnswer {
  const { action, content = {} } = (response ?? {}) as { readonly action?: unknown; readonly content?: Json };
  if (action === 'cancel') return { kind: 'later' };
  if (action === 'decline') return declined(pause);
  if (action === 'accept' && isJsonObject(content)) return accepted(pause, content);
  const message =
    'An answer to an elicitation is { action: "accept", content }, { action: "decline" } or { action: "cancel" }.';
  throw new PilotageError('payload_invalid', message);
}

const REFUSABLE = ['approval_required', 'external_event', 'constraints_conflict'];

function declined({ reason, wait }: AskedPause): ClientAnswer {
  return wait !== undefined || REFUSABLE.includes(reason) ? { kind: 'reject' } : { kind: 'later' };
}

function accepted(pause: AskedPause, content: JsonObject): ClientAnswer {
  const { reason, wait, schema, payload } = pause;
  if (reason === 'in_doubt') {
    const { happened, value } = content;
    if (typeof happened !== 'boolean') throw incomplete('happened');
    return happened ? { kind: 'settle', happened, value: jsonIn(value) } : { kind: 'settle', happened };
  }
  if (wait !== undefined) return { kind: 'answer', value: valueIn(content, schema) };
  if (asksOpenly(pause)) return { kind: 'payload', payload: payloadOf(content, schema) };
  if (reason !== 'approval_required') return urlOf(pause) === undefined ? { kind: 'resume' } : { kind: 'approve' };
  const { digest } = payload ?? {};
  const edited = Object.entries(content).filter(
    ([name, value]) => isFlat(shownArgsOf(pause)[name]) && shownArgsOf(pause)[name] !== value,
  );
  const args = edited.length === 0 ? {} : { args: { ...shownArgsOf(pause), ...Object.fromEntries(edited) } };
  return { kind: 'approve', ...args, ...(typeof digest === 'string' ? { digest } : {}) };
}

/** Forms are not checked by every client. */
function incomplete(field: string): PilotageError {
  return new PilotageError('payload_invalid', `The form is accepted without its field ${field}. Fill it in.`);
}

function valueIn(content: JsonObject, schema: JsonObject | undefined): Json {
  if (schema !== undefined && isFlatForm(schema)) return content;
  const { answer } = content;
  if (answer === undefined) throw incomplete('answer');
  return schema === undefined || FLAT_TYPES.includes(String(schema['type'])) ? answer : jsonIn(answer);
}

function payloadOf(content: JsonObject, schema: JsonObject | undefined): JsonObject {
  const value = valueIn(content, schema);
  return isJsonObject(value) ? value : { answer: value };
}

/** A text that is not JSON is taken as it is. */
function jsonIn(value: Json | undefined): Json {
  if (typeof value !== 'string') return value ?? null;
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value;
  }
}

/** The pauses of these tokens, in the run and its tasks, open or closed. They are read from the journal, so that a client cannot change a question. */
export async function pausesNamed(run: Run, tokens: readonly string[]): Promise<readonly AskedPause[]> {
  const waits = new Map<string, number>();
  const found: AskedPause[] = [];
  if (tokens.length === 0) return found;
  for await (const event of run.events({ tasks: true, overPauses: true })) {
    if (event.type === 'call.waiting') for (const { token = '', wait } of event.waits) waits.set(token, wait);
    if (event.type !== 'pause.requested' || !tokens.includes(event.token)) continue;
    const { token, reason, payload, schema, identity } = event;
    found.push({ run: identity.run, token, reason, ...defined({ payload, schema, wait: waits.get(token) }) });
    if (found.length === tokens.length) break;
  }
  return found;
}

const TOO_LATE = ['pause_not_found', 'superseded', 'pause_expired', 'run_ended', 'call_ended'] as const;

/**
 * Gives the run the answer, once. The same answer given again, by anyone, changes nothing.
 * @throws PilotageError `payload_invalid`, `approver_refused`, `scope_mismatch`; `pause_not_found` when another answer was given before.
 */
export async function answerOnce(
  run: Run,
  token: string,
  said: Exclude<ClientAnswer, { kind: 'later' }>,
): Promise<void> {
  try {
    if (said.kind === 'resume') await run.resume({ token });
    else await run.answer(token, said);
  } catch (error) {
    if (!PilotageError.is(error) || !TOO_LATE.some((code) => code === error.code)) throw error;
    const given = await answerGiven(run, token);
    // A question that was withdrawn or has expired was answered by nobody. The call tells what comes of the run.
    if (given === undefined || isSame(given, said)) return;
    const message = `The question ${token} was answered already, with ${given.verdict}: ${said.kind} comes too late.`;
    throw new PilotageError('pause_not_found', message, { data: { token, verdict: given.verdict }, cause: error });
  }
}

type Given = RunEvent<'pause.resumed'>;

/** Waits for the answer to a pause, which may be on its way. `undefined` when the run has ended without one. */
async function answerGiven(run: Run, token: string): Promise<Given | undefined> {
  for await (const event of run.events({ tasks: true, overPauses: true }))
    if (event.type === 'pause.resumed' && event.token === token) return isAnswer(event) ? event : undefined;
  return undefined;
}

function isAnswer({ verdict }: Given): boolean {
  return verdict !== 'timeout' && verdict !== 'superseded';
}

function isSame({ verdict, args, value, payload }: Given, said: Exclude<ClientAnswer, { kind: 'later' }>): boolean {
  switch (said.kind) {
    case 'approve':
      return verdict === 'approve' && jsonEquals(args ?? null, said.args ?? null);
    case 'reject':
      return verdict === 'reject';
    case 'answer':
      return verdict === 'answer' && jsonEquals(value ?? null, said.value);
    case 'payload':
      return jsonEquals(payload ?? null, said.payload);
    default:
      return verdict !== 'approve' && verdict !== 'reject';
  }
}
