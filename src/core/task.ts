/** Tasks: runs that a run has started. What a run knows of them, and what runs tell each other. */
import type { InputArtifact } from './artifact.ts';
import type { AwaitTask, Decision, PauseReason, SpawnSpec, SpawnTask, TaskLimits } from './decision.ts';
import type { ErrorData } from './errors.ts';
import { isJsonObject, type Json, type JsonObject } from './json.ts';
import type { UsageTotals } from './limits.ts';
import { unescaped } from './reference.ts';
import { AWAIT_TOOL, SPAWN_TOOL } from './tool.ts';

export type TaskKind = 'foreground' | 'background';
export type TaskStatus = 'pending' | 'running' | 'paused' | 'complete' | 'failed' | 'cancelled';
export type OnCancel = 'cascade' | 'isolate';

/** The greatest depth of a tree of runs; the root has depth 0. */
export const MAX_TASK_DEPTH = 4;
/** How many tasks of one run may be unfinished at once. Tasks that carry out calls are not counted: they are limited as calls are. */
export const MAX_LIVE_TASKS = 16;
/** How many runs under the root of a tree may be unfinished before no task is spawned any more. */
export const MAX_TREE_TASKS = 64;
/** How many runs under the root of a tree may be unfinished before no call is carried out by a task any more. */
export const MAX_TREE_CALLS = 100_000;

/**
 * The id of the task that a call starts: the same however often it is tried.
 * @param before how many tasks the call has started, when it is carried out once more.
 */
export function taskId(parent: string, step: number, call: number, before: number = 0): string {
  return before === 0 ? `${parent}.${step}.${call}` : `${parent}.${step}.${call}~${before + 1}`;
}

/** The run whose task has, or would have, this id; `undefined` for an id that no task has. */
export function spawnerOf(run: string): string | undefined {
  return /^(.+)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:~[1-9]\d*)?$/s.exec(run)?.[1];
}

/** The ids of the runs above a task, the nearest first. @param depth of the task: 1 for a task of the root. */
export function runsAbove(run: string, depth: number): readonly string[] {
  const above: string[] = [];
  let id = run;
  for (let level = 0; level < depth; level += 1) {
    id = id.slice(0, id.lastIndexOf('.', id.lastIndexOf('.') - 1));
    above.push(id);
  }
  return above;
}

/** The origin of a run that is a task of another run. */
export interface TaskOrigin {
  readonly parent: string;
  /** The root of the tree: the run that no other run spawned. */
  readonly root: string;
  /** 1 for a task of the root. */
  readonly depth: number;
  readonly kind: TaskKind;
  readonly description: string;
  readonly group: string;
  readonly onCancel: OnCancel;
}

/** The part of a run's budget that is reserved for a task, or what the task, with its own tasks, has used. */
export interface TaskUsage extends Readonly<UsageTotals> {
  readonly steps: number;
  /** Calls of tools. Absent in journals from before they were counted: none. */
  readonly calls?: number;
}

/** How a task ended. `complete` is a finish with `goal`; every other finish is a failure with its reason as code. */
export interface TaskEnd {
  readonly task: string;
  readonly status: 'complete' | 'failed' | 'cancelled';
  /** The payload that the task finished with. */
  readonly result?: Json;
  /** The result is the reference of the artifact that holds it. */
  readonly stored?: true;
  /** Files that its model has made with its last reply. */
  readonly files?: readonly InputArtifact[];
  readonly error?: ErrorData;
  readonly usage: TaskUsage;
}

/** A pause of a task, as the runs above it are told of it. */
export interface TaskPause {
  readonly run: string;
  readonly token: string;
  readonly reason: PauseReason;
  readonly payload?: JsonObject;
  /** JSON Schema of the answer. */
  readonly schema?: JsonObject;
  /** Set when a call asks in the middle of its work: its answer is a value, or that nobody wants to answer. */
  readonly wait?: number;
  readonly expiresAt?: number;
  /** How many people have still to approve, where more than one has to. */
  readonly missing?: number;
  /** What the task's planner said when it asked, such as its question to the user. Absent when it said nothing. */
  readonly text?: string;
}

/** Whether the pause asks for more budget: its payload is `{ budget: 'steps', limit: 3, used: 3 }`. */
export function asksForBudget({ reason, payload }: Pick<TaskPause, 'reason' | 'payload'>): boolean {
  return reason === 'constraints_conflict' && typeof payload?.['budget'] === 'string';
}

/** Whether the planner itself asks for something that is to be filled in: what it is told is an object, which fits the schema where there is one. */
export function asksOpenly({ reason, schema, wait }: Pick<TaskPause, 'reason' | 'schema' | 'wait'>): boolean {
  if (wait !== undefined || reason === 'approval_required') return false;
  return schema !== undefined || reason === 'await_input';
}

