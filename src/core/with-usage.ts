/** What was used before something failed stays in what is thrown. */
import { describeThrown, PilotageError } from './errors.ts';
import { addUsage, type Usage, usageIn } from './limits.ts';

/** The error, or the reason of a signal, which says what was used before it beside what it says of itself. */
export function withUsage(error: unknown, before: Usage | undefined): unknown {
  if (before === undefined) return error;
  if (!PilotageError.is(error)) {
    return new PilotageError('planner_failed', describeThrown(error), { data: { usage: { ...before } }, cause: error });
  }
  const usage = { ...addUsage(before, usageIn(error.data).usage ?? {}) };
  return new PilotageError(error.code, error.message, { data: { ...error.data, usage }, cause: error });
}
