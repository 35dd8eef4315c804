/** The push notification for an event: one `StreamResponse`, or nothing. */
import type { EventType, RunEvent, TaskPause } from '#core';
import type { Run, Runtime } from '#runtime';
import type { ErrorText } from '../problem.ts';
import { asksWhat, viewTask } from './task.ts';
import type { StreamResponse } from './wire.ts';

/** @param run the run of the task. The end of a task is told as the whole task, with its artifacts. */
export async function notificationOf(
  { runtime, errorText }: { readonly runtime: Runtime; readonly errorText: ErrorText },
  run: Run,
  event: RunEvent,
): Promise<StreamResponse | undefined> {
  const of = { taskId: run.id, contextId: event.identity.session };
  const timestamp = new Date(event.occurredAt).toISOString();
  switch (event.type) {
    case 'pause.requested':
    case 'task.paused': {
      const pauses: readonly TaskPause[] = event.type === 'task.paused' ? event.pauses : [{ ...event, run: run.id }];
      if (pauses.length === 0) return undefined;
      const referenceTaskIds = event.type === 'task.paused' ? [event.taskId] : [];
      return { statusUpdate: { ...of, status: asksWhat({ of, pauses, referenceTaskIds, timestamp }) } };
    }
    case 'turn.started':
    case 'pause.resumed':
    case 'task.resumed':
      return { statusUpdate: { ...of, status: { state: 'TASK_STATE_WORKING', timestamp } } };
    case 'planner.finish':
    case 'planner.error': {
      const runs = {
        run: async (id: string) => {
          const found = runtime.run(id);
          return { run: found, record: await found.record() };
        },
      };
      return { task: (await viewTask({ runs, errorText }, run.id)).task };
    }
    default:
      return undefined;
  }
}

/** The kinds of events that are told. */
export const TOLD: readonly EventType[] = [
  'turn.started',
  'pause.requested',
  'task.paused',
  'pause.resumed',
  'task.resumed',
  'planner.finish',
  'planner.error',
];
