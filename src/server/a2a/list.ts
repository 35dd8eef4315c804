/** Lists the tasks of a visitor in pages, newest first. */
import { defined } from '#core';
import type { RunQuery, RunRecord, RunStatus } from '#journal';
import type { A2aAsked } from './asked.ts';
import { A2aRefused } from './errors.ts';
import { viewTask } from './task.ts';
import type { Task } from './wire.ts';

interface Listing {
  readonly contextId?: string;
  readonly status?: string;
  readonly pageSize?: number;
  readonly pageToken?: string;
  readonly historyLength?: number;
  readonly statusTimestampAfter?: string;
  readonly includeArtifacts?: boolean;
}

const PAGE = 50;
const MOST = 200;
/** `totalSize` is counted up to this number. */
const MOST_COUNTED = 10_000;

const ENDED = ['finished', 'cancelled'] as const;
const STATUS_OF: Readonly<Record<string, readonly RunStatus[]>> = {
  TASK_STATE_SUBMITTED: ['pending'],
  TASK_STATE_WORKING: ['running', 'waiting', 'paused'],
  TASK_STATE_INPUT_REQUIRED: ['paused'],
  TASK_STATE_AUTH_REQUIRED: ['paused'],
  TASK_STATE_FAILED: ['failed', 'finished'],
  TASK_STATE_COMPLETED: ENDED,
  TASK_STATE_CANCELED: ENDED,
  TASK_STATE_REJECTED: ENDED,
};

export async function listTasks(asked: A2aAsked): Promise<unknown> {
  const listing = asked.params as Listing;
  const { status, pageSize = PAGE, pageToken, includeArtifacts = false, historyLength } = listing;
  const query = queryOf(asked, listing);
  const tasks: Task[] = [];
  let last: string | undefined;
  let total = 0;
  let isFull = false;
  let isBehind = pageToken === undefined || pageToken === '';
  for await (const record of records(asked, query)) {
    const { run } = record.identity;
    if (!(await isAskedFor(asked, record, listing))) continue;
    total += 1;
    if (isBehind && tasks.length === pageSize) isFull = true;
    else if (isBehind) {
      const { task } = await viewTask(asked, run, defined({ historyLength }));
      const { artifacts: _, ...bare } = task;
      tasks.push(includeArtifacts ? task : bare);
      last = run;
    }
    if (run === pageToken) isBehind = true;
    if (total === MOST_COUNTED) break;
  }
  if (!isBehind)
    throw new A2aRefused('INVALID_PARAMS', 'There is no task of this pageToken any more. Begin with the first page.');
  return { tasks, nextPageToken: isFull ? last : '', pageSize, totalSize: total, ...defined({ status }) };
}

function queryOf({ visit, deps: { agent } }: A2aAsked, { contextId, status, statusTimestampAfter }: Listing): RunQuery {
  const since = statusTimestampAfter === undefined ? undefined : Date.parse(statusTimestampAfter);
  if (since !== undefined && Number.isNaN(since))
    throw new A2aRefused('INVALID_PARAMS', 'statusTimestampAfter is a time such as 2027-01-31T09:00:00Z.');
  const isAny = status === undefined || status === 'TASK_STATE_UNSPECIFIED';
  const statuses = !isAny && Object.hasOwn(STATUS_OF, status) ? STATUS_OF[status] : undefined;
  if (!isAny && statuses === undefined)
    throw new A2aRefused('INVALID_PARAMS', `There is no state ${JSON.stringify(status)}.`);
  const session = contextId || visit.access.identity.session;
  return { ...visit.owner, parent: null, limit: MOST, ...defined({ session, agent, status: statuses }) };
}

async function* records({ visit }: A2aAsked, query: RunQuery): AsyncGenerator<RunRecord> {
  for (let after: string | undefined; ; ) {
    const page = await visit.runtime.list({ ...query, ...defined({ after }) });
    yield* page;
    after = page.at(-1)?.identity.run;
    if (page.length < MOST) return;
  }
}

async function isAskedFor(
  asked: A2aAsked,
  record: RunRecord,
  { status, statusTimestampAfter }: Listing,
): Promise<boolean> {
  const { identity, updatedAt, agent } = record;
  if (statusTimestampAfter !== undefined && updatedAt <= Date.parse(statusTimestampAfter)) return false;
  if (!(await asked.visit.may('read', { agent, session: identity.session, run: record }))) return false;
  if (status === undefined || status === 'TASK_STATE_UNSPECIFIED') return true;
  const { task } = await viewTask(asked, identity.run, { historyLength: 0 });
  return task.status.state === status;
}
