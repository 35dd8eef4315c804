/** The outcome of a call, as the text of a tool message. */
import type { ErrorData, JsonObject, Outcome, PauseVerdict } from '#core';

/** @param errorText makes the text about a recorded error, whose own message may hold secrets. */
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

/** The text about a call that was not approved, which holds no secrets. */
function refusalText({ code }: ErrorData): string | undefined {
  if (code === 'approval_timeout') return unapprovedText('timeout');
  return code === 'tool_rejected' ? unapprovedText('reject') : undefined;
}

/** Says why a call was not made, by what became of the question. A person's reason is told in their words. */
export function unapprovedText(verdict: PauseVerdict, payload?: JsonObject): string {
  if (verdict === 'timeout') return 'Nobody approved it in time, and it was not done.';
  if (verdict === 'superseded') return 'It was not done, since the question was withdrawn.';
  const reason = payload?.['reason'];
  return typeof reason === 'string' && reason !== ''
    ? `It was not approved. The reason: ${reason}`
    : 'It was not approved.';
}
