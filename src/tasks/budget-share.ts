/** How a budget is shared between a call that a task carries out and the calls that may be under way beside it. */

import { isPlanTool, isTaskTool, microUsdOf, type RunLimits, timeAfter } from '#core';
import { atOnceOf, itemIn, openBehind, presentName, type RunState, type Split } from '#state';
import type { AgentLimits } from '#tools';

/** What the limits of an agent leave of those that a run is started with. */

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
  const deadlineAt = smaller(limits.deadlineAt, deadlineMs === undefined ? undefined : timeAfter(now, deadlineMs));
  if (deadlineAt !== undefined) within.deadlineAt = deadlineAt;
  return within;
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

export interface Beside {
  /** How many calls need no task: each counts as one call, with its price. */
  readonly plain: number;
  readonly plainMicroUsd: number;
  /** How many calls are carried out by tasks, including this one. */
  readonly tasks: number;
}

const ALONE: Beside = { plain: 0, plainMicroUsd: 0, tasks: 1 };

/**
 * What may still be started while the call is under way.
 * @param isUnderWay of a call: what it takes is counted already.
 * @param costOf in millionths of a US dollar, of a call of the tool; `undefined`: a task carries it out.
 */
export function besideOf(
  state: RunState,
  call: number,
  isUnderWay: (call: number) => boolean,
  costOf: (tool: string) => number | undefined,
): Beside {
  const { open } = state;
  const decision = open?.move.decision;
  if (open === null || decision?.kind !== 'call_parallel') return ALONE;
  const taken = openBehind(open, decision, call);
  for (const wait of open.waits) taken.add(wait.call);
  let { plain, plainMicroUsd, tasks } = ALONE;
  for (const [other, record] of open.calls.entries()) {
    if (record !== null || other === call || taken.has(other) || isUnderWay(other)) continue;
    const tool = presentName(state, decision.branches[other]?.tool ?? '');
    if (isPlanTool(tool) || isTaskTool(tool)) continue;
    const cost = costOf(tool);
    if (cost === undefined) tasks += 1;
    else {
      plain += 1;
      plainMicroUsd += cost;
    }
  }
  // What a task that has ended was lent is back already, and another call may take its place.
  const isLive = (task: string): boolean => itemIn(state.tasks, task)?.end === undefined;
  const carried = open.waits.filter(({ agentCall, task }) => agentCall !== undefined && isLive(task)).length;
  return { plain, plainMicroUsd, tasks: Math.max(1, Math.min(tasks, atOnceOf(decision, open.move.atOnce) - carried)) };
}

/**
 * The tasks have equal parts of what the other calls leave. Not all of these need come to run: a task has no less than if it
 * had shared with each of them.
 * @param beside looks through the calls of the step: it is asked once, and not without a limit to share.
 */
export function splitWith(beside: () => Beside): Split {
  let known: Beside | undefined;
  return (room, axis) => {
    known ??= beside();
    const { plain, plainMicroUsd, tasks } = known;
    const needed = axis === 'calls' ? plain : axis === 'costMicroUsd' ? plainMicroUsd : 0;
    const others = needed === 0 ? 0 : plain;
    return Math.max(Math.ceil((room - needed) / tasks), Math.ceil(room / (tasks + others)));
  };
}
