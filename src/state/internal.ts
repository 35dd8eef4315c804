/** What the other rooms and the tests may use of `state`. */

export {
  answerable,
  hasEndedUnderRaise,
  holdsDoubt,
  isBlocked,
  isHeld,
  isInDoubt,
  isPaused,
  isRedirected,
  mayGiveUp,
  nextTimeout,
  openBehind,
  ownPause,
  parkedCalls,
  pausesOfTasks,
  tasksOfAgentCalls,
  unneededRaise,
  unneededTasks,
  wakesByTasks,
} from './blocked-calls.ts';
export type { Amounts, ShareAxis, Split } from './budget.ts';
export { countsAsCall, leftOf, moneyFor, reachedLimit, setAsideFor, shareFor } from './budget.ts';
export type { RunComparison, RunSummary, StepPair, StepSummary } from './compare-runs.ts';
export { compareRuns } from './compare-runs.ts';
export { event } from './event.ts';
export { eventsOf } from './events.ts';
export { misfitAmong } from './follows.ts';
export { wholeMove } from './growth.ts';
export { atOnceOf } from './held-back.ts';
export type { PlanNodeStatus, PlanNodeView, PlanView } from './plan.ts';
export { planOf, planOfDecision, planOfStep } from './plan.ts';
export { nodeEdits } from './plan-edits.ts';
export { MAX_PERIOD, MAX_TIMES, repetitionIn } from './progress.ts';
export type { Redact } from './redact.ts';
export { redacted } from './redact.ts';
export { applyEntry, applyFitting, foldEntries, openState } from './run-state.ts';
export { drivenStatus, endedStatus, parkedStatus, statusAfter, unsettledStatus } from './run-status.ts';
export { viewOf } from './run-view.ts';
export { sameDecision } from './same-decision.ts';
export type {
  ApprovedCall,
  Ending,
  GroupState,
  OpenPause,
  OpenStep,
  RunState,
  RunTotals,
  TaskState,
  TaskWait,
} from './state.ts';
export { hasBegun, nextStep, presentName } from './state.ts';
export { groupView } from './task-state.ts';
export type { RunTrajectory } from './trajectory.ts';
export { readTrajectory, trajectoryOf } from './trajectory.ts';
