/** What a call came to, in the words of a tool message. */
import type { ErrorData, Outcome } from '#core';

/** @param errorText for what a run has recorded of an error: its own message may hold anything. */
export function resultText(outcome: Outcome, errorText: (error: ErrorData) => string): string {
  switch (outcome.kind) {
    case 'value':
      return typeof outcome.value === 'string' ? outcome.value : JSON.stringify(outcome.value);
    case 'verdict':
      return JSON.stringify({ verdict: outcome.verdict, ...(outcome.payload && { payload: outcome.payload }) });
    case 'error':
    case 'unknown':
    case 'cancelled':
    case 'skipped':
      return refusalText(outcome.error) ?? errorText(outcome.error);
    default:
      return outcome satisfies never;
  }
}

/** What people have said is told as they have said it. */
function refusalText({ code, data }: ErrorData): string | undefined {
  if (code === 'approval_timeout') return 'Nobody approved it in time.';
  if (code !== 'tool_rejected') return undefined;
  const reason = data?.['reason'];
  return typeof reason === 'string' && reason !== '' ? `It was not approved. The reason: ${reason}` : 'It was not approved.';
}
