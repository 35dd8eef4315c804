/**
 * The package's root: what a program needs that runs agents. Whoever writes a planner or a store, reads what runs have
 * recorded, or takes a runtime from a configuration finds the rest at the subpath of that name; nothing is at two places.
 */
export type {
  Caller,
  Clock,
  Control,
  ControlScope,
  ControlType,
  ErrorCode,
  ErrorConsequence,
  ErrorData,
  EventType,
  Identity,
  InputFile,
  Json,
  JsonObject,
  Limits,
  Planner,
  RedactedPart,
  RedactionOptions,
  RedactionRule,
  RunEvent,
  Scope,
  Usage,
} from '#core';
export { ERROR_CONSEQUENCES, local, PilotageError, systemClock } from '#core';
export type { CompactionOptions, ReactOptions } from '#planners/react';
export { react } from '#planners/react';
export type {
  Answer,
  Approval,
  Diagnosis,
  Divergence,
  EventOptions,
  ForkOptions,
  ForkResult,
  GivenContext,
  GroupResolved,
  MemoryOptions,
  Migrate,
  Migration,
  PauseNotice,
  ProgressGuard,
  Refused,
  RepairOptions,
  ReplayedMove,
  ReplayReport,
  Resumption,
  Run,
  RunChange,
  RunResult,
  Runtime,
  RuntimeOptions,
  SpawnOptions,
  StartOptions,
  TaskQuery,
  TaskRecord,
  Tasks,
  Waiting,
} from '#runtime';
export { createRuntime } from '#runtime';
export type { Agent, AgentLimits, AgentOptions, Handle, Tool, ToolContext, ToolOptions } from '#tools';
export { agent, agentTool, clientTool, handle, handoff, LoginRequired, ToolFailure, tool } from '#tools';
