/** Keeps entries while the store cannot take them for now. */
import type { Clock } from '../core/clock.ts';
import { ERROR_CONSEQUENCES, PilotageError } from '../core/errors.ts';
import type { Append, Journal } from '../journal/port.ts';

interface Deps {
  readonly journal: Journal;
  readonly clock: Clock;
}

/** Waits between tries: about 6 s in all, after which the run is let go of with the store's own error. */
const RETRY_DELAYS_MS = [50, 200, 800, 2_000, 3_000];

/**
 * Appends again what was refused with the error `first`.
 * @throws PilotageError of the store: at once for a refusal, after some tries for what may pass.
 */
export async function appendAgain(deps: Deps, request: Append, first: unknown): Promise<void> {
  let error = first;
  for (const delayMs of RETRY_DELAYS_MS) {
    if (!mayPass(error)) break;
    await new Promise<void>((resolve) => deps.clock.after(delayMs, resolve));
    try {
      return await deps.journal.append(request);
    } catch (again) {
      // Only the holder of the lease appends: the head moved because the try before had landed.
      if (PilotageError.is(again, 'journal_conflict')) return;
      error = again;
    }
  }
  throw error;
}

function mayPass(error: unknown): boolean {
  return PilotageError.is(error) && ERROR_CONSEQUENCES[error.code] === 'retry';
}
