/** What the other rooms and the tests may use of `core`. */
export { answerEnvelope, answerText } from './answer.ts';
export type { ArtifactRef } from './artifact.ts';
export type { AtOnce, HeldBack } from './at-once.ts';
export { MAX_AT_ONCE } from './at-once.ts';
export { assertPayloadBounds, PAYLOAD_BOUNDS } from './bounds.ts';
export { BranchGraph, dependenciesOf, dependentsOf, linkBranches, orderOf, topologicalOrder } from './branch-graph.ts';
export {
  BranchEnds,
  type BranchVerdict,
  type CallOver,
  type EndOf,
  judgeBranch,
  nothingJudged,
  winnersOf,
} from './branch-verdict.ts';
export {
  ARTIFACT_FETCH,
  AWAIT_TOOL,
  FINISH_TOOL,
  isBuiltinTool,
  isPlanTool,
  MESSAGE_TOOL,
  SKILL_GET,
  SKILL_SEARCH,
  SPAWN_TOOL,
  TOOL_GET,
  TOOL_SEARCH,
} from './builtin-tools.ts';
export { callEnded } from './call-ended.ts';
export { isOwnRemark, MAX_OWN_REMARKS, remarkName, whyNoRemark } from './check-remark.ts';
export type { Clock } from './clock.ts';
export { LONGEST_NAP_MS, limitTime, steadyMs, systemClock } from './clock.ts';
export type { Compaction, CompactionAttempt, CompactionErrorCode, CompactionFailures, Summary } from './compaction.ts';
export type {
  ArtifactRow,
  InputArtifact,
  LoadedInput,
  PlanningHints,
  ReasoningReplay,
  RunContext,
  Skill,
} from './context.ts';
export type { Caller, Control, ControlScope, ControlType, Message } from './control.ts';
export {
  assertCaller,
  assertMaySend,
  CONTROL_SCOPES,
  CONTROL_TYPES,
  INBOX_CAP,
  isCapped,
  isControl,
  isDismissal,
  LEAST_SCOPE,
  mayKnow,
  validateControl,
} from './control.ts';
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
} from './decision.ts';
export { branchesOf, branchId, DECISION_NAMES, FINISH_REASONS, isPlan, PAUSE_REASONS } from './decision.ts';
export { defined } from './defined.ts';
export type {
  Awaiting,
  CallBegan,
  CallEnded,
  CallResult,
  Compacted,
  CompactionFailed,
  ControlTaken,
  Entry,
  EntryBody,
  EntryKind,
  Failed,
  Finished,
  ForkOrigin,
  GroupEnded,
  ModelAway,
  Moved,
  Paused,
  Pin,
  PlanGrown,
  Repaired,
  Repinned,
  Resumed,
  Spawned,
  Started,
  StartRequest,
  TaskEnded,
  TaskPaused,
  Turn,
  Watched,
} from './entry.ts';
export { decodeEntry, ENTRY_VERSION, encodeEntry } from './entry-codec.ts';
export type { ErrorCode, ErrorConsequence, ErrorData } from './errors.ts';
export { describeThrown, ERROR_CONSEQUENCES, fieldOf, PilotageError } from './errors.ts';
export type { EventPayloads, EventType, RunEvent } from './event.ts';
export type { HandleNote, HandleState } from './handle.ts';
export type { Identity, Scope } from './identity.ts';
export { assertIdentity, local, newRunId, scopeKey } from './identity.ts';
export type { Captured } from './json.ts';
export {
  asJson,
  atPointer,
  capture,
  captureForGood,
  captureObject,
  deepFreeze,
  encodedBytes,
  isJsonObject,
  JSON_LIMITS,
  jsonEquals,
  thaw,
} from './json.ts';
export type { Json, JsonObject } from './json-type.ts';
export { knowKey, knowKeysOf, knownSecrets } from './known-secrets.ts';
export { LazySignal } from './lazy-signal.ts';
export type { BudgetAxis, CeilingAxis, CeilingReason, Limits, RunLimits, TaskShare } from './limits.ts';
export { assertRunLimits, CEILING_REASONS, ceilingOf, DEFAULT_STEP_LIMIT, givenLimits, runLimitsOf } from './limits.ts';
export { microUsdOf, usdOf, whyNoUsd } from './money.ts';
export { nearest } from './nearest.ts';
export type { BranchObservation } from './observation.ts';
export { observe, observeBranches, stepError } from './observation.ts';
export type { OptionShape } from './options.ts';
export { assertOptions, assertWords, isOptionsRecord } from './options.ts';
export type { FailureKind, Outcome, PauseVerdict, Verdict } from './outcome.ts';
export { errorOf, failureKindOf } from './outcome.ts';
export type {
  AsksModels,
  BudgetView,
  Delta,
  Move,
  MoveSource,
  Planner,
  PlannerFunction,
  RunView,
  SpokenDelta,
  SteeringTurn,
  Trajectory,
  WakeMode,
} from './planner.ts';
export { asPlanner, isMove, resolveWakeMode } from './planner.ts';
export type { PolicyCall, ToolPolicy } from './policy.ts';
export type { RedactRule } from './redact-rules.ts';
export { redactor } from './redact-rules.ts';
export type { RedactedPart, RedactionOptions, RedactionRule } from './redaction.ts';
export { Redaction } from './redaction.ts';
export type { Reference } from './reference.ts';
export {
  allReferencesIn,
  asLiteral,
  asReference,
  fillReferences,
  isMarked,
  literal,
  mapReferences,
  referenceFault,
  referencesIn,
  resolveReferences,
  unescaped,
} from './reference.ts';
export type {
  OutputMode,
  OwnRemarkType,
  PlanFault,
  PlanTry,
  PlanTryPurpose,
  Remark,
  RemarkPayloads,
  RemarkType,
  RepairCounter,
  RepairTier,
} from './remark.ts';
export { needsOf, openRoute, waysOf } from './routes.ts';
export { oneLine, shownName } from './shown-name.ts';
export type { SkillHit, SkillView } from './skills.ts';
export { SHOWN_SKILLS, skillView } from './skills.ts';
export { isPassedOver } from './skip-reason.ts';
export type { CallPlace, CallRecord, MoveNotes, Step } from './step.ts';
export type {
  BackgroundResult,
  GroupStatus,
  GroupView,
  OnCancel,
  TaskEnd,
  TaskKind,
  TaskMessage,
  TaskOrigin,
  TaskPause,
  TaskStatus,
  TaskUsage,
  TaskView,
} from './task.ts';
export {
  MAX_LIVE_TASKS,
  MAX_TASK_DEPTH,
  MAX_TREE_CALLS,
  MAX_TREE_TASKS,
  runsAbove,
  spawnerOf,
  taskId,
} from './task.ts';
export type { TaskCall } from './task-calls.ts';
export { isTaskTool, taskCall, taskCallAt, taskCallsOf } from './task-calls.ts';
export { mapTexts } from './texts.ts';
export { Thrown } from './thrown.ts';
export { isTooLarge, LARGE_CHARS } from './too-large.ts';
export type { Effect, Loading, ToolSchema, ToolView } from './tool-schema.ts';
export type { Usage, UsageTotals } from './usage.ts';
export { addUsage, amountOf, countUsage, DETAILS, detailsOf, readUsage, shownAmount, usageIn } from './usage.ts';
export {
  captureDecision,
  checkDecision,
  MAX_BRANCHES,
  MAX_PLAN_BRANCHES,
  readDecision,
  validateDecision,
} from './validate-decision.ts';
