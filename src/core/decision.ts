/** The six things a planner can decide. The union is sealed: the loop knows these and no others. */

import type { ArtifactRef } from './artifact.ts';
import type { ErrorData } from './errors.ts';
import type { GivenJson, GivenJsonObject, Json, JsonObject } from './json.ts';
import { CEILING_REASONS, type CeilingReason, type Limits } from './limits.ts';
import type { FailureKind } from './outcome.ts';

/**
 * - `no_path`: the planner sees no way to the goal.
 * - `refused`: the model, or its provider, did not want to answer. The metadata has what was said, as `refusal`.
 * - `length`: the answer is not whole, for the limit of a reply's length cut it off. The payload is the text so far.
 *
 * - `continued`: the run goes on in another one, under its own id, with what it has left to it (`continued`).
 * - `handed_over`: another agent goes on with the conversation.
 *
 * A run that a limit ends has a reason of its own (`CeilingReason`).
 */
export type FinishReason =
  | 'goal'
  | 'no_path'
  | 'refused'
  | 'length'
  | 'continued'
  | 'handed_over'
  | 'cancelled'
  | 'constraints_conflict'
  | CeilingReason;
/** What a planner may pause for. */
export type AskReason = 'approval_required' | 'await_input' | 'external_event' | 'constraints_conflict';
/**
 * Why a run waits for somebody. `in_doubt`: nobody knows whether one of its `once` calls has happened. `model_unavailable`: no
 * model could be asked, and waiting has not helped or cannot help. `context_exhausted`: the next request fits no model, though its
 * history was shortened as far as it can be. `plan_failed`: nodes of its plan have failed; to resume is to retry them. `client_tool`: a client
 * is to carry out a call, and to say what it came to.
 */
export type PauseReason =
  | AskReason
  | 'in_doubt'
  | 'model_unavailable'
  | 'context_exhausted'
  | 'plan_failed'
  | 'client_tool';

