/** What the other rooms and the tests may use of `runtime`. */
export { artifactFetch } from '../calls/large-values.ts';
export { type Ended, Schedule } from '../calls/schedule.ts';
export { isVerdict } from '../loop/answers.ts';
export { takeMessages } from '../loop/controls.ts';
export { HeldLease, momentOf } from '../loop/held-lease.ts';
export type { GivenContext } from '../loop/inputs.ts';
export { loadInputs } from '../loop/inputs.ts';
export type { Notice } from '../loop/notices.ts';
export type { ProgressGuard } from '../loop/progress-guard.ts';
export { Said } from '../loop/said.ts';
export { limitsWithin } from '../tasks/budget-share.ts';
export { taskEndOf } from '../tasks/ending.ts';
export { addressee } from './addressee.ts';
export type { AgentRecord } from './agents.ts';
export type { Answer, Approval, PauseAnswer, Rejection, Settlement } from './answers.ts';
export { callMeant } from './cancel-call.ts';
export type { Advance, Advanced, Driver } from './driver-port.ts';
export { allRunsOf, eraseUser } from './erase.ts';
export type { ForkOptions, ForkPlan, ForkResult } from './fork.ts';
export { forkEntries, forkRun } from './fork.ts';
export type { Gate } from './gate.ts';
export type { GivenTurn } from './given-history.ts';
export { isDeadOwner, ownerName, ownerText, type ProcessSurroundings, SURROUNDINGS } from './leases.ts';
export type { HistoryHooks } from './own-history.ts';
export { PartStore, REOPENED } from './part-store.ts';
export { Incoming, OutgoingPassing } from './passing-batch.ts';
export { Refusals } from './pick-up.ts';
export type { Migrate, Migration, RunChange } from './pins.ts';
export { followRows } from './read-stream.ts';
export { foldable } from './readable.ts';
export type { Diagnosis, Refused, RepairOptions } from './repair.ts';
export { diagnose, repairRun } from './repair.ts';
export type { Divergence, ReplayedMove, ReplayReport, ReplayRequest } from './replay.ts';
export { replayRun } from './replay.ts';
export type { PauseNotice, RunResult } from './result.ts';
export { runResultOf, wholeAnswerOf, wholePauses } from './result.ts';
export { Run } from './run.ts';
export type { RunNews } from './run-news.ts';
export type { EventOptions, Resumption } from './run-options.ts';
export { createRuntime, Runtime } from './runtime.ts';
export type { RuntimeOptions } from './runtime-options.ts';
export {
  OVERLAP_MODES,
  type OverlapMode,
  type ScheduleOptions,
  type ScheduleRecord,
} from './schedule-definition.ts';
export { CATCH_UP_MODES, type CatchUp, fireTimes, type ScheduleTimes, timesToFire } from './schedule-times.ts';
export { type Speaker, sendControl, speakerOn, whyLate, whyRefused } from './send-control.ts';
export type { SendOptions, SentMessage, Session, SessionOptions } from './session.ts';
export type { SessionEvent } from './session-events.ts';
export type { MemoryOptions } from './session-memory.ts';
export { continuedAfter } from './session-memory.ts';
export { turnsBefore } from './session-path.ts';
export { BUSY_MODES, type BusyMode } from './session-send.ts';
export { DATA_STREAM } from './session-shown.ts';
export type { TurnView } from './session-turns.ts';
export { type SignalResult, sendSignal } from './signal.ts';
export type { AdvanceDueOptions, AdvancedRun, AdvancedRuns, AdvanceOptions } from './slices.ts';
export type { StartOptions } from './start-options.ts';
export type { StoreOptions } from './store.ts';
export { longTermMemory, storeOn } from './store.ts';
export type { TaskRecord } from './task-record.ts';
export type { GroupResolved, SpawnOptions, TaskQuery } from './tasks.ts';
export { Tasks } from './tasks.ts';
export { listWaiting, type Waiting } from './waiting.ts';
