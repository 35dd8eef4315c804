/** What a planner that brings a budget of its own leaves of the limits that a run of it is given. */
import { PilotageError } from '../core/errors.ts';
import type { Limits } from '../core/limits.ts';
import type { RunBudget } from '../tools/tool.ts';

const AXES = ['steps', 'calls', 'costMicroUsd', 'tokens'] as const;

/**
 * The smaller on each axis; where one of them says nothing, the other one counts. `onCeiling` is kept.
 * @param now when the run starts, in milliseconds since the epoch: `deadlineMs` counts from there.
 */
export function limitsWithin(limits: Limits, budget: RunBudget | undefined, now: number): Limits {
  if (budget === undefined) return limits;
  const { deadlineMs } = budget;
  const within: { -readonly [K in keyof Limits]: Limits[K] } = { ...limits };
  for (const axis of AXES) {
    const value = smaller(limits[axis], budget[axis]);
    if (value !== undefined) within[axis] = value;
  }
  const deadlineAt = smaller(limits.deadlineAt, deadlineMs === undefined ? undefined : now + deadlineMs);
  if (deadlineAt !== undefined) within.deadlineAt = deadlineAt;
  return within;
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/** @throws PilotageError `invalid_config` naming the planner and what is no number from 0 up. */
export function assertBudget(planner: string, budget: RunBudget): void {
  for (const axis of [...AXES, 'deadlineMs'] as const) {
    const value = budget[axis];
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    throw new PilotageError(
      'invalid_config',
      `The budget of the planner ${JSON.stringify(planner)} has ${axis} ${value}; give a number from 0 up, or leave it out.`,
    );
  }
}