export const FINISH_REASONS: readonly FinishReason[] = [
  'goal',
  'no_path',
  'refused',
  'length',
  'continued',
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
/** Reasons for which a run pauses by itself. What it records there may hold errors, which are for operators. */
export type OperatorReason = Exclude<PauseReason, AskReason | 'client_tool'>;
const OF_OPERATORS: Readonly<Record<OperatorReason, true>> = {
  in_doubt: true,
  model_unavailable: true,
  context_exhausted: true,
  plan_failed: true,
};
export const OPERATOR_REASONS: readonly string[] = Object.keys(OF_OPERATORS);

export function isForOperators(reason: PauseReason): reason is OperatorReason {
  return Object.hasOwn(OF_OPERATORS, reason);
}

/** A way to a branch, of several. A route is open when every branch that it needs has ended with a value and its condition holds. */
export interface Route {
  readonly args: Json;
  readonly after?: readonly string[];
  readonly when?: { readonly branch: string; readonly equals: Json };
}

export interface Branch {
  /** Unique in its call; other branches refer to it. Default: its index, as text. */
  readonly id?: string;
  readonly tool: string;
  /** References `{ "$from": "<branch id>", "path": "<JSON Pointer>" }` anywhere inside stand for the value of an earlier branch. */
  readonly args: Json;
  readonly callId?: string;
  /** Set when the planner knows that the call cannot be made: the tool is not run, and the call's outcome is this error. */
  readonly refusal?: ErrorData;
  /** This branch runs when all of these branches have ended with a value; if one ends without, this branch is skipped. */
  readonly after?: readonly string[];
  /** Like `after`, but a branch that was skipped counts too: its condition did not hold, or somebody took it out of the plan. */
  readonly behind?: readonly string[];
  /** Runs only if that branch's value equals this; otherwise the branch is skipped. */
  readonly when?: { readonly branch: string; readonly equals: Json };
  /**
   * Routes stand in place of `after`, `behind` and `when`, and of `args`, which is then null. When every branch that the routes
   * need has ended, this branch runs with the arguments of the first open route; when no route is open, the branch is skipped. Branches
   * that spawn or await cannot have routes.
   */
  readonly routes?: readonly Route[];
  /**
   * Set in a plan that was made after the run had done something. If the tool is `once` or `keyed`, and a call of an earlier step
   * with the same arguments has a value or may have happened, its outcome is taken and the tool is not called. A `keyed` call that
   * may have happened is made again under its old key.
   */
  readonly reuse?: true;
  /** In a call with `failFast`, failures of these kinds do not stop the other branches. */
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
  /** The agent of the runtime that does it. Default: the run's own. */
  readonly agent?: string;
  /** -1000 to 1000; 0 is the middle, higher runs first. */
  readonly priority?: number;
  /** True: the step stays open until the task has ended, and gets the result. Default: true for a foreground task. */
  readonly retainTurn?: boolean;
  /** What an ending of this run other than `goal` does to the task. Default `cascade`: it is cancelled too. */
  readonly onCancel?: 'cascade' | 'isolate';
  /** Limits of the task, at most what this run has left. Default: half of what is left, on each limited axis. */
  readonly limits?: TaskLimits;
  /**
   * True: no task joins the group after this one; the group resolves when all its tasks have ended. A task without a group id has
   * a group of its own.
   */
  readonly seal?: boolean;
  /** A setting of the group, made by its first task: the failure of one task cancels the others. */
  readonly failFast?: boolean;
  /**
   * A setting of the group, made by its first task: when this many tasks are complete, the group is complete and the others are
   * cancelled.
   */
  readonly quorum?: number;
}

/** The part of a run's limits that a task may be given. */
export type TaskLimits = Pick<Limits, 'steps' | 'calls' | 'deadlineAt' | 'costUsd' | 'tokens'>;

export interface CallTool {
  readonly kind: 'call_tool';
  readonly tool: string;
  readonly args: Json;
  readonly callId?: string;
  /** See `Branch.refusal`. */
  readonly refusal?: ErrorData;
  /** See `Branch.reuse`. */
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
   * The first branch that ends with an error or an unknown outcome stops the others: running branches are aborted, and branches
   * that have not ended are cancelled. The step itself does not fail; the join decides its outcome. A plan that is given in parts
   * cannot fail fast.
   */
  readonly failFast?: true;
  /** Branches that may run at once, from 1. Default and at most 50. With 1 they run in order, however each of them ends. */
  readonly concurrency?: number;
  /**
   * The call carries out the plan of this id, and the branches are its nodes: up to 10,000, the longest chain first. A branch
   * with the tool `_message` says its arguments to the user, unchanged; a branch with the tool `_finish` gives its arguments as
   * the result and ends the plan: the other branches are stopped.
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
  /** Waits for the whole group of this id, to which the task belongs, and seals it. The group must be the run's own. */
  readonly groupId?: string;
  /** How long to wait, counted from the decision. Default: until the run's deadline. */
  readonly timeoutMs?: number;
  readonly callId?: string;
}
export interface RequestPause {
  readonly kind: 'request_pause';
  readonly reason: AskReason;
  /** What is asked, for whoever shows the pause. */
  readonly payload?: JsonObject;
  /** JSON Schema of the payload of whoever resumes it: one that does not fit is refused. */
  readonly schema?: JsonObject;
  readonly expiresInMs?: number;
}
export interface Finish {
  readonly kind: 'finish';
  readonly reason: FinishReason;
  readonly payload?: Json | ArtifactRef;
  /** The payload is the reference of an artifact whose JSON is the result. */
  readonly stored?: true;
  readonly metadata?: JsonObject;
  /**
   * With the reason `continued`: what the run that goes on gets as `context.carried`. It begins without steps, with the same agent and query, and what is left
   * of the limits on money, tokens and time. A task cannot be continued.
   */
  readonly continued?: Json;
}

/** A parallel call that carries out a plan. */
export type PlanCall = CallParallel & { readonly plan: string };

export type Decision = CallTool | CallParallel | SpawnTask | AwaitTask | RequestPause | Finish;
export type DecisionKind = Decision['kind'];

/** A part of a decision whose values are JSON as programs write it. */
type Given<T> = {
  readonly [K in keyof T]: T[K] extends readonly Branch[]
    ? readonly Given<Branch>[]
    : JsonObject extends T[K]
      ? T[K] | (Json extends T[K] ? GivenJson : GivenJsonObject)
      : T[K];
};
/**
 * A decision as a planner may give it. Where a function returns several, or lists branches, TypeScript gives each of their objects the keys of all,
 * as `undefined`.
 */
export type GivenDecision = {
  readonly [K in DecisionKind]: Given<Extract<Decision, { readonly kind: K }>>;
}[DecisionKind];

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
