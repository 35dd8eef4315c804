/** Which kinds of answers a pause takes. */
import { type Control, type Json, type JsonObject, PilotageError } from '#core';
import { explainSchemaError, firstIssues, schemaErrors } from '#schema';
import type { OpenPause } from '#state';

/** A kind of answer, in the words of `Run.answer`. */
export type AnswerKind = 'approve' | 'reject' | 'answer' | 'payload' | 'settle';

const KINDS: Partial<Record<Control['type'], AnswerKind>> = {
  APPROVE: 'approve',
  REJECT: 'reject',
  ANSWER: 'answer',
  RESUME: 'payload',
  SETTLE: 'settle',
};

/** The kinds of answers that the pause takes. */
export function kindsFor({
  reason,
  step,
  call,
  wait,
}: Pick<OpenPause, 'reason' | 'step' | 'call' | 'wait'>): readonly AnswerKind[] {
  if (reason === 'client_tool') return ['answer', 'settle', 'reject'];
  if (wait !== undefined) return ['answer', 'reject'];
  if (call !== undefined) return reason === 'in_doubt' ? ['settle'] : ['approve', 'reject', 'answer'];
  // Where words are asked for, or a plan is to be retried, yes and no say nothing.
  const isOpenQuestion = (step !== undefined && reason === 'await_input') || reason === 'plan_failed';
  return isOpenQuestion ? ['payload'] : ['approve', 'reject', 'payload'];
}

/**
 * Why an answer of this kind does not fit this pause; `undefined` when it does. To resume a call that waits for a login, or one that can be
 * looked up, says that it may go on: this is judged where it is known.
 */
export function unfitFor(
  { type, payload = {} }: Pick<Control, 'type' | 'payload'>,
  pause: OpenPause,
): PilotageError | undefined {
  const kind = KINDS[type];
  const fits = kindsFor(pause);
  if (kind === undefined) return undefined;
  const isOfCall = pause.call !== undefined;
  const goesOn = type === 'RESUME' && isOfCall && pause.wait === undefined && pause.reason !== 'approval_required';
  const isWordless = !isOfCall || kind === 'payload' || payload['payload'] === undefined;
  const settled = kind === 'settle' && fits.includes(kind) ? unfitSettlement({ payload }, pause) : undefined;
  if (settled !== undefined)
    return new PilotageError('payload_invalid', settled, { data: { token: pause.token, fits } });
  if ((fits.includes(kind) && isWordless) || goesOn) return undefined;
  const wrong = isWordless ? kind : 'payload';
  const message = `${OF_KIND[wrong]} does not answer this pause, ${pause.token} (${pause.reason}). It takes one of these: ${fits.join(', ')}.`;
  const hint = pause.reason === 'in_doubt' ? ` ${SAY_SO}` : '';
  return new PilotageError('payload_invalid', `${message}${hint}`, { data: { token: pause.token, kind: wrong, fits } });
}

/** What a client says of a call that it was to carry out, other than its value. */
function unfitSettlement({ payload = {} }: Pick<Control, 'payload'>, { token, reason }: OpenPause): string | undefined {
  const hasFailed = payload['error'] !== undefined;
  if (hasFailed && (payload['value'] !== undefined || payload['happened'] !== true)) {
    return `A call that has failed has no value, and has happened: settle ${token} with { happened: true, error: { code, message } }.`;
  }
  if (reason !== 'client_tool' || hasFailed) return undefined;
  return `The call of ${token} is carried out by a client: answer with its value (kind: 'answer'), or settle it with { happened: true, error: { code, message } }.`;
}

/** What of a value does not fit the schema; `undefined` when all of it does. */
export function issuesOf(schema: JsonObject, value: Json): string | undefined {
  const issues = schemaErrors(schema, value);
  return issues.length === 0 ? undefined : firstIssues(issues.map(explainSchemaError));
}

/**
 * Why what is said does not fit the schema of the pause; `undefined` when it does, or no schema was given. It is asked before the answer is stored, and
 * again when the run takes it.
 */
export function misfitFor(
  { type, payload = {} }: Pick<Control, 'type' | 'payload'>,
  { token, schema, wait, reason }: Pick<OpenPause, 'token' | 'schema' | 'wait' | 'reason'>,
): PilotageError | undefined {
  if (schema === undefined) return undefined;
  // A yes alone is an answer where that was asked, and gives nothing to a planner that waits for something else.
  const isYes = type === 'APPROVE' && (reason !== 'approval_required' || payload['payload'] !== undefined);
  const isAnswer = wait === undefined ? type === 'RESUME' || isYes : type === 'ANSWER';
  if (!isAnswer) return undefined;
  const why = issuesOf(schema, (wait === undefined ? payload['payload'] : payload['value']) ?? null);
  if (why === undefined) return undefined;
  const message = `The answer to ${token} was refused, and the question is still open. It does not fit its schema: ${why}`;
  return new PilotageError('payload_invalid', message, { data: { token } });
}

const OF_KIND: Readonly<Record<AnswerKind, string>> = {
  approve: 'An approval',
  reject: 'A rejection',
  answer: 'A value in place of a call',
  payload: 'A payload',
  settle: 'Word of what became of a call',
};

export const SAY_SO =
  'Settle the call: say that it happened, with its value, or that it did not happen; then the call is made.';
