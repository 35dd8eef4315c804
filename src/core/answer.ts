/** What a finished run answers: the words for a person, and the envelope that a caller's program reads. */
import type { FinishReason } from './decision.ts';
import { branchesOf } from './decision.ts';
import { isJsonObject, type Json } from './json.ts';
import type { Step } from './step.ts';

/** A string as it is; an object's string `answer`; anything else as JSON text. `undefined`: nothing was said. */
export function answerText(payload: Json | undefined): string | undefined {
  if (payload === undefined || payload === null) return undefined;
  if (typeof payload === 'string') return payload;
  if (isJsonObject(payload) && typeof payload['answer'] === 'string') return payload['answer'];
  return JSON.stringify(payload);
}

/**
 * The task result of a run that reached its goal, as JSON text with the keys in this order; `answer` only when something was said. `tool_calls_seen` counts
 * steps, as old readers expect; `tool_calls` counts calls.
 */
export function answerEnvelope(reason: FinishReason, payload: Json | undefined, steps: readonly Step[]): string {
  return JSON.stringify({
    answer: answerText(payload),
    finish_reason: reason,
    tool_calls_seen: steps.length,
    // A step without calls is a decision that did not pass.
    tool_calls: steps.reduce((sum, { calls, decision }) => sum + (calls.length && branchesOf(decision).length), 0),
  });
}
