/** What happens to a run that repeats itself. Pure. */
import { assertOptions, type EntryBody, type OptionShape, PilotageError } from '#core';
import { MAX_TIMES, nextStep, type RunState, repetitionIn } from '#state';

export interface ProgressGuard {
  /** After how many repetitions of the same steps the planner is told: 2 to 12. Default 3. */
  readonly hintAfter?: number;
  /** What happens when the run goes on repeating itself. Default: nothing but the hint. */
  readonly action?: 'pause' | 'end';
  /** After how many repetitions `action` is taken. Default: twice `hintAfter`, and at most 12. */
  readonly actAfter?: number;
}

const OPTIONS: OptionShape<ProgressGuard> = { hintAfter: 'any?', action: 'any?', actAfter: 'any?' };
const HINT_AFTER = 3;

/** @throws PilotageError `invalid_config` naming the wrong number. */
export function assertProgressGuard(guard: ProgressGuard): void {
  assertOptions('progress', guard, OPTIONS);
  const { hintAfter = HINT_AFTER, action, actAfter = Math.min(2 * hintAfter, MAX_TIMES) } = guard;
  if (!Number.isInteger(hintAfter) || hintAfter < 2 || hintAfter > MAX_TIMES) {
    throw new PilotageError(
      'invalid_config',
      `progress.hintAfter is ${hintAfter}; give a whole number from 2 to ${MAX_TIMES}.`,
    );
  }
  if (!Number.isInteger(actAfter) || actAfter < hintAfter || actAfter > MAX_TIMES) {
    throw new PilotageError(
      'invalid_config',
      `progress.actAfter is ${actAfter}; give a whole number from ${hintAfter} to ${MAX_TIMES}.`,
    );
  }
  if (action !== undefined && action !== 'pause' && action !== 'end') {
    throw new PilotageError(
      'invalid_config',
      `progress.action is ${String(action)}; give pause or end, or leave it out.`,
    );
  }
}

/** The entry that is due before the next move, if the last steps repeat. */
export function watchProgress(state: RunState, guard: ProgressGuard, newToken: () => string): EntryBody | undefined {
  const { hintAfter = HINT_AFTER, action, actAfter = Math.min(2 * hintAfter, MAX_TIMES) } = guard;
  if (state.steps.length - state.watchedFrom < hintAfter) return undefined;
  const found = repetitionIn(state.steps, state.watchedFrom, { least: hintAfter });
  if (found === undefined) return undefined;
  const step = nextStep(state);
  if (state.noProgress?.step !== step) return { kind: 'no_progress', step, ...found };
  if (action === undefined || found.times < actAfter) return undefined;
  const payload = { no_progress: true, period: found.period, times: found.times };
  return action === 'end'
    ? { kind: 'finished', reason: 'no_path', metadata: payload }
    : { kind: 'paused', token: newToken(), reason: 'constraints_conflict', payload };
}
