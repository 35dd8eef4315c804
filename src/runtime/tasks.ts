/** Runs as the tasks of a session: started once under a key, found again, listed, stopped, watched. Everything is in the journal. */

import {
  assertOptions,
  assertScope,
  assertWords,
  type ControlType,
  defined,
  type EventPayloads,
  type GroupView,
  type JsonObject,
  newRunId,
  type OptionShape,
  PilotageError,
  type RunEvent,
  readOptions,
  type Scope,
  type StartRequest,
  type TaskStatus,
} from '#core';
import { hasEnded, ownedBy, type RunRecord, type RunStatus } from '#journal';
import { eventsOf, groupView, type RunState } from '#state';
import { jsonDigest } from '../calls/earlier-calls.ts';
import { Follower } from './follow.ts';
import { Run } from './run.ts';
import type { RunHost } from './run-host.ts';
import type { EventOptions } from './run-options.ts';
import { requestOf, startOnce } from './start-once.ts';
import { type BeginOptions, type StartOptions, TURN_OPTIONS } from './start-options.ts';
import { type TaskRecord, taskRecord } from './task-record.ts';

/** Stores a run and drives it. A run that exists already goes on. */
type StartRun = (query: string, options: StartOptions, asked?: StartRequest) => Promise<Run>;

export interface SpawnOptions extends Omit<StartOptions, 'identity' | 'conversation' | keyof BeginOptions> {
  /** Whose task it is. */
  readonly identity: Scope;
  /** The idempotency key: the same key in the same session means the same task. Absent or empty: each call starts another task. */
  readonly idempotencyKey?: string;
}

export interface TaskQuery {
  /** Only the tasks of this run. */
  readonly parent?: string;
  readonly status?: readonly TaskStatus[];
  /** How many tasks a page has, newest first. Default 50, at most 200. */
  readonly limit?: number;
  /** The last task of the page before: only older tasks are listed. */
  readonly after?: string;
}

export type GroupResolved = EventPayloads['task.group_resolved'];

const { conversation: _, ...STARTED } = TURN_OPTIONS;
const SPAWN: OptionShape<SpawnOptions> = { ...STARTED, identity: 'any', idempotencyKey: 'any?' };
const QUERY: OptionShape<TaskQuery> = { parent: 'text?', status: 'list?', limit: 'any?', after: 'text?' };
const DEFAULT_PAGE = 50;

export class Tasks {
  readonly #host: () => RunHost;
  readonly #start: StartRun;

  /** @param host throws `runtime_closed` once the runtime is closed. */
  constructor(host: () => RunHost, start: StartRun) {
    this.#host = host;
    this.#start = start;
  }

