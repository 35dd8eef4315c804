/** Planners for runs that start other runs, and the decisions they make. */
import {
  type AwaitTask,
  type Decision,
  type Identity,
  type Json,
  type JsonObject,
  local,
  observe,
  type PlannerFunction,
  type RunView,
  type Scope,
  type SpawnSpec,
  type SpawnTask,
} from '#core';
import { finish, parallel } from './decisions.ts';

/** The session in which `local('ana')` runs. */
export const ANA: Scope = { tenant: 'local', user: 'ana', session: 'default' };

/** The run that starts the others, with an id that theirs can be told from: `p.<step>.<call>`. */
export const PARENT: Identity = local('ana', { run: 'p' });

/** One planner for all runs: each query has its own script. A query without one finishes with itself. */
export function plays(scripts: Readonly<Record<string, PlannerFunction>>): PlannerFunction {
  return (run, signal) => scripts[run.query]?.(run, signal) ?? finish(run.query);
}

type Spawning = Partial<SpawnSpec> & Partial<Pick<SpawnTask, 'task' | 'groupId' | 'callId'>>;

/** In the background, unless `more` says otherwise. */
export function spawns(query: string, { task = 'background', groupId, callId, ...spec }: Spawning = {}): SpawnTask {
  return {
    kind: 'spawn_task',
    task,
    spec: { description: `does ${query}`, query, ...spec },
    ...(groupId === undefined ? {} : { groupId }),
    ...(callId === undefined ? {} : { callId }),
  };
}

export function awaits(taskId: string, more: Omit<Partial<AwaitTask>, 'kind' | 'taskId'> = {}): AwaitTask {
  return { kind: 'await_task', taskId, ...more };
}

/** A branch that spawns. */
export function spawning(query: string, args: JsonObject = {}, spec: JsonObject = {}): { tool: string; args: Json } {
  return { tool: '_spawn_task', args: { ...args, spec: { description: `does ${query}`, query, ...spec } } };
}

/** A branch that awaits. */
export function awaiting(taskId: string, args: JsonObject = {}): { tool: string; args: Json } {
  return { tool: '_await_task', args: { task_id: taskId, ...args } };
}

/** Ends with what the planner was told of its last step. */
export const tellLast: PlannerFunction = (run) => finish(lastOf(run));

export function lastOf({ trajectory }: RunView): Json {
  const step = trajectory.step(trajectory.count - 1);
  return step === undefined ? null : observe(step);
}

/** The decisions in order, and then `tellLast`. */
export function thenTell(...decisions: readonly Decision[]): PlannerFunction {
  return (run, signal) => decisions[run.trajectory.count] ?? tellLast(run, signal);
}

export const fails: PlannerFunction = () => ({ kind: 'finish', reason: 'no_path', payload: { why: 'no way' } });

/** The branches of one step that spawn these into the group `g`; the last one seals it. */
export function into(queries: readonly string[], first: Record<string, Json> = {}): Decision {
  return parallel(
    queries.map((query, index) =>
      spawning(query, { group_id: 'g' }, { ...(index === 0 ? first : {}), seal: index === queries.length - 1 }),
    ),
  );
}
