/** The one place that makes the entry of a call that has come to its end. */
import type { CallEnded, CallResult } from './entry.ts';
import type { CallPlace } from './step.ts';

export function callEnded({ step, call }: CallPlace, result: CallResult): CallEnded {
  const { outcome, startedAt, attempts, costMicroUsd, discovered, artifacts, handles, reuses } = result;
  const ended: { -readonly [K in keyof CallEnded]: CallEnded[K] } = {
    kind: 'call_ended',
    step,
    call,
    outcome,
    attempts,
  };
  if (startedAt !== undefined) ended.startedAt = startedAt;
  if (costMicroUsd !== undefined) ended.costMicroUsd = costMicroUsd;
  if (discovered !== undefined) ended.discovered = discovered;
  if (artifacts !== undefined) ended.artifacts = artifacts;
  if (handles !== undefined) ended.handles = handles;
  if (reuses !== undefined) ended.reuses = reuses;
  return ended;
}
