/** What the limits of an agent leave of those that a run is started with. */
import { microUsdOf, type RunLimits } from '#core';
import type { AgentLimits } from '#tools';

const AXES = ['steps', 'calls', 'tokens'] as const;

/**
 * The smaller on each axis; where one of them says nothing, the other one counts. `onCeiling` is kept.
 * @param now when the run starts, in milliseconds since the epoch: `deadlineMs` counts from there.
 */
export function limitsWithin(limits: RunLimits, own: AgentLimits | undefined, now: number): RunLimits {
  if (own === undefined) return limits;
  const { costUsd, deadlineMs } = own;
  const within: { -readonly [K in keyof RunLimits]: RunLimits[K] } = { ...limits };
  for (const axis of AXES) {
    const value = smaller(limits[axis], own[axis]);
    if (value !== undefined) within[axis] = value;
  }
  const cost = smaller(limits.costMicroUsd, costUsd === undefined ? undefined : microUsdOf(costUsd));
  if (cost !== undefined) within.costMicroUsd = cost;
  const deadlineAt = smaller(limits.deadlineAt, deadlineMs === undefined ? undefined : now + deadlineMs);
  if (deadlineAt !== undefined) within.deadlineAt = deadlineAt;
  return within;
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
