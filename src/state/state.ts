/** What a run's entries add up to: plain JSON data, made and changed by the fold alone. */
import {
  type BackgroundResult,
  branchesOf,
  type CallRecord,
  type Compaction,
  type CompactionFailures,
  type Control,
  type ErrorData,
  type FinishReason,
  type ForkOrigin,
  type HandleState,
  type Identity,
  type Json,
  type JsonObject,
  type Moved,
  type OnCancel,
  type PauseReason,
  type Pin,
  type RunContext,
  type RunLimits,
  type SteeringTurn,
  type Step,
  type TaskEnd,
  type TaskOrigin,
  type TaskPause,
  type TaskShare,
  type TaskView,
  type Turn,
  type UsageTotals,
} from '#core';

/** A step whose calls have not all ended. */
export interface OpenStep {
  /** Replaced when its plan grows. */
  move: Moved;
  /** One slot a branch; `null` until it has ended. */
  readonly calls: (CallRecord | null)[];
  /** Calls that were begun: after a crash such a call may have happened. */
  readonly began: BegunCall[];
  /** What calls under way cost. */
  readonly promised: { readonly call: number; readonly costMicroUsd: number }[];
  /** Calls that somebody approved, with the arguments that were given in place of their own. */
  readonly approvals: ApprovedCall[];
  /** Calls that wait for a task. */
  readonly waits: TaskWait[];
  /** Arguments that somebody gave to nodes of a plan that had not begun. */
  readonly edits: Edit[];
  /** Calls that have not ended, and one more while the plan grows. */
  pending: number;
}

export interface BegunCall {
  readonly call: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** It must not be made twice. */
  readonly once: boolean;
}

export interface ApprovedCall {
  readonly call: number;
  readonly args?: Json;
}

export interface Edit {
  readonly call: number;
  readonly args: Json;
}

export interface TaskWait {
  readonly call: number;
  readonly task: string;
  readonly group?: string;
  readonly until?: number;
  /** The task carries out the call, since then. `atOnce`: so many calls of its tool are under way at once, at most. */
  readonly called?: { readonly startedAt: number; readonly atOnce?: number };
}

/** A task as its owner's journal knows it. */
export interface TaskState extends TaskView {
  readonly call: number;
  readonly onCancel: OnCancel;
  /** It carries out the call. */
  readonly called?: true;
  readonly reserved: TaskShare;
  /** A spawn or an await has given the result. */
  readonly consumed: boolean;
  /** The position in the task's journal of which its pauses are. */
  readonly pausesAsOf: number;
}

export interface OtherPauses {
  readonly task: string;
  readonly pauses: readonly TaskPause[];
  readonly asOf: number;
}

export interface GroupState {
  readonly id: string;
  readonly sealed: boolean;
  readonly failFast: boolean;
  readonly quorum?: number;
  readonly end?: { readonly status: 'completed' | 'cancelled'; readonly reason?: string; readonly at: number };
}

export interface OpenPause {
  readonly token: string;
  readonly reason: PauseReason;
  readonly payload?: JsonObject;
  readonly requestedAt: number;
  readonly expiresAt?: number;
  /** The step that asked for it, if a planner did. */
  readonly step?: number;
  /** The one call that waits, if it is not the step as a whole. */
  readonly call?: number;
  readonly approver?: 'anyone' | 'another';
  readonly onReject?: 'tell' | 'end';
}

export interface ModelAwayState {
  /** Milliseconds since the epoch, as all times here, by the clock of whoever tried. */
  readonly since: number;
  /** For the last time. */
  readonly triedAt: number;
  /** How often all models were tried. */
  readonly tries: number;
  /** Absent: nobody tries again before the run is resumed. */
  readonly retryAt?: number;
}

export type Ending =
  | {
      readonly kind: 'finished';
      readonly reason: FinishReason;
      readonly payload?: Json;
      readonly stored?: true;
      readonly metadata?: JsonObject;
    }
  | { readonly kind: 'failed'; readonly error: ErrorData };

/** With what the run's tasks have used, but for steps and calls. */
export interface RunTotals extends UsageTotals {
  steps: number;
  /** Steps of tasks that have ended. */
  taskSteps: number;
  /** Calls of tools that were started. */
  calls: number;
  /** Calls of tasks that have ended. */
  taskCalls: number;
}

export interface RunState {
  head: number;
  identity: Identity;
  query: string;
  goal: string;
  history: readonly Turn[];
  context: RunContext;
  /** The run is a turn of its session's conversation. */
  conversation: boolean;
  agent: string;
  limits: RunLimits;
  scopes: readonly string[];
  pin: Pin | null;
  task: TaskOrigin | null;
  fork: ForkOrigin | null;
  /** What recorded tool names are called now. */
  renamedTools: Readonly<Record<string, string>>;
  startedAt: number;
  updatedAt: number;
  /** Closed steps, each frozen. The array only grows. */
  steps: Step[];
  open: OpenStep | null;
  pauses: OpenPause[];
  steering: SteeringTurn[];
  /** Controls applied since the last move. */
  fresh: readonly Control[];
  cancel: Control | null;
  /** Messages taken from the inbox so far, applied or not. */
  messagesTaken: number;
  /** In the order in which they were spawned. Replaced when something changes after it was frozen for a view. */
  tasks: readonly TaskState[];
  /** Replaced when something changes, as the next two. */
  groups: readonly GroupState[];
  background: readonly BackgroundResult[];
  /** Ends of tasks of others that this run waited for. */
  otherEnds: readonly TaskEnd[];
  /** What tasks of others that this run waits for wait for themselves. */
  otherPauses: readonly OtherPauses[];
  /** Runs that wait for this one, beside the one that spawned it. */
  watchers: readonly string[];
  /** Somebody rejected a call whose rejection ends the run. */
  rejectedCall: string | null;
  noProgress: { readonly step: number; readonly period: number; readonly times: number } | null;
  /** No model can be asked for the next move, since then; `null` when one could, or nobody has tried since somebody resumed the run. */
  modelAway: ModelAwayState | null;
  /** The first step that the watch over progress looks at. */
  watchedFrom: number;
  /** Moves in a row that did not pass validation. */
  rejections: number;
  totals: RunTotals;
  /** Live handles that calls have used, which may be gone by now. Replaced when something changes. */
  handles: readonly HandleState[];
  /** Tools that calls made known, in order of first sight. Replaced when it grows. */
  found: readonly string[];
  compaction: Compaction | null;
  /** The step before which the history was last tried to be shortened. -1: never. */
  compactedAt: number;
  /** Tries since the last summary that gave none. */
  compactionFailures: CompactionFailures | null;
  ending: Ending | null;
}

/** What a tool is called now that recorded calls know by this name. */
export function presentName({ renamedTools }: Pick<RunState, 'renamedTools'>, tool: string): string {
  return Object.hasOwn(renamedTools, tool) ? (renamedTools[tool] ?? tool) : tool;
}

/** The call was begun, here or by a process that has died since. */
export function hasBegun({ began }: Pick<OpenStep, 'began'>, call: number): boolean {
  return began.some((begun) => begun.call === call);
}

/** The index of the step that the planner is asked for next. */
export function nextStep(state: RunState): number {
  return state.steps.length + (state.open === null ? 0 : 1);
}

/** Branches of the open step, or none. */
export function openBranches(state: RunState): ReturnType<typeof branchesOf> {
  return state.open === null ? [] : branchesOf(state.open.move.decision);
}
