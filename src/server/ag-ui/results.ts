/** What a call came to, in the words of a tool message. */
import type { ErrorData, JsonObject, Outcome, PauseVerdict } from '#core';

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

/** Nobody was asked again about these, and nothing of them is a secret. */
function refusalText({ code }: ErrorData): string | undefined {
  if (code === 'approval_timeout') return unapprovedText('timeout');
  return code === 'tool_rejected' ? unapprovedText('reject') : undefined;
}

/** A call that was not made, for what became of its question. What people have said is told as they have said it. */
export function unapprovedText(verdict: PauseVerdict, payload?: JsonObject): string {
  if (verdict === 'timeout') return 'Nobody approved it in time, and it was not done.';
  if (verdict === 'superseded') return 'It was not done, since the question was withdrawn.';
  const reason = payload?.['reason'];
  return typeof reason === 'string' && reason !== ''
    ? `It was not approved. The reason: ${reason}`
    : 'It was not approved.';
}
