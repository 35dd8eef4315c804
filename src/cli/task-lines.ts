/** What becomes of a run's tasks, a line each. */
import type { RunEvent } from '#core';
import { type Line, line } from './line.ts';
import { count, shortLine, terminalJson } from './text.ts';

type TaskEvent = RunEvent<
  | 'task.spawned'
  | 'task.paused'
  | 'task.resumed'
  | 'task.completed'
  | 'task.failed'
  | 'task.cancelled'
  | 'task.group_resolved'
>;

export function taskLines(event: TaskEvent): Line[] {
  switch (event.type) {
    case 'task.spawned':
      return [line('strong', `  ↳ task ${shortLine(event.taskId, 80)}: ${shortLine(event.description, 160)}`)];
    case 'task.paused':
      return [line('strong', `  ‖ task ${shortLine(event.taskId, 80)} waits for somebody`)];
    case 'task.resumed':
      return [line('plain', `  ▶ task ${shortLine(event.taskId, 80)} goes on`)];
    case 'task.completed': {
      const result = event.result === undefined ? '' : `  ${shortLine(terminalJson(event.result), 160)}`;
      return [line('good', `  ✓ task ${shortLine(event.taskId, 80)}${result}`)];
    }
    case 'task.failed':
      return [line('bad', `  ✗ task ${shortLine(event.taskId, 80)}  ${shortLine(event.code, 60)}`)];
    case 'task.cancelled':
      return [line('quiet', `  ⊘ task ${shortLine(event.taskId, 80)} was cancelled`)];
    case 'task.group_resolved':
      return groupLines(event);
    default:
      return event satisfies never;
  }
}

/** A group of one task ends with it: nothing more to say. */
function groupLines({ groupId, finalStatus, members, reason }: RunEvent<'task.group_resolved'>): Line[] {
  if (members.length === 1 && reason === undefined) return [];
  const because = reason === undefined ? '' : ` (${shortLine(reason, 80)})`;
  const text = `  ${shortLine(groupId, 80)} ${finalStatus}${because}: ${count(members.length, 'task')}`;
  return [line(finalStatus === 'completed' ? 'good' : 'quiet', text)];
}