/** What runs tell each other, through the same inbox as controls; nobody else can send these. `id` is unique in its run. */
export type TaskMessage =
  | { readonly id: string; readonly type: 'TASK_ENDED'; readonly end: TaskEnd }
  /**
   * The open pauses of the task and of the tasks below it; an empty list: the task goes on. `asOf` is the position in the task's journal
   * at which these pauses were open: a process that stood still may report them late.
   */
  | {
      readonly id: string;
      readonly type: 'TASK_PAUSES';
      readonly task: string;
      readonly pauses: readonly TaskPause[];
      readonly asOf: number;
    }
  /** The run `by` waits for this run, and must be told how it ends. */
  | { readonly id: string; readonly type: 'WATCH'; readonly by: string };

/** A task as its owner's planner sees it. */
export interface TaskView {
  readonly id: string;
  readonly group: string;
  readonly kind: TaskKind;
  readonly description: string;
  /** The step that started it. */
  readonly step: number;
  /** How the task ended; absent while it is under way. */
  readonly end?: TaskEnd;
  /** Open pauses of the task, which somebody must answer; empty when there are none. */
  readonly pauses: readonly TaskPause[];
}

export type GroupStatus = 'open' | 'sealed' | 'completed' | 'cancelled';

/** A group as its owner's planner sees it. */
export interface GroupView {
  readonly id: string;
  readonly status: GroupStatus;
  /** In the order in which they were spawned. */
  readonly members: readonly TaskView[];
  /** Why the group was cancelled, or was complete before all its tasks had ended: `fail-fast:<code>`, `quorum`. */
  readonly reason?: string;
  /** Milliseconds since the epoch. */
  readonly endedAt?: number;
}

/** The results of a group that the run did not await, with the step that was next when they came. */
export interface BackgroundResult {
  readonly atStep: number;
  readonly group: GroupView;
}

// Spawning and awaiting as calls: a decision of their own, or branches of a parallel call under the reserved names.

export type TaskCall = SpawnTask | AwaitTask;

export function isTaskTool(tool: string): boolean {
  return tool === SPAWN_TOOL || tool === AWAIT_TOOL;
}

/** The calls of a decision that spawn or await, by index; none for most decisions. */
export function taskCallsOf(decision: Decision): readonly number[] {
  if (decision.kind === 'spawn_task' || decision.kind === 'await_task') return [0];
  if (decision.kind !== 'call_parallel') return [];
  return decision.branches.flatMap(({ tool }, index) => (isTaskTool(tool) ? [index] : []));
}

/**
 * The decision that a call under a reserved name stands for. Parts of another type than the schema of the call says are
 * passed on as they are, for `validateDecision` to refuse.
 * @param args with the keys `kind`, `group_id`, `spec` of `_spawn_task`, or `task_id`, `group_id`, `timeout_ms` of `_await_task`.
 */
export function taskCall(tool: string, args: Json, callId?: string): TaskCall {
  const given = isJsonObject(args) ? args : {};
  const id = callId === undefined ? {} : { callId };
  return tool === AWAIT_TOOL ? { ...awaitTask(given), ...id } : { ...spawnTask(given), ...id };
}

/** The decision that the call at `index` stands for; `undefined` for a call of a tool. */
export function taskCallAt(decision: Decision, index: number): TaskCall | undefined {
  if (decision.kind === 'spawn_task' || decision.kind === 'await_task') return decision;
  const branch = decision.kind === 'call_parallel' ? decision.branches[index] : undefined;
  return branch !== undefined && isTaskTool(branch.tool)
    ? taskCall(branch.tool, unescaped(branch.args), branch.callId)
    : undefined;
}

function awaitTask(args: JsonObject): AwaitTask {
  return {
    kind: 'await_task',
    ...renamed(args, { task_id: 'taskId', group_id: 'groupId', timeout_ms: 'timeoutMs' }),
  } as unknown as AwaitTask;
}

function spawnTask(args: JsonObject): SpawnTask {
  const { kind = 'background', spec } = args;
  return {
    kind: 'spawn_task',
    task: kind as SpawnTask['task'],
    spec: isJsonObject(spec) ? specOf(spec) : (spec as unknown as SpawnSpec),
    ...(renamed(args, { group_id: 'groupId' }) as Pick<SpawnTask, 'groupId'>),
  };
}

function specOf(spec: JsonObject): SpawnSpec {
  const { limits } = spec;
  const plain = renamed(spec, {
    description: 'description',
    query: 'query',
    agent: 'agent',
    priority: 'priority',
    seal: 'seal',
    quorum: 'quorum',
    retain_turn: 'retainTurn',
    fail_fast: 'failFast',
    on_cancel: 'onCancel',
  }) as unknown as SpawnSpec;
  return limits === undefined ? plain : { ...plain, limits: limits as unknown as TaskLimits };
}

/** The same values under other names. Absent keys stay absent. */
function renamed(from: JsonObject, names: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(names).flatMap(([key, name]) => (from[key] === undefined ? [] : [[name, from[key]]])),
  );
}
