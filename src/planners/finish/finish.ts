/** The planner that is done at once: for tests, and as the last rung of a ladder. */

import {
  assertIdentity,
  assertOptions,
  capture,
  captureObject,
  describeThrown,
  type Finish,
  type FinishReason,
  type Json,
  type JsonObject,
  type OptionShape,
  PilotageError,
  type Planner,
  validateDecision,
} from '#core';

export interface FinishOptions {
  readonly payload?: Json;
  /** The run's id is added as `run_id`. */
  readonly metadata?: JsonObject;
  /** Default `goal`. */
  readonly reason?: FinishReason;
}

const OPTIONS: OptionShape<FinishOptions> = { payload: 'any?', metadata: 'any?', reason: 'text?' };

/** @throws PilotageError `invalid_config` for a payload or metadata that is not JSON, and for an unknown reason. */
export function finish(options: FinishOptions = {}): Planner {
  assertOptions('finish', options, OPTIONS);
  const { base, notes } = checked(options);
  return Object.freeze({
    name: 'finish',
    wakeMode: 'push',
    next({ identity }, signal): Finish {
      signal.throwIfAborted();
      assertIdentity(identity);
      return { ...base, metadata: { ...notes, run_id: identity.run } };
    },
  } satisfies Planner);
}

function checked({ payload, metadata = {}, reason = 'goal' }: FinishOptions): {
  readonly base: Finish;
  readonly notes: JsonObject;
} {
  try {
    const notes = captureObject(metadata, 'metadata').json;
    const base: Finish = {
      kind: 'finish',
      reason,
      ...(payload === undefined ? {} : { payload: capture(payload, 'payload').json }),
    };
    validateDecision(base);
    return { base: Object.freeze(base), notes };
  } catch (cause) {
    throw new PilotageError('invalid_config', `finish cannot end runs so: ${describeThrown(cause)}`, { cause });
  }
}
