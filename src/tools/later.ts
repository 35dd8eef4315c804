/** Results that come later: a tool that has handed its work to somebody else ends its attempt, and the call waits for the value. */
import { assertOptions, fieldOf, isEventKey, type OptionShape, PilotageError } from '#core';

export interface LaterOptions {
  /** What the value comes under: `runtime.signal(key, value)` brings it, once. At most 512 characters. */
  readonly key: string;
  /** How often the tool's `poll` is asked whether the value is there, in milliseconds. Default: never. */
  readonly pollEveryMs?: number;
  /** Milliseconds after which the call fails with `result_expired`. Default: it waits as long as the run. */
  readonly expiresInMs?: number;
}

/** What a tool gives in place of a value that comes later. */
export interface Later extends LaterOptions {
  readonly [LATER]: true;
}

const LATER: unique symbol = Symbol.for('pilotage.later');
const OPTIONS: OptionShape<LaterOptions> = { key: 'text', pollEveryMs: 'count?', expiresInMs: 'whole?' };

/**
 * What `execute` gives when the result comes later, such as that of a batch or of a build: the call has been made, no process keeps anything for it, and the run waits. The value of
 * the call is the payload of a signal for `key`, or what the tool's `poll` finds.
 * @throws PilotageError `invalid_config`.
 */
export function later(options: LaterOptions): Later {
  assertOptions('later', options, OPTIONS);
  if (!isEventKey(options.key)) {
    throw new PilotageError(
      'invalid_config',
      'The key of a later result must be a text of 1 to 512 characters that a signal can have, such as the id of the job.',
    );
  }
  return Object.freeze({ ...options, [LATER]: true as const });
}

/** Also of another copy of the package. */
export function isLater(value: unknown): value is Later {
  return typeof value === 'object' && value !== null && fieldOf(value, LATER) === true;
}
