/** The state of a planner's steps, read off the run's own trajectory: nothing is kept beside it. */
import { type Json, type JsonObject, observe, type RunView, type Step } from '#core';

/** The last step of the run that the planner's step `id` decided. */
export function lastStep({ trajectory }: RunView, id: string): Step | undefined {
  for (let index = trajectory.count - 1; index >= 0; index -= 1) {
    const step = trajectory.step(index);
    if (step?.provenance?.['step'] === id) return step;
  }
  return undefined;
}

/** What `lastStep` came to, as `observe` has it: a call's value, or `{ error: { code, message } }`. */
export function lastResult(run: RunView, id: string): Json | undefined {
  const step = lastStep(run, id);
  return step && observe(step);
}

/** The notes by which a step finds its decisions again. */
export function stepNotes(id: string): JsonObject {
  return { step: id };
}

/** With these notes the step is done: it has handed the members of its group over. */
export function markOfResolved(id: string): JsonObject {
  return { step: id, resolved: true };
}

export function isResolved({ provenance }: Step): boolean {
  return provenance?.['resolved'] === true;
}
