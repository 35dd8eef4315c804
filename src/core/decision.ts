/** The six things a planner can decide. The union is sealed: the loop knows these and no others. */
import type { ArtifactRef } from './artifact.ts';
import type { ErrorData } from './errors.ts';
import type { Json, JsonObject } from './json.ts';
import { CEILING_REASONS, type CeilingReason, type Limits } from './limits.ts';
import type { FailureKind } from './outcome.ts';

/** `no_path`: the planner knows no way on. A limit that ends a run has its own word. */
export type FinishReason = 'goal' | 'no_path' | 'cancelled' | 'constraints_conflict' | CeilingReason;
/** What a planner may pause for. */
export type AskReason = 'approval_required' | 'await_input' | 'external_event' | 'constraints_conflict';
/**
 * Why a run waits for somebody. `in_doubt`: nobody knows whether one of its `once` calls has happened. `model_unavailable`: no
 * model could be asked, and waiting has not helped or cannot.
 */
export type PauseReason = AskReason | 'in_doubt' | 'model_unavailable';

export const FINISH_REASONS: readonly FinishReason[] = [
  'goal',
  'no_path',
  'cancelled',
  'constraints_conflict',
  ...Object.values(CEILING_REASONS),
];
export const PAUSE_REASONS: readonly AskReason[] = [
  'approval_required',
  'await_input',
  'external_event',
  'constraints_conflict',
];

/** One of several ways to a branch. It is open when all that it needs has ended with a value, and its condition holds. */
export interface Route {
  readonly args: Json;
  readonly after?: readonly string[];
  readonly when?: { readonly branch: string; readonly equals: Json };
}

export interface Branch {
  /** Unique in its call; other branches refer to it. Default: its index, as text. */
  readonly id?: string;
  readonly tool: string;
  /** May hold `{ "$from": "<branch id>", "path": "<JSON Pointer>" }` anywhere: an earlier branch's value. */
  readonly args: Json;
  readonly callId?: string;
  /** The planner knows that the call cannot be made: it is not run, and this is its outcome. */
  readonly refusal?: ErrorData;
  /** Runs when these branches have ended with a value; if one did not, this branch is skipped. */
  readonly after?: readonly string[];
  /** The same, but it runs also when such a branch was passed over: a condition did not hold, or somebody took it out. */
  readonly behind?: readonly string[];
  /** Runs only if that branch's value equals this; otherwise the branch is skipped. */
  readonly when?: { readonly branch: string; readonly equals: Json };
  /**
   * In place of `after`, `behind` and `when`, and of `args`, which is null then. When all that the routes need has ended, the branch
   * runs with the arguments of the first open one; with none open it is skipped. Not for branches that spawn or await.
   */
  readonly routes?: readonly Route[];
  /**
   * The plan was made when the run had done something already. If the tool is `once` or `keyed` and a call of an earlier step had
   * these arguments and has a value, or may have happened, that is the outcome and nothing is called; one of a `keyed` tool that
   * may have happened is made again under its key.
   */
  readonly reuse?: true;
  /** Failures of these kinds do not stop the others of a call that fails fast. */
  readonly tolerates?: readonly FailureKind[];
}

export type Join =
  | { readonly kind: 'all' }
  | { readonly kind: 'first_success' }
  | { readonly kind: 'n'; readonly n: number }
  | { readonly kind: 'keyed'; readonly keys: readonly string[] };

export interface SpawnSpec {
  readonly description: string;
  readonly query: string;
  /** -1000 to 1000; 0 is the middle, higher runs first. */
  readonly priority?: number;
  /** The step stays open until the task has ended, and has its result. Default: true for a foreground task. */
  readonly retainTurn?: boolean;
  /** What an ending of this run other than `goal` does to the task. Default `cascade`: it is cancelled too. */
  readonly onCancel?: 'cascade' | 'isolate';
  /** At most what this run has left. Default: half of it on each axis that is limited. */
  readonly limits?: TaskLimits;
  /** This is the last task of its group, which resolves when all have ended. A task without a group id is alone in its own. */
  readonly seal?: boolean;
  /** Of the group, set by its first task: one failure cancels the others. */
  readonly failFast?: boolean;
  /** Of the group, set by its first task: with so many complete the group is, and the others are cancelled. */
  readonly quorum?: number;
}

