/** Appends, and keeps the entries while the store cannot take them for now. */
import type { Clock } from '../core/clock.ts';
import { ERROR_CONSEQUENCES, PilotageError } from '../core/errors.ts';
import type { Append, Journal } from '../journal/port.ts';

/** Waits between tries: about 6 s in all, after which the run is let go of with the store's own error. */
const RETRY_DELAYS_MS = [50, 200, 800, 2_000, 3_000];

/** @throws PilotageError of the store: at once for a refusal, after some tries for what may pass. */
export async function append(
  deps: { readonly journal: Journal; readonly clock: Clock },
  request: Append,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await deps.journal.append(request);
    } catch (error) {
      const delayMs = RETRY_DELAYS_MS[attempt];
      if (delayMs === undefined || !mayPass(error)) throw error;
      await new Promise<void>((resolve) => deps.clock.after(delayMs, resolve));
    }
  }
}

function mayPass(error: unknown): boolean {
  return PilotageError.is(error) && ERROR_CONSEQUENCES[error.code] === 'retry';
}
