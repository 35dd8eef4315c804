/** A client of our own API, for browsers and programs. */
import type { ApprovalRule, Json, Namespace, StoreItem } from '#core';
import type { RunRecord, RunStatus, SessionRecord } from '#journal';
import type { AgentRecord, PauseAnswer, ScheduleOptions, ScheduleRecord, StartOptions, Waiting } from '#runtime';
import type { RunComparison } from '#state';
import { ClientError, type CreateClientOptions, Http, urlPath } from './http.ts';
import { ClientRun } from './run.ts';
import { ClientSession, type ClientSessionOptions } from './session.ts';
import { fileOf } from './words.ts';

/** A part of a list. `next` is the `after` of the part behind it. */
export interface ListPage<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

/** Options of a start. Whose run it is, and which scopes its user has, the server knows. */
export interface ClientStartOptions extends Omit<StartOptions, 'identity' | 'scopes' | 'signal' | 'at'> {
  /** Default: a session of its own. */
  readonly session?: string;
  readonly at?: Date | number | string;
}

interface PageQuery {
  readonly limit?: number;
  readonly after?: string;
  /** For an admin: whose. */
  readonly tenant?: string;
  readonly user?: string;
}

export interface RunListQuery extends PageQuery {
  readonly session?: string;
  readonly status?: readonly RunStatus[];
  readonly agent?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly parent?: string;
  readonly schedule?: string;
  readonly text?: string;
  readonly since?: number;
}

export interface WaitingListQuery extends PageQuery {
  readonly session?: string;
  readonly run?: string;
  readonly agent?: string;
  readonly for?: 'answer' | 'time' | 'event';
  readonly reason?: string;
  readonly key?: string;
  readonly untilBefore?: number;
}

export interface AnswerTo {
  readonly run: string;
  readonly token?: string;
  readonly answer: PauseAnswer;
}

export interface TakenAnswer {
  readonly run: string;
  readonly token?: string;
  readonly taken: boolean;
  /** Why it was refused. */
  readonly refused?: { readonly code: string; readonly detail: string };
}

export interface AcceptedSignal {
  readonly id: string;
  readonly isNew: boolean;
  /** To how many runs it went. */
  readonly delivered: number;
  readonly kept: boolean;
  readonly until: number;
}

/** Whose, for an admin. Of anybody else only their own is found. */
interface OfUser {
  readonly tenant?: string;
  readonly user?: string;
}

/** A webhook as an admin sees it: not its secret, and of its address the beginning. */
export interface ListedWebhook {
  readonly tenant: string;
  readonly id: string;
  /** Such as `https://hooks.example.com`. */
  readonly origin: string;
  readonly format: 'events' | 'a2a' | 'a2a-0.3';
  /** Events before this time are not posted. Milliseconds since the epoch. */
  readonly since: number;
  /** Whose runs are posted, and which events of them. Absent: all. */
  readonly user?: string;
  readonly session?: string;
  readonly agent?: string;
  readonly run?: string;
  readonly events?: readonly string[];
}

/** Counts of runs, as `hooks.state` of the server has them. Times are milliseconds since the epoch. */
export interface WebhookStanding {
  readonly open: number;
  readonly posting: number;
  readonly failing: number;
  readonly gaveUp: number;
  /** When the first of the failing runs is tried again. */
  readonly nextAt?: number;
  /** What failed last, and why. */
  readonly last?: {
    readonly run: string;
    readonly position: number;
    readonly attempts?: number;
    readonly failingSince?: number;
    readonly failedAt?: number;
    readonly nextAt?: number;
    readonly gaveUpAt?: number;
    readonly error?: string;
    readonly begun?: number;
  };
}

export interface ErasedUser {
  readonly runs: number;
  readonly artifacts: number;
  readonly items: number;
  /** Runs that are under way, or cannot be read: erase again. */
  readonly left: readonly {
    readonly run: string;
    readonly error: { readonly code: string; readonly message: string };
  }[];
}

type ClientSchedule = Omit<ScheduleOptions, 'identity' | 'scopes'>;

export class Client {
  readonly #http: Http;

  constructor(options: CreateClientOptions) {
    this.#http = new Http(options);
  }

