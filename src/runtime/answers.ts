/** What people answer to pauses. */
import {
  captureObject,
  type ErrorData,
  type Json,
  type JsonObject,
  type OptionShape,
  PilotageError,
  type Remember,
} from '#core';

/** Says what became of a call in doubt, and why the person who says it knows. */
export type Settlement = { readonly reason?: string } & (
  | {
      readonly happened: true;
      /** The value of the call. It must fit the tool's output schema, if the tool has one. Default null. */
      readonly value?: Json;
      /** In place of a value: the call has failed so, and the planner sees it. A client says so of a call that it was to carry out. */
      readonly error?: ErrorData;
    }
  /** The call did not happen. It is made now, with the same idempotency key. */
  | { readonly happened: false }
);

/** Options of an answer to a pause. */
export interface Answer {
  /** A JSON object that the planner gets as the pause's outcome, or a note that goes with an approval. */
  readonly payload?: JsonObject;
  /** The reason of the answer. When a call is rejected, the planner is told the reason. */
  readonly reason?: string;
}

export interface Rejection extends Answer {
  /** The no holds for questions to come: such calls are refused, and nobody is asked. */
  readonly remember?: Remember;
}

export interface Approval extends Answer {
  /** The yes holds for questions to come: such calls are made, and nobody is asked. */
  readonly remember?: Remember;
  /** Arguments that replace the call's own. They are checked against the tool's schema. */
  readonly args?: Json;
  /** The `digest` of the payload of the pause that was shown. An approval of other arguments than those is refused. */
  readonly digest?: string;
}

/** An answer to a pause, of the kind that fits what is asked. */
export type PauseAnswer =
  | ({ readonly kind: 'approve' } & Approval)
  | ({ readonly kind: 'reject' } & Rejection)
  /** A value in place of the call, which is not made, or of a call that a client carries out. It must fit the tool's output schema, if the tool has one. */
  | { readonly kind: 'answer'; readonly value: Json; readonly reason?: string }
  /** What the planner asks for. */
  | { readonly kind: 'payload'; readonly payload: JsonObject }
  | ({ readonly kind: 'settle' } & Settlement);

const ANSWER_WORDS: OptionShape<Answer> = { payload: 'any?', reason: 'text?' };
export const REJECTION: OptionShape<Rejection> = { remember: 'object?', ...ANSWER_WORDS };
export const APPROVAL: OptionShape<Approval> = { args: 'any?', digest: 'text?', ...REJECTION };
export const VALUE: OptionShape<{ kind: 'answer'; value: Json; reason?: string }> = {
  kind: 'text',
  value: 'any',
  reason: 'text?',
};
export const WORDS: OptionShape<{ kind: 'payload'; payload: JsonObject }> = { kind: 'text', payload: 'object' };
export const SETTLEMENT: OptionShape<{ happened: boolean; value?: Json; error?: ErrorData; reason?: string }> = {
  happened: 'any',
  value: 'any?',
  error: 'object?',
  reason: 'text?',
};

/** Looked at where controls are. @throws PilotageError `unserializable`. */
export function rememberWord(remember: Remember | undefined): JsonObject {
  return remember === undefined ? {} : { remember: captureObject(remember, 'remember').json };
}

export function unknownKind(answer: never): PilotageError {
  const { kind }: { readonly kind?: unknown } = answer ?? {};
  const message = `${JSON.stringify(kind)} is not a kind that an answer can have. Give { kind } as one of approve, reject, answer, payload, settle.`;
  return new PilotageError('payload_invalid', message);
}

/** @throws PilotageError `invalid_config`. */
export function assertIsAnswer(of: string, answer: unknown): void {
  if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) return;
  throw new PilotageError(
    'invalid_config',
    `${of} takes an object such as { kind: 'approve' } as the answer to a pause.`,
  );
}

/** @throws PilotageError `invalid_config`. */
export function assertAreAnswers(answers: unknown): void {
  const isGiven = typeof answers === 'object' && answers !== null && !Array.isArray(answers);
  if (!isGiven || Object.keys(answers).length === 0) {
    const message = "answerAll takes an answer for each of one or more pauses: { '<token>': { kind: 'approve' } }.";
    throw new PilotageError('invalid_config', message);
  }
  for (const [token, answer] of Object.entries(answers)) assertIsAnswer(`answerAll, for the pause ${token},`, answer);
}

/** Why not all of several answers were taken: the error of the first that was refused, with the code of each. */
export function refusedAmong(tokens: readonly string[], settled: readonly PromiseSettledResult<void>[]): unknown {
  const refused = settled.flatMap((each, index): (readonly [string, unknown])[] =>
    each.status === 'rejected' ? [[tokens[index] ?? '', each.reason]] : [],
  );
  const [first] = refused;
  if (first === undefined) return undefined;
  const [, error] = first;
  const other = refused.find(([, reason]) => !PilotageError.is(reason));
  if (other !== undefined || !PilotageError.is(error)) return other?.[1];
  const codes = Object.fromEntries(refused.map(([token, reason]) => [token, (reason as PilotageError).code]));
  const message = `${refused.length} of ${tokens.length} answers were refused. The first: ${error.message}`;
  return new PilotageError(error.code, message, { data: { ...error.data, refused: codes }, cause: error });
}
