/** What a planner that brings a budget of its own leaves of the limits that a run of it is given. */
import { microUsdOf, PilotageError, type RunLimits, shownAmount, whyNoUsd } from '#core';
import type { RunBudget } from '#tools';

const AXES = ['steps', 'calls', 'tokens'] as const;

/**
 * The smaller on each axis; where one of them says nothing, the other one counts. `onCeiling` is kept.
 * @param now when the run starts, in milliseconds since the epoch: `deadlineMs` counts from there.
 */
export function limitsWithin(limits: RunLimits, budget: RunBudget | undefined, now: number): RunLimits {
  if (budget === undefined) return limits;
  const { costUsd, deadlineMs } = budget;
  const within: { -readonly [K in keyof RunLimits]: RunLimits[K] } = { ...limits };
  for (const axis of AXES) {
    const value = smaller(limits[axis], budget[axis]);
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

/** @throws PilotageError `invalid_config` naming the planner and what is no number from 0 up, or no part of a budget. */
export function assertBudget(planner: string, budget: RunBudget): void {
  for (const [axis, value] of Object.entries(budget)) {
    const why = value === undefined ? undefined : whyNoPart(axis, value);
    if (why === undefined) continue;
    const message = `The budget of the planner ${JSON.stringify(planner)} has ${axis} ${shownAmount(value)}; ${why}.`;
    throw new PilotageError('invalid_config', message);
  }
}

const PARTS: ReadonlySet<string> = new Set<keyof RunBudget>([...AXES, 'costUsd', 'deadlineMs']);

function whyNoPart(axis: string, value: unknown): string | undefined {
  if (!PARTS.has(axis)) return `there are ${[...PARTS].join(', ')}. costUsd is in US dollars`;
  if (axis === 'costUsd') return whyNoUsd(value);
  return Number.isFinite(value) && (value as number) >= 0 ? undefined : 'give a number from 0 up, or leave it out';
}