  run(id: string): ClientRun {
    return new ClientRun(id, this.#http);
  }

  /** @param options what its turns are started with. */
  session(id: string, options: ClientSessionOptions = {}): ClientSession {
    return new ClientSession(id, options, this.#http);
  }

  readonly runs = {
    /** Starts a run, once: with an idempotency key of its own when none is given, so that a connection that breaks starts no second one. */
    start: async (query: string, options: ClientStartOptions = {}): Promise<ClientRun> => {
      const { idempotencyKey, inputs, at: begins, ...rest } = options;
      const hasOwnKey = options.singleton !== undefined || options.debounce !== undefined;
      const key = idempotencyKey ?? (hasOwnKey ? undefined : crypto.randomUUID());
      const body = {
        query,
        ...rest,
        inputs: inputs?.map(fileOf),
        at: begins instanceof Date ? begins.getTime() : begins,
      };
      const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
      const ask = { method: 'POST', body, headers, again: key !== undefined } as const;
      return this.run((await this.#http.json<{ readonly run: string }>('/runs', ask)).run);
    },
    /** Newest first. */
    list: ({ labels = {}, ...query }: RunListQuery = {}): Promise<ListPage<RunRecord>> => {
      const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
      return this.#http.json('/runs', { query: { ...query, label } });
    },
    compare: (a: string, b: string): Promise<RunComparison> => this.#http.json('/compare', { query: { a, b } }),
  };

  readonly sessions = {
    list: (
      query: PageQuery & { readonly text?: string; readonly since?: number } = {},
    ): Promise<ListPage<SessionRecord>> => this.#http.json('/sessions', { query: { ...query } }),
    get: (id: string): Promise<SessionRecord> => this.#http.json(urlPath`/sessions/${id}`),
    setTitle: (id: string, title: string | null): Promise<void> =>
      this.#http.json(urlPath`/sessions/${id}`, { method: 'PATCH', body: { title } }),
    /** @returns how many runs there were. */
    delete: async (id: string): Promise<number> =>
      (await this.#http.json<{ readonly runs: number }>(urlPath`/sessions/${id}`, { method: 'DELETE' })).runs,
  };

  readonly schedules = {
    put: ({ id, ...body }: ClientSchedule): Promise<ScheduleRecord> =>
      this.#http.json(urlPath`/schedules/${id}`, { method: 'PUT', body, again: true }),
    list: (query: Omit<PageQuery, 'user'> = {}): Promise<ListPage<ScheduleRecord>> =>
      this.#http.json('/schedules', { query: { ...query } }),
    get: (id: string): Promise<ScheduleRecord> => this.#http.json(urlPath`/schedules/${id}`),
    pause: (id: string): Promise<ScheduleRecord> =>
      this.#http.json(urlPath`/schedules/${id}/pause`, { method: 'POST' }),
    resume: (id: string): Promise<ScheduleRecord> =>
      this.#http.json(urlPath`/schedules/${id}/resume`, { method: 'POST' }),
    trigger: async (id: string): Promise<ClientRun> => {
      const { run } = await this.#http.json<{ readonly run: string }>(urlPath`/schedules/${id}/trigger`, {
        method: 'POST',
      });
      return this.run(run);
    },
    delete: (id: string): Promise<void> => this.#http.json(urlPath`/schedules/${id}`, { method: 'DELETE' }),
  };

  /** For an admin. */
  readonly webhooks = {
    /** Those of the tenant by their ids. */
    list: (query: Omit<PageQuery, 'user'> = {}): Promise<ListPage<ListedWebhook>> =>
      this.#http.json('/webhooks', { query: { ...query } }),
    get: (
      id: string,
      of: { readonly tenant?: string } = {},
    ): Promise<ListedWebhook & { readonly state: WebhookStanding }> =>
      this.#http.json(urlPath`/webhooks/${id}`, { query: { ...of } }),
  };

  /** What answers hold for questions to come. */
  readonly rules = {
    /** The newest first: of the user, of one `session`, or those that hold for one `run`. */
    list: async (
      query: OfUser & { readonly session?: string; readonly run?: string } = {},
    ): Promise<readonly ApprovalRule[]> =>
      (await this.#http.json<{ readonly items: readonly ApprovalRule[] }>('/rules', { query: { ...query } })).items,
    /** What the rule would have answered is asked again. */
    revoke: (id: string, of: OfUser = {}): Promise<void> =>
      this.#http.json(urlPath`/rules/${id}`, { method: 'DELETE', query: { ...of } }),
  };

  /** What agents remember of the user. */
  readonly memory = {
    /** What lies in the namespace and below it. Default: all. */
    list: (namespace: Namespace = [], query: PageQuery = {}): Promise<ListPage<StoreItem>> =>
      this.#http.json('/memory', { query: { namespace, ...query } }),
    get: async (namespace: Namespace, key: string, of: OfUser = {}): Promise<StoreItem | undefined> => {
      const ask = { query: { namespace, ...of } };
      const { item } = await this.#http.json<{ readonly item: StoreItem | null }>(urlPath`/memory/${key}`, ask);
      return item ?? undefined;
    },
    delete: (namespace: Namespace, key: string, of: OfUser = {}): Promise<void> =>
      this.#http.json(urlPath`/memory/${key}`, { method: 'DELETE', query: { namespace, ...of }, again: true }),
  };

  /** Erases all content of a user, for good. For an admin. */
  erase(of: { readonly user: string; readonly tenant?: string }): Promise<ErasedUser> {
    return this.#http.json('/erase', { method: 'POST', body: of, again: true });
  }

  /** The agents that may be started, the default one first. */
  async agents(): Promise<readonly AgentRecord[]> {
    return (await this.#http.json<{ readonly items: readonly AgentRecord[] }>('/agents')).items;
  }

  /** All that waits, oldest first. */
  waiting(query: WaitingListQuery = {}): Promise<ListPage<Waiting>> {
    return this.#http.json('/waiting', { query: { ...query } });
  }

  /** Answers several questions, of several runs: each is taken or refused by itself. */
  async answer(answers: readonly AnswerTo[]): Promise<readonly TakenAnswer[]> {
    const ask = { method: 'POST', body: { answers } } as const;
    return (await this.#http.json<{ readonly items: readonly TakenAnswer[] }>('/answers', ask)).items;
  }

  /** Says that something has happened, for runs that wait for it. */
  signal(
    key: string,
    payload: Json = null,
    options: { readonly id?: string; readonly keepMs?: number } = {},
  ): Promise<AcceptedSignal> {
    const { id = crypto.randomUUID(), keepMs } = options;
    const headers = { 'idempotency-key': id };
    return this.#http.json(urlPath`/events/${key}`, {
      method: 'POST',
      body: payload,
      query: { keepMs },
      headers,
      again: true,
    });
  }
}

/**
 * A client of the API of a server.
 * @throws ClientError `invalid_config`.
 */
export function createClient(options: CreateClientOptions): Client {
  const { url } = (options ?? {}) as { readonly url?: unknown };
  if (typeof url !== 'string' || url === '')
    throw new ClientError(
      'invalid_config',
      'createClient needs the url of the API, such as https://agents.example.com.',
    );
  return new Client(options);
}
