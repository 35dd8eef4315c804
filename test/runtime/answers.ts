import { observeBranches } from '../../src/core/observation.ts';
import type { Step } from '../../src/core/step.ts';

/** What each call id of a step is answered with: `value`, or the error's code. */
export function answersOf(step: Step | undefined): Record<string, string> {
  const answers = step === undefined ? [] : observeBranches(step);
  return Object.fromEntries(
    answers.map((answer) => [answer.call_id ?? '', 'value' in answer ? 'value' : answer.error.code]),
  );
}
