/** Spawning and awaiting as calls: a decision of their own, or branches of a parallel call under the reserved names. */
import { AWAIT_TOOL, SPAWN_TOOL } from './builtin-tools.ts';
import type { AwaitTask, Decision, SpawnSpec, SpawnTask, TaskLimits } from './decision.ts';
import { isJsonObject, type Json, type JsonObject } from './json.ts';
import { unescaped } from './reference.ts';

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
