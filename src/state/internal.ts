/** What the other rooms and the tests may use of `state`. */
export {
  missingApprovals,
  missingIn,
  remembering,
  ruleSetBy,
  toTellOf,
  withApproval,
} from './approvals.ts';
export {
  answerable,
  awaitedTasks,
  callsOfEndedTasks,
  drivenStatus,
  endedStatus,
  hasEndedUnderRaise,
  hasNewGoal,
  holdsDoubt,
  isBlocked,
  isHeld,
  isInDoubt,
  isPaused,
  isRedirected,
  isSteering,
  mayGiveUp,
  nextTimeout,
  openBehind,
  overWaits,
  ownPause,
  parkedCalls,
  parkedStatus,
  pausesOfTasks,
  saidWith,
  statusAfter,
  tasksOfAgentCalls,
  unneededRaise,
  unneededTasks,
  unsettledStatus,
  wakesByTasks,
  withdrawals,
  withdrawnBy,
  withdrawnByWord,
} from './blocked-calls.ts';
export { breakBefore, breakpointIn } from './breakpoints.ts';
export {
  type Amounts,
  countsAsCall,
  leftOf,
  leftOn,
  moneyFor,
  reachedLimit,
  type ShareAxis,
  type Split,
  setAsideFor,
  shareFor,
  stepsCounted,
  sumOfShares,
} from './budget.ts';
export { cancelledBySomebody, cancelledCalls, cancelOf, halfDoneWhen, unfitToCancel } from './call-cancels.ts';
export { type ClosedPause, closedIn } from './closed-in.ts';
export { closedAmong, lostRaces, whyClosed } from './closed-with.ts';
export { compareRuns, type RunComparison, type RunSummary, type StepPair, type StepSummary } from './compare-runs.ts';
export { event, eventsOf, type Redact, redacted } from './events.ts';
export { applyEntry, applyFitting, foldEntries, openState } from './fold.ts';
export { misfitAmong, Prospect } from './follows.ts';
export { ShownFiles } from './media.ts';
export { grownMove, nodeEdits, wholeMove } from './open-step.ts';
export { openWaitsOf, waitChanges } from './open-waits.ts';
export { itemIn, liveIn, membersIn } from './places.ts';
export {
  atOnceOf,
  type PlanNodeStatus,
  type PlanNodeView,
  type PlanView,
  planOf,
  planOfDecision,
  planOfStep,
} from './plan-view.ts';
export { MAX_PERIOD, MAX_TIMES, repetitionIn, sameDecision } from './repetition.ts';
export { deadlineOf, wholeTimeMs } from './reserve.ts';
export {
  assertRetrying,
  begunBefore,
  callsToRetry,
  cannotRetry,
  failedPlan,
  namedNodes,
  onceBegun,
} from './retry.ts';
export { budgetOf, viewOf } from './run-view.ts';
export { type RunSnapshot, snapshotOf } from './snapshot.ts';
export {
  type ApprovedCall,
  type AwayCall,
  awayCall,
  type Breakpoint,
  type CallCancel,
  type Ending,
  givenArgs,
  hasBegun,
  nextStep,
  type OpenPause,
  type OpenStep,
  openBranches,
  presentName,
  type RunState,
  type RunTotals,
  type TaskState,
  type TaskWait,
  type WaitingCall,
  type WaitState,
  waitingCall,
  withheldTools,
} from './state.ts';
export { copyState, FOLD_VERSION, packState, unpackState } from './stored-state.ts';
export { freshUsage, groupView, restOf, verdictOn } from './task-state.ts';
export { toldRun } from './told-run.ts';
export { summaryText, turnsOf } from './told-turns.ts';
export { type RunTrajectory, readTrajectory, trajectoryOf } from './trajectory.ts';
export { callsToUndo, isUndoUnderWay, taskToUndo, type UndoableCall, unsureCalls } from './undo.ts';
export { type UndoStop, undoCounts, undoReport, withReport } from './undo-report.ts';
export { asksNothing, halfDone, waitsForEvent } from './waiting-calls.ts';
