/** The planner that is done at once: for tests, and as the last rung of a ladder. */

import {
  assertIdentity,
  assertOptions,
  capture,
  captureObject,
  type Finish,
  type FinishReason,
  type Json,
  type JsonObject,
  type OptionShape,
  type Planner,
} from '#core';

export interface FinishOptions {
  readonly payload?: Json;
  /** The run's id is added as `run_id`. */
  readonly metadata?: JsonObject;
  /** Default `goal`. */
  readonly reason?: FinishReason;
}

const OPTIONS: OptionShape<FinishOptions> = { payload: 'any?', metadata: 'any?', reason: 'text?' };

/** @throws PilotageError `unserializable` for a payload or metadata that is not JSON. */
export function finish(options: FinishOptions = {}): Planner {
  assertOptions('finish', options, OPTIONS);
  const { payload, metadata = {}, reason = 'goal' } = options;
  const base = Object.freeze({
    kind: 'finish',
    reason,
    ...(payload === undefined ? {} : { payload: capture(payload, 'payload').json }),
  } as const);
  const notes = captureObject(metadata, 'metadata').json;
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
