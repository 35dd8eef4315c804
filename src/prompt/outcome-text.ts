/**
 * What the model reads in place of an outcome. A value passes as it is, line breaks and tabs included; what the runtime says
 * begins with a frame, which no value can.
 */
import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { ErrorData, Json, JsonObject, Outcome, Verdict } from '#core';
import { enclose, frame, framedWords, note, quoted, quotedJson, type UserWords } from './frame.ts';

type ToolResultOutput = Extract<LanguageModelV4ToolResultPart['output'], { type: 'text' | 'error-text' }>;

const NEVER_STARTED: ErrorData = { code: 'branch_not_started', message: 'The call was never started.' };

/**
 * The result of a call, as markup. A call without an outcome was never started.
 * @param maxChars of each text that Pilotage did not write.
 */
export function toolResultOf(outcome: Outcome | undefined, maxChars?: number): ToolResultOutput {
  if (outcome === undefined) return errorOutput(NEVER_STARTED, '', maxChars);
  switch (outcome.kind) {
    case 'value': {
      const value = valueText(outcome.value, maxChars);
      return { type: 'text', value: outcome.artifact === undefined ? value : frame('stored_result', value) };
    }
    case 'error':
      return errorOutput(outcome.error, '', maxChars);
    case 'unknown':
      return errorOutput(
        outcome.error,
        'Do not make this call again unless you have found out that it did not happen.',
        maxChars,
      );
    case 'cancelled':
      return errorOutput(outcome.error, 'The call was stopped before it had a result.', maxChars);
    case 'skipped':
      return errorOutput(outcome.error, NEVER_STARTED.message, maxChars);
    case 'verdict':
      return { type: 'text', value: verdictText(outcome.verdict, outcome.payload, framedWords) };
    default:
      return outcome satisfies never;
  }
}

function errorOutput(error: ErrorData, meaning: string, maxChars: number | undefined): ToolResultOutput {
  const framed = enclose('call_error', errorText(error), {}, maxChars);
  return { type: 'error-text', value: meaning === '' ? framed : `${framed}\n${meaning}` };
}

/** The error as data, since its message may hold anything. */
export function errorText({ code, message }: ErrorData): string {
  return `${code} — ${message}`;
}

/** The answer to a pause, as markup, with the user's own words if the answer has them. @param write how they are written. */
export function verdictText(verdict: Verdict, payload: JsonObject | undefined, write: UserWords): string {
  if (verdict === 'timeout') return note('No answer came in time.');
  const { message, reason, ...rest } = payload ?? {};
  const said = typeof message === 'string' ? message : typeof reason === 'string' ? reason : undefined;
  const more = said ?? (Object.keys(rest).length > 0 ? JSON.stringify(rest) : undefined);
  if (verdict === 'resume' && said !== undefined) return write(said);
  const answer = { approve: 'Approved.', reject: 'Rejected.', resume: 'Go on.' }[verdict];
  return more === undefined ? note(answer) : `${note(answer)}\n${write(more)}`;
}

function valueText(value: Json, maxChars: number | undefined): string {
  const text = asText(value);
  // JSON that is cut off is no JSON.
  return typeof value === 'string' || (maxChars !== undefined && text.length > maxChars)
    ? quoted(text, maxChars)
    : quotedJson(text);
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
