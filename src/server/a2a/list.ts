/** Lists the tasks of a visitor in pages, newest first. */
import { defined, PilotageError } from '#core';
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
  const { status, pageSize = PAGE, includeArtifacts = false, historyLength } = listing;
  const query = queryOf(asked, listing);
  const token = await readToken(asked, listing.pageToken);
  const tasks: Task[] = [];
  let last: string | undefined;
  let total = 0;
  let isFull = false;
  for await (const record of recordsAskedFor(asked, query, listing, token?.after)) {
    total += 1;
    if (tasks.length === pageSize) {
      isFull = true;
      // How many there are was counted for the first page.
      if (token !== undefined || total === MOST_COUNTED) break;
      continue;
    }
    last = record.identity.run;
    const { task } = await viewTask(asked, last, defined({ historyLength }));
    const { artifacts: _, ...bare } = task;
    tasks.push(includeArtifacts ? task : bare);
  }
  const totalSize = token?.total ?? total;
  const nextPageToken = isFull && last !== undefined ? `${totalSize}:${last}` : '';
  return { tasks, nextPageToken, pageSize, totalSize, ...defined({ status }) };
}

interface Token {
  readonly after: string;
  readonly total: number;
}

/** A token says how many tasks the first page has counted, and the task behind which the page begins. */
async function readToken({ visit }: A2aAsked, token: string | undefined): Promise<Token | undefined> {
  if (token === undefined || token === '') return undefined;
  const [, total, after] = /^(\d{1,5}):(.+)$/s.exec(token) ?? [];
  const found = after === undefined ? undefined : await visit.run(after).catch(unlessMissing);
  if (found !== undefined && after !== undefined) return { after, total: Number(total) };
  throw new A2aRefused('INVALID_PARAMS', 'There is no task of this pageToken any more. Begin with the first page.');
}

function unlessMissing(error: unknown): undefined {
  if (!PilotageError.is(error, 'run_not_found')) throw error;
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

async function* recordsAskedFor(
  asked: A2aAsked,
  query: RunQuery,
  listing: Listing,
  behind: string | undefined,
): AsyncGenerator<RunRecord> {
  for (let after = behind; ; ) {
    const page = await asked.visit.runtime.list({ ...query, ...defined({ after }) });
    for (const record of page) if (await isAskedFor(asked, record, listing)) yield record;
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