/** The part of a run's limits that a task may be given. */
export type TaskLimits = Pick<Limits, 'steps' | 'calls' | 'deadlineAt' | 'costUsd' | 'tokens'>;

export interface CallTool {
  readonly kind: 'call_tool';
  readonly tool: string;
  readonly args: Json;
  readonly callId?: string;
  /** As on a branch. */
  readonly refusal?: ErrorData;
  /** As on a branch. */
  readonly reuse?: true;
}
export interface CallParallel {
  readonly kind: 'call_parallel';
  readonly branches: readonly Branch[];
  /** Default `all`. */
  readonly join?: Join;
  /** What one branch with bad arguments does to the others. Default `fail_all`: nothing is started. */
  readonly onInvalid?: 'fail_all' | 'per_branch';
  /**
   * The first branch that ends as an error or unknown stops the others: those that run are aborted, and those that do not end
   * as cancelled. The step has no error for it; the join says what it comes to. Not for a plan that is given in parts.
   */
  readonly failFast?: true;
  /** Branches that may run at once, from 1. Default and at most 50. With 1 they run in order, whatever each comes to. */
  readonly concurrency?: number;
  /**
   * The call carries out the plan of this id, and the branches are its nodes: up to 10,000, the longest chain first. A branch
   * of the tool `_message` gives its arguments as they are, as something said to the user; one of `_finish` does so too, and
   * ends the plan: the others are stopped.
   */
  readonly plan?: string;
}
export interface SpawnTask {
  readonly kind: 'spawn_task';
  readonly task: 'foreground' | 'background';
  readonly spec: SpawnSpec;
  readonly groupId?: string;
  readonly callId?: string;
}
export interface AwaitTask {
  readonly kind: 'await_task';
  readonly taskId: string;
  /** Waits for the whole of this group of the run's, of which the task is a member, and seals it. */
  readonly groupId?: string;
  /** From the moment of the decision. Default: until the run's deadline. */
  readonly timeoutMs?: number;
  readonly callId?: string;
}
export interface RequestPause {
  readonly kind: 'request_pause';
  readonly reason: AskReason;
  /** At most 6 levels, 64 keys a map, 50 items a list, 4,096 characters a string, 16,384 bytes in all. */
  readonly payload?: JsonObject;
  readonly expiresInMs?: number;
}
export interface Finish {
  readonly kind: 'finish';
  readonly reason: FinishReason;
  readonly payload?: Json | ArtifactRef;
  /** The payload is the reference of an artifact whose JSON is the result. */
  readonly stored?: true;
  readonly metadata?: JsonObject;
}

/** A parallel call that carries out a plan. */
export type PlanCall = CallParallel & { readonly plan: string };

export type Decision = CallTool | CallParallel | SpawnTask | AwaitTask | RequestPause | Finish;
export type DecisionKind = Decision['kind'];

/** The word that events and telemetry use for each kind. */
export const DECISION_NAMES: Readonly<Record<DecisionKind, string>> = {
  call_tool: 'CallTool',
  call_parallel: 'CallParallel',
  spawn_task: 'SpawnTask',
  await_task: 'AwaitTask',
  request_pause: 'RequestPause',
  finish: 'Finish',
};

export function isPlan(decision: Decision): decision is PlanCall {
  return decision.kind === 'call_parallel' && decision.plan !== undefined;
}

/** The branches of a decision: a single call is a call of one branch. Other decisions have none. */
export function branchesOf(decision: Decision): readonly Branch[] {
  if (decision.kind === 'call_parallel') return decision.branches;
  return decision.kind === 'call_tool' ? [decision] : [];
}

/** The name by which other branches know the branch at `index`. */
export function branchId(branch: Branch, index: number): string {
  return branch.id ?? String(index);
}