  /**
   * Starts a task that no run waits for.
   * @returns `reused` when it was started before, under the same key; then nothing is stored.
   * @throws PilotageError `idempotency_conflict` for another request under a key that was used, and the errors of `Runtime.start`.
   */
  async spawn(query: string, options: SpawnOptions): Promise<{ readonly run: Run; readonly reused: boolean }> {
    const { identity: scope, idempotencyKey = '', ...rest } = readOptions('tasks.spawn', options, SPAWN);
    assertScope(scope);
    const { tenant, user, session } = scope;
    const owner = ownedBy(scope);
    const start = (id: string, asked?: StartRequest): Promise<Run> =>
      this.#start(query, { ...rest, conversation: false, identity: { tenant, user, session, run: id } }, asked);
    if (idempotencyKey === '') return { run: await start(newRunId()), reused: false };
    const id = `task_${jsonDigest([owner, idempotencyKey]).slice(0, 22)}`;
    return startOnce(this.#host().deps.journal, id, requestOf(query, rest), (asked) => start(id, asked));
  }

  /** `undefined` for an unknown task and for one of another tenant, user or session alike. */
  async get(scope: Scope, id: string): Promise<TaskRecord | undefined> {
    const record = await this.#find(scope, id);
    return record && taskRecord(this.#host().deps.journal, record);
  }

  /** @throws PilotageError `invalid_config` for a page over 200 or below 1, `task_not_found` for an unknown `after`. */
  async list(scope: Scope, query: TaskQuery = {}): Promise<TaskRecord[]> {
    assertOptions('tasks.list', query, QUERY);
    if (query.status !== undefined) assertWords('tasks.list', 'status', query.status, Object.keys(STORED_AS));
    const { parent, status, limit = DEFAULT_PAGE } = query;
    const owner = ownerOf(scope);
    const journal = this.#host().deps.journal;
    if (query.after !== undefined) await this.#own(scope, query.after);
    const wanted = status && [...new Set(status.flatMap((one) => STORED_AS[one]))];
    const found: TaskRecord[] = [];
    for (let { after } = query; ; ) {
      const page = await journal.list({
        ...owner,
        limit,
        ...defined({ parent, status: wanted, after }),
      });
      for (const record of page) {
        const task = await taskRecord(journal, record);
        // How a finished run finished is known only now.
        if (status === undefined || status.includes(task.status)) found.push(task);
        if (found.length === limit) return found;
      }
      after = page.at(-1)?.identity.run;
      if (page.length < limit) return found;
    }
  }

  /**
   * Asks a task to stop, and the tasks below it by their own rules. The task has stopped when its status says so.
   * @returns false when it has ended.
   * @throws PilotageError `task_not_found`.
   */
  async cancel(scope: Scope, id: string, reason?: string): Promise<boolean> {
    return this.#tell(await this.#own(scope, id), 'CANCEL', reason === undefined ? {} : { reason });
  }

  /**
   * @param priority -1000 to 1000; higher is driven first.
   * @returns false when it has this priority already, or has ended.
   * @throws PilotageError `task_not_found`, or `payload_invalid`.
   */
  async prioritize(scope: Scope, id: string, priority: number): Promise<boolean> {
    const record = await this.#own(scope, id);
    if (record.priority === priority) return false;
    return this.#tell(record, 'PRIORITIZE', { priority });
  }

  /** The events of a task, as `Run.events`. @throws PilotageError `task_not_found`. */
  async *watch(scope: Scope, id: string, options?: EventOptions): AsyncGenerator<RunEvent, void> {
    await this.#own(scope, id);
    yield* new Run(id, this.#host()).events(options);
  }

  /** A group of the run `owner`; `undefined` when it does not exist, or is not in this scope. */
  async group(scope: Scope, owner: string, groupId: string): Promise<GroupView | undefined> {
    const record = await this.#find(scope, owner);
    return record && groupView(await this.#state(owner), groupId);
  }

  /**
   * Waits until a group is over; one that is over already resolves at once.
   * @param signal gives the waiting up: the promise rejects with its reason.
   * @throws PilotageError `task_not_found` for an unknown group, `run_ended` when its owner ended before it.
   */
  async watchGroup(scope: Scope, owner: string, groupId: string, signal?: AbortSignal): Promise<GroupResolved> {
    signal?.throwIfAborted();
    if ((await this.group(scope, owner, groupId)) === undefined) throw notFound('group', groupId);
    const follower = new Follower<GroupResolved>({
      ...this.#host().sourcesOf(owner),
      tokens: false,
      onEntry: (entry, before) =>
        entry.kind === 'group_ended' && entry.group === groupId
          ? eventsOf(entry, before).flatMap((event) => (event.type === 'task.group_resolved' ? payloadOf(event) : []))
          : [],
      onPassing: () => [],
      isOver: ({ ending }) => ending !== null,
    });
    const stop = (): void => follower.stop();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      for await (const resolved of follower.follow()) return resolved;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
    signal?.throwIfAborted();
    throw new PilotageError('run_ended', `The run ${owner} ended before its group ${JSON.stringify(groupId)} did.`);
  }

  /** False: it has ended. */
  async #tell({ identity, status }: RunRecord, type: ControlType, payload: JsonObject): Promise<boolean> {
    if (hasEnded(status)) return false;
    try {
      const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
      await this.#host().signal(identity.run, { id, type, payload });
      return true;
    } catch (error) {
      if (PilotageError.is(error, 'run_ended')) return false;
      throw error;
    }
  }

  async #find(scope: Scope, id: string): Promise<RunRecord | undefined> {
    const owner = ownedBy(scope);
    const record = await this.#host().deps.journal.get(id);
    return record !== undefined && ownedBy(record.identity) === owner ? record : undefined;
  }

  async #own(scope: Scope, id: string): Promise<RunRecord> {
    const record = await this.#find(scope, id);
    if (record === undefined) throw notFound('task', id);
    return record;
  }

  async #state(run: string): Promise<RunState> {
    return this.#host().deps.states.of(run);
  }
}

/** The statuses under which a journal stores tasks of this status. */
const STORED_AS: Readonly<Record<TaskStatus, readonly RunStatus[]>> = {
  pending: ['pending'],
  running: ['running', 'waiting'],
  paused: ['paused'],
  complete: ['finished'],
  failed: ['finished', 'failed'],
  cancelled: ['cancelled'],
};

function ownerOf(scope: Scope): Scope {
  ownedBy(scope);
  const { tenant, user, session } = scope;
  return { tenant, user, session };
}

function payloadOf(event: RunEvent<'task.group_resolved'>): GroupResolved {
  const { groupId, ownerTaskId, finalStatus, resolvedAt, members, reason } = event;
  return { groupId, ownerTaskId, finalStatus, resolvedAt, members, ...defined({ reason }) };
}

function notFound(what: 'task' | 'group', id: string): PilotageError {
  return new PilotageError('task_not_found', `There is no ${what} ${JSON.stringify(id)} in this session.`);
}
