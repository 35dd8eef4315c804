/** Steps that wait for a group of tasks. They only decide: the runtime spawns and waits. */
import {
  type Decision,
  defined,
  type ErrorData,
  errorOf,
  type Move,
  type RunView,
  type Step,
  type TaskView,
} from '#core';
import { isResolved, lastStep, markOfResolved, stepNotes } from './recorded.ts';
import type { GroupMember, OnResolved } from './steps.ts';

export interface Followed {
  /** The id of the step that waits. */
  readonly id: string;
  readonly groupId: string;
  readonly onResolved: OnResolved;
}

/** Spawns, and follows the group from then on. @throws Error also when the spawn came to an error. */
export async function spawnAndFollow(
  run: RunView,
  followed: Followed,
  spawn: () => Decision | Promise<Decision>,
): Promise<Move | undefined> {
  const last = lastStep(run, followed.id);
  if (last === undefined) return { decision: await spawn(), provenance: stepNotes(followed.id) };
  const error = last.decision.kind === 'spawn_task' && !isResolved(last) ? failureOf(last) : undefined;
  if (error !== undefined) throw new Error(`the task was not started, ${error.code}: ${error.message}`);
  return followGroup(run, followed);
}

/**
 * Waits for the group, also again when a message has interrupted the wait; hands its members over when it has ended.
 * `undefined` when that has been done. @throws Error for a group that cannot be waited for.
 */
export async function followGroup(run: RunView, { id, groupId, onResolved }: Followed): Promise<Move | undefined> {
  const last = lastStep(run, id);
  if (last !== undefined && isResolved(last)) return undefined;
  const error = last && failureOf(last);
  const group = run.trajectory.groups.get(groupId);
  if (group === undefined) {
    throw new Error(`the run has no group ${JSON.stringify(groupId)}: nothing was spawned into it`);
  }
  if (group.status === 'completed' || group.status === 'cancelled') {
    return { decision: await onResolved(run, group.members.map(memberOf)), provenance: markOfResolved(id) };
  }
  if (error !== undefined) {
    throw new Error(`waiting for the group ${JSON.stringify(groupId)} failed, ${error.code}: ${error.message}`);
  }
  const task = group.members.find(({ end }) => end === undefined) ?? group.members[0];
  if (task === undefined) throw new Error(`the group ${JSON.stringify(groupId)} is ${group.status} and has no tasks`);
  return { decision: { kind: 'await_task', taskId: task.id, groupId }, provenance: stepNotes(id) };
}

function failureOf({ calls }: Step): ErrorData | undefined {
  const outcome = calls[0]?.outcome;
  return outcome && errorOf(outcome);
}

function memberOf({ id, end }: TaskView): GroupMember {
  if (end === undefined) return { task_id: id, status: 'running' };
  const { status, result, error } = end;
  return {
    task_id: id,
    status,
    ...defined({ result }),
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
  };
}
