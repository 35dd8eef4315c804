/** What the model reads in place of an outcome. Text passes as it is: line breaks and tabs reach the model. */
import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { ErrorData } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import type { Outcome, Verdict } from '../core/outcome.ts';

type ToolResultOutput = Extract<LanguageModelV4ToolResultPart['output'], { type: 'text' | 'error-text' }>;

/** The result of a call. A call without an outcome was never started. */
export function resultOf(outcome: Outcome | undefined): ToolResultOutput {
  if (outcome === undefined) return { type: 'error-text', value: 'branch_not_started — The call was never started.' };
  switch (outcome.kind) {
    case 'value':
      return { type: 'text', value: asText(outcome.value) };
    case 'error':
      return { type: 'error-text', value: errorText(outcome.error) };
    case 'unknown':
      return {
        type: 'error-text',
        value: `${errorText(outcome.error)} It may have happened and may not: find out before calling it again.`,
      };
    case 'cancelled':
      return { type: 'error-text', value: `${errorText(outcome.error)} The call was stopped before it had a result.` };
    case 'skipped':
      return { type: 'error-text', value: `${errorText(outcome.error)} The call was never started.` };
    case 'verdict':
      return { type: 'text', value: verdictText(outcome.verdict, outcome.payload) };
    default:
      return outcome satisfies never;
  }
}

export function errorText({ code, message }: ErrorData): string {
  return `${code} — ${message}`;
}

/** The answer to a pause: the user's own words if there are any. */
export function verdictText(verdict: Verdict, payload: JsonObject | undefined): string {
  if (verdict === 'timeout') return 'No answer came in time.';
  const { message, reason, ...rest } = payload ?? {};
  const said = typeof message === 'string' ? message : typeof reason === 'string' ? reason : undefined;
  if (verdict === 'resume' && said !== undefined) return said;
  const words = { approve: 'Approved.', reject: 'Rejected.', resume: 'Go on.' }[verdict];
  const more = said ?? (Object.keys(rest).length > 0 ? JSON.stringify(rest) : undefined);
  return more === undefined ? words : `${words} ${more}`;
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
