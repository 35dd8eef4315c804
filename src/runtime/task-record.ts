/** A run as a task: what a list of tasks shows of it. */

import {
  defined,
  ERROR_CONSEQUENCES,
  type ErrorData,
  type EventPayloads,
  type Json,
  PilotageError,
  type TaskEnd,
  type TaskKind,
  type TaskStatus,
} from '#core';
import type { Journal, RunRecord, RunStatus } from '#journal';
import { liveIn, type RunState } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { endOf } from '../tasks/ending.ts';

export interface TaskRecord {
  readonly id: string;
  readonly status: TaskStatus;
  /** The run that spawned it; absent for one that nobody spawned. */
  readonly parent?: string;
  /** The run at the top; absent for that run itself. */
  readonly root?: string;
  /** 0 for a run that nobody spawned. */
  readonly depth: number;
  /** A run that nobody spawned is `foreground` when it is a turn of its session's conversation. */
  readonly kind: TaskKind;
  /** For a run that nobody spawned: its query. */
  readonly description: string;
  readonly group?: string;
  readonly priority: number;
  readonly query: string;
  /** What it finished with. */
  readonly result?: Json;
  /** Why it is not `complete`. A finish of another kind than `goal` has its reason as code. */
  readonly error?: ErrorData;
  /** What of it cannot be read, or why whoever had it last let go of it. */
  readonly problem?: ErrorData;
  /** Milliseconds since the epoch, as `updatedAt`. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export async function taskRecord(journal: Journal, record: RunRecord): Promise<TaskRecord> {
  try {
    return await readRecord(journal, record);
  } catch (error) {
    // One task that cannot be read hides no other.
    if (!PilotageError.is(error) || ERROR_CONSEQUENCES[error.code] === 'retry') throw error;
    return unreadable(record, error);
  }
}

function unreadable(record: RunRecord, error: PilotageError): TaskRecord {
  const { identity, query, priority, createdAt, updatedAt, status, parent, root } = record;
  return {
    id: identity.run,
    status: AS_TOLD[status],
    ...defined({ parent, root }),
    depth: parent === undefined ? 0 : 1,
    kind: 'background',
    description: query,
    priority,
    query,
    problem: error.toJSON(),
    createdAt,
    updatedAt,
  };
}

const AS_TOLD: Readonly<Record<RunStatus, TaskStatus>> = {
  pending: 'pending',
  running: 'running',
  waiting: 'running',
  paused: 'paused',
  finished: 'complete',
  failed: 'failed',
  cancelled: 'cancelled',
};

async function readRecord(journal: Journal, record: RunRecord): Promise<TaskRecord> {
  const { identity, query, priority, createdAt, updatedAt, problem } = record;
  const [first] = await journal.read(identity.run, 1, 1);
  const started = first?.kind === 'started' ? first : undefined;
  const { task } = started ?? {};
  const { status, result, error } = await standingOf(journal, record);
  return {
    id: identity.run,
    status,
    ...(task === undefined ? {} : { parent: task.parent, root: task.root, group: task.group }),
    depth: task?.depth ?? 0,
    kind: task?.kind ?? (started?.conversation === false ? 'background' : 'foreground'),
    description: task?.description ?? query,
    priority,
    query,
    ...defined({ result, error, problem }),
    createdAt,
    updatedAt,
  };
}

/** Only the last entry tells how a finished run finished. */
async function taskStatus(journal: Journal, record: RunRecord): Promise<TaskStatus> {
  return (await standingOf(journal, record)).status;
}

type Standing = { readonly status: TaskStatus } & Pick<TaskEnd, 'result' | 'error'>;

async function standingOf(journal: Journal, { identity, status, head }: RunRecord): Promise<Standing> {
  switch (status) {
    case 'pending':
    case 'paused':
      return { status };
    case 'running':
    case 'waiting':
      return { status: 'running' };
    case 'finished':
    case 'failed':
    case 'cancelled': {
      const [last] = await journal.read(identity.run, head, 1);
      if (last?.kind === 'finished' || last?.kind === 'failed') return endOf(identity.run, last);
      throw new PilotageError(
        'journal_corrupt',
        `The run ${identity.run} has ended, but its last entry does not say how.`,
      );
    }
    default:
      return status satisfies never;
  }
}

/** Looks at the tasks of a run from time to time, for readers who want to see them move. It records nothing and wakes nobody. */

export type TaskProgress = EventPayloads['task.progress'];

const LOOK_EVERY_MS = 1_000;

/**
 * Looks every second until the returned function is called.
 * @param state the owner as its reader knows it; `undefined` before the first entry.
 * @param tell is called when a task that has not ended is not as it was last.
 */
export function watchProgressOfTasks(
  { journal, clock, onFault }: Pick<DriverDeps, 'journal' | 'clock' | 'onFault'>,
  state: () => RunState | undefined,
  tell: (progress: TaskProgress) => void,
): () => void {
  const last = new Map<string, string>();
  let stopped = false;
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    for (const { id } of liveIn(state()?.tasks ?? [])) {
      if (stopped) return;
      const record = await journal.get(id);
      if (record === undefined) continue;
      const progress = { taskId: id, status: await taskStatus(journal, record), entries: record.head };
      const shown = `${progress.status} ${progress.entries}`;
      if (stopped || last.get(id) === shown) continue;
      last.set(id, shown);
      tell(progress);
    }
  };
  const again = (): void => {
    // Who reads keeps the process alive while it waits.
    if (!stopped) cancel = clock.after(LOOK_EVERY_MS, () => void look().catch(onFault).then(again), { holds: false });
  };
  again();
  return () => {
    stopped = true;
    cancel();
  };
}
