/** The events of entries about tasks. */
import {
  type Awaiting,
  defined,
  type Entry,
  type EventPayloads,
  type GroupEnded,
  type RunEvent,
  type Spawned,
  type TaskEnded,
  type TaskPaused,
  type TaskView,
  type Watched,
} from '#core';
import { event } from './event.ts';
import type { RunState } from './run-state.ts';

export function taskEvents(
  at: Entry,
  entry: Spawned | Awaiting | TaskEnded | TaskPaused | Watched | GroupEnded,
  { identity, tasks }: RunState,
): RunEvent[] {
  switch (entry.kind) {
    case 'spawned': {
      const { step, call, task: taskId, group: groupId, taskKind: kind, description } = entry;
      return [event('task.spawned', at, identity, { step, call, taskId, groupId, kind, description })];
    }
    case 'task_ended': {
      const { task: taskId, status, result, error } = entry;
      if (status === 'cancelled') return [event('task.cancelled', at, identity, { taskId })];
      if (status === 'failed') return [event('task.failed', at, identity, { taskId, code: error?.code ?? 'failed' })];
      return [event('task.completed', at, identity, { taskId, ...defined({ result }) })];
    }
    case 'task_paused': {
      const { task: taskId, pauses } = entry;
      if (pauses.length > 0) return [event('task.paused', at, identity, { taskId, pauses })];
      // The task may go on after a pause of which this run was not told.
      const was = tasks.find(({ id }) => id === taskId);
      return was === undefined || was.pauses.length === 0 ? [] : [event('task.resumed', at, identity, { taskId })];
    }
    case 'group_ended': {
      const { group, status, reason } = entry;
      const members = tasks.filter((task) => task.group === group).map(memberOf);
      const because = reason === undefined ? {} : { reason };
      const resolved = { groupId: group, ownerTaskId: identity.run, finalStatus: status, resolvedAt: at.at, members };
      return [event('task.group_resolved', at, identity, { ...resolved, ...because })];
    }
    case 'awaiting':
    case 'watched':
      return [];
    default:
      return entry satisfies never;
  }
}

function memberOf({ id, end }: TaskView): EventPayloads['task.group_resolved']['members'][number] {
  if (end === undefined) return { taskId: id, status: 'running' };
  const { status, result, error } = end;
  return {
    taskId: id,
    status,
    ...defined({ result, error }),
  };
}
