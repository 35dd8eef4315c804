/** Tasks: runs that a run has started. What a run knows of them, and what runs tell each other. */
import type { PauseReason } from './decision.ts';
import type { ErrorData } from './errors.ts';
import type { Json, JsonObject } from './json.ts';

export type TaskKind = 'foreground' | 'background';
export type TaskStatus = 'pending' | 'running' | 'paused' | 'complete' | 'failed' | 'cancelled';
export type OnCancel = 'cascade' | 'isolate';

/** At most so many runs below each other, the first not counted. */
export const MAX_TASK_DEPTH = 4;
/** Tasks of one run that have not ended. */
export const MAX_LIVE_TASKS = 16;
/** Tasks that a run and the tasks below it may ever start. */
export const MAX_TREE_TASKS = 64;

/** Where a run comes from that is a task of another. */
export interface TaskOrigin {
  readonly parent: string;
  /** The run that nobody spawned, at the top. */
  readonly root: string;
  /** 1 for a task of the root. */
  readonly depth: number;
  readonly kind: TaskKind;
  readonly description: string;
  readonly group: string;
  readonly onCancel: OnCancel;
}

/** What the budget of a run has set aside for a task, and what the task has used, with its own tasks. */
export interface TaskUsage {
  readonly steps: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costMicroUsd: number;
}

/** How a task ended. `complete` is a finish with `goal`; every other finish is a failure with its reason as code. */
export interface TaskEnd {
  readonly task: string;
  readonly status: 'complete' | 'failed' | 'cancelled';
  /** What the task finished with. */
  readonly result?: Json;
  readonly error?: ErrorData;
  readonly usage: TaskUsage;
}

/** A pause of a task, as the runs above it are told of it. */
export interface TaskPause {
  readonly run: string;
  readonly token: string;
  readonly reason: PauseReason;
  readonly payload?: JsonObject;
  readonly expiresAt?: number;
}

/** What runs tell each other, through the same inbox as controls; nobody else can send these. `id` is unique in its run. */
export type TaskMessage =
  | { readonly id: string; readonly type: 'TASK_ENDED'; readonly end: TaskEnd }
  /**
   * The pauses that the task and those below it wait at; none: it goes on. `asOf` is the position in the task's journal at
   * which that was so: a process that stood still may tell it late.
   */
  | {
      readonly id: string;
      readonly type: 'TASK_PAUSES';
      readonly task: string;
      readonly pauses: readonly TaskPause[];
      readonly asOf: number;
    }
  /** The run `by` waits for this one: it is to be told of the ending. */
  | { readonly id: string; readonly type: 'WATCH'; readonly by: string };

/** A task as its owner's planner sees it. */
export interface TaskView {
  readonly id: string;
  readonly group: string;
  readonly kind: TaskKind;
  readonly description: string;
  /** The step that started it. */
  readonly step: number;
  /** Absent while it is under way. */
  readonly end?: TaskEnd;
  /** What it waits for somebody to answer; empty when it does not. */
  readonly pauses: readonly TaskPause[];
}

export type GroupStatus = 'open' | 'sealed' | 'completed' | 'cancelled';

/** A group as its owner's planner sees it. */
export interface GroupView {
  readonly id: string;
  readonly status: GroupStatus;
  /** In the order in which they were spawned. */
  readonly members: readonly TaskView[];
  /** Why it was cancelled, or completed before all had ended: `fail-fast:<code>`, `quorum`. */
  readonly reason?: string;
  /** Milliseconds since the epoch. */
  readonly endedAt?: number;
}

/** A group whose results came to the run by themselves, at the step that was next then. */
export interface BackgroundResult {
  readonly atStep: number;
  readonly group: GroupView;
}
