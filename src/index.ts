/** The face: what a user writes with. Stores, models and test helpers have subpaths of their own. */
export type { Config } from './config/config.ts';
export { defineConfig } from './config/config.ts';
export type {
  DeterministicPart,
  DriverDependencies,
  DriverPart,
  FinishPart,
  ReactPart,
} from './config/drivers.ts';
export { shippedPlanners } from './config/drivers.ts';
export { loadConfig } from './config/load.ts';
export type { ModelEntryPart, ModelPart, ModelServer, ModelsPart } from './config/models.ts';
export type { ReadyConfig, ReadyOptions } from './config/ready.ts';
export { readyConfig } from './config/ready.ts';
export { answerEnvelope, answerText } from './core/answer.ts';
export type { ArtifactRef } from './core/artifact.ts';
export type { Clock } from './core/clock.ts';
export { systemClock } from './core/clock.ts';
export type { Compaction, CompactionAttempt, CompactionFailures, Summary } from './core/compaction.ts';
export type {
  ArtifactRow,
  InputArtifact,
  LoadedInput,
  PlanningHints,
  ReasoningReplay,
  RunContext,
  Skill,
} from './core/context.ts';
export type { Caller, Control, ControlScope, ControlType } from './core/control.ts';
export type {
  AskReason,
  AwaitTask,
  Branch,
  CallParallel,
  CallTool,
  Decision,
  DecisionKind,
  Finish,
  FinishReason,
  Join,
  PauseReason,
  RequestPause,
  Route,
  SpawnSpec,
  SpawnTask,
  TaskLimits,
} from './core/decision.ts';
export type { Entry, EntryBody, EntryKind, Turn } from './core/entry.ts';
export type { ErrorCode, ErrorConsequence, ErrorData } from './core/errors.ts';
export { ERROR_CONSEQUENCES, PilotageError } from './core/errors.ts';
export type { EventPayloads, EventType, RunEvent } from './core/event.ts';
export type { Identity, Scope } from './core/identity.ts';
export { local } from './core/identity.ts';
export type { Json, JsonObject } from './core/json.ts';
export type { CeilingReason, Limits } from './core/limits.ts';
export type { BranchObservation } from './core/observation.ts';
export { observe, observeBranches } from './core/observation.ts';
export type { Outcome, PauseVerdict, Verdict } from './core/outcome.ts';
export type {
  BudgetView,
  Delta,
  Move,
  MoveSource,
  Planner,
  PlannerFunction,
  RunView,
  SteeringTurn,
  Trajectory,
  WakeMode,
} from './core/planner.ts';
export type { PolicyCall, ToolPolicy } from './core/policy.ts';
export type { RedactedPart, RedactionOptions, RedactionRule } from './core/redaction.ts';
export { literal } from './core/reference.ts';
export type {
  OutputMode,
  OwnRemarkType,
  PlanFault,
  PlanTry,
  PlanTryPurpose,
  Remark,
  RemarkType,
  RepairCounter,
  RepairTier,
} from './core/remark.ts';
export type { SkillHit, SkillView } from './core/skills.ts';
export type { CallRecord, Step, Usage } from './core/step.ts';
export type {
  BackgroundResult,
  GroupView,
  TaskEnd,
  TaskKind,
  TaskPause,
  TaskStatus,
  TaskView,
} from './core/task.ts';
export type { Effect, Loading, ToolSchema, ToolView } from './core/tool-schema.ts';
export { memoryJournal } from './journal/memory.ts';
export type { ArtifactAbout, ArtifactStore, Journal, RunQuery, RunRecord, RunStatus } from './journal/port.ts';
export type {
  MemoryHealth,
  SessionMemory,
  SessionMemoryStore,
  SessionSummary,
  SessionTurn,
} from './journal/session-memory.ts';
export type { ModelEntry } from './model/entry.ts';
export type { LanguageModel } from './model/language-model.ts';
export type { Prices } from './model/usage.ts';
export type { DeterministicOptions, DeterministicStep, GroupMember } from './planners/deterministic/index.ts';
export { deterministic, lastResult, lastStep } from './planners/deterministic/index.ts';
export type { FinishOptions } from './planners/finish/index.ts';
export { finish } from './planners/finish/index.ts';
export type { CompactionOptions, ReactOptions } from './planners/react/index.ts';
export { react } from './planners/react/index.ts';
export type { DriverOptions, PlannerFactory, PlannerRegistry } from './planners/registry.ts';
export { plannerRegistry } from './planners/registry.ts';
export type { ForkOptions, ForkResult } from './runtime/fork.ts';
export type { GivenContext, InputFile } from './runtime/inputs.ts';
export type { Migrate, Migration, RunChange } from './runtime/pins.ts';
export type { ProgressGuard } from './runtime/progress-guard.ts';
export type { Diagnosis, Refused, RepairOptions } from './runtime/repair.ts';
export type { Divergence, ReplayedMove, ReplayReport } from './runtime/replay.ts';
export type { PauseNotice, RunResult } from './runtime/result.ts';
export type { Answer, Approval, EventOptions, Resumption, Run } from './runtime/run.ts';
export type { Runtime, RuntimeOptions } from './runtime/runtime.ts';
export { createRuntime } from './runtime/runtime.ts';
export type { MemoryOptions, SummaryInput } from './runtime/session-memory.ts';
export type { StartOptions } from './runtime/start-options.ts';
export type { TaskRecord } from './runtime/task-record.ts';
export type { GroupResolved, SpawnOptions, TaskQuery, Tasks } from './runtime/tasks.ts';
export type {
  Handle,
  HandleClosing,
  HandleContext,
  HandleReason,
  HandleSet,
  LiveHandles,
  NoHandles,
} from './tools/handle.ts';
export { handle } from './tools/handle.ts';
export type {
  AnyTool,
  ApprovalGate,
  ArtifactDescription,
  Backoff,
  EquippedPlanner,
  InputSchema,
  PlannerTool,
  Reconciled,
  RunBudget,
  Tool,
  ToolContext,
  ToolExample,
  ToolOptions,
} from './tools/tool.ts';
export { LoginRequired, ToolFailure, tool } from './tools/tool.ts';
export type { RunComparison } from './view/compare-runs.ts';
export { compareRuns } from './view/compare-runs.ts';
export type { PlanNodeStatus, PlanNodeView, PlanView } from './view/plan.ts';
export { planOf } from './view/plan.ts';
export type { Redact } from './view/redact.ts';
export type { RunState } from './view/run-state.ts';
export { foldEntries } from './view/run-state.ts';
export type { RunTrajectory, TrajectorySource } from './view/trajectory.ts';
export { readTrajectory, trajectoryOf } from './view/trajectory.ts';
