/** A handle of one run on a server: the methods of the runtime's own `Run`, over HTTP. */
import type { CallPlace, ControlType, Json, JsonObject, RunEvent, StreamRow } from '#core';
import type { RunRecord, StreamRecord } from '#journal';
import type { UserMessage } from '#messages';
import type {
  Approval,
  Diagnosis,
  ForkOptions,
  PauseAnswer,
  Rejection,
  ReplayReport,
  RunResult,
  Settlement,
} from '#runtime';
import type { RunSnapshot, RunTrajectory } from '#state';
import { receive } from './event-source.ts';
import { ClientError, type Http, urlPath } from './http.ts';
import { Seen } from './seen.ts';
import { sentMessageOf } from './words.ts';

/** What is waited for: that the server has stored it, or that the run has taken it. */
export interface UntilOptions {
  readonly until?: 'stored' | 'applied';
}

export interface ReadEventsOptions {
  /** The position of the first event, from 1. Default 1. */
  readonly from?: number;
  /** Or the id of the event before the first one, as events of the server have it. */
  readonly after?: string;
  /** True: the events of the tasks below the run come too, each with its `path`. */
  readonly tasks?: boolean;
  /** True: the stream goes on while the run is paused. */
  readonly overPauses?: boolean;
  readonly signal?: AbortSignal;
}

export interface ClientResumption {
  readonly token?: string;
  readonly payload?: JsonObject;
  readonly limits?: object;
  readonly nodes?: Readonly<Record<string, { readonly args: Json } | { readonly skip: true }>>;
  readonly until?: 'next';
  readonly acceptChanges?: boolean;
}

/** The same answer again has the same id, and changes nothing. */
export interface ClientAnswerOptions {
  readonly id?: string;
}

/** How long one request for a result waits. */
const WAIT_MS = 25_000;

export class ClientRun {
  readonly id: string;
  readonly #http: Http;

  constructor(id: string, http: Http) {
    this.id = id;
    this.#http = http;
  }

  /**
   * The events of the run, as they come. A connection that is cut is made again, and nothing is missed or comes twice. Ends with the run, or when it is
   * paused.
   */
  async *events(options: ReadEventsOptions = {}): AsyncGenerator<RunEvent, void> {
    const { from = 1, after = from > 1 ? `${from - 1}` : undefined, tasks, overPauses, signal } = options;
    const seen = new Seen();
    const source = { query: { tasks, overPauses }, after, signal, onAgain: () => seen.again() };
    for await (const { data } of receive(this.#http, urlPath`/runs/${this.id}/events`, source)) {
      yield* seen.fresh(data as RunEvent);
    }
  }

  /** Waits until the run has ended or is paused, also while the server is away for a moment. @throws ClientError; the reason of the signal. */
  result(options: { readonly signal?: AbortSignal } = {}): Promise<RunResult> {
    return settled(this.#http, urlPath`/runs/${this.id}/result`, options.signal) as Promise<RunResult>;
  }

  /** The payload that the run finished with, whole. `undefined` for a run that failed, is paused, or gave nothing. */
  async payload(): Promise<Json | undefined> {
    const result = await this.result();
    if (result.status !== 'finished') return undefined;
    const { payload, stored } = result;
    const ref = stored === true ? (payload as { readonly artifactRef?: unknown }).artifactRef : undefined;
    if (typeof ref !== 'string') return payload;
    const whole = await this.artifact(ref);
    return whole && (JSON.parse(new TextDecoder().decode(whole.bytes)) as Json);
  }

  /** A file of the session of the run. `undefined` when there is none of this reference. */
  async artifact(artifactRef: string): Promise<{ readonly bytes: Uint8Array; readonly mime: string } | undefined> {
    try {
      const response = await this.#http.response(urlPath`/runs/${this.id}/artifacts/${artifactRef}`);
      const bytes = new Uint8Array(await response.arrayBuffer());
      return { bytes, mime: response.headers.get('content-type') ?? '' };
    } catch (error) {
      if (error instanceof ClientError && error.code === 'artifact_not_found') return undefined;
      throw error;
    }
  }

  /** What the tools of the run have written to the stream, from row `from` (default 1) on, and then what comes. */
  async *stream(
    name: string,
    options: { readonly from?: number; readonly follow?: boolean; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<StreamRow, void> {
    const { from = 1, follow = true, signal } = options;
    const path = urlPath`/runs/${this.id}/streams/${name}`;
    if (follow) {
      for await (const { data } of receive(this.#http, path, { after: `${from - 1}`, signal })) yield data as StreamRow;
      return;
    }
    for (let after: string | undefined = `${from - 1}`; after !== undefined; ) {
      const page: { items: StreamRow[]; next?: string } = await this.#http.json(path, { query: { after }, signal });
      yield* page.items;
      after = page.next;
    }
  }

  async streams(): Promise<readonly StreamRecord[]> {
    return (await this.#get<{ readonly items: readonly StreamRecord[] }>('/streams')).items;
  }

  /** The run as lists have it. */
  record(): Promise<RunRecord> {
    return this.#get('');
  }

  /** The run as it stands now. */
  state(): Promise<RunSnapshot> {
    return this.#get('/state');
  }

  trajectory(): Promise<RunTrajectory> {
    return this.#get('/trajectory');
  }

  resume(options: ClientResumption = {}): Promise<void> {
    return this.#post('/resume', options);
  }

  retry(options: { readonly nodes?: readonly string[]; readonly acceptChanges?: boolean } = {}): Promise<void> {
    return this.#post('/retry', options);
  }

  approve(token?: string, approval: Approval = {}): Promise<void> {
    return this.answer(token, { kind: 'approve', ...approval });
  }

  reject(token?: string, rejection: Rejection = {}): Promise<void> {
    return this.answer(token, { kind: 'reject', ...rejection });
  }

  settle(token: string | undefined, settlement: Settlement, options: ClientAnswerOptions = {}): Promise<void> {
    return this.answer(token, { kind: 'settle', ...settlement }, options);
  }

  answer(token: string | undefined, answer: PauseAnswer, options: ClientAnswerOptions = {}): Promise<void> {
    return this.#post('/answer', { token, answer, ...options });
  }

  /** Answers several questions at once, each by itself. @throws ClientError of the first that was refused; `data.refused` has the code of each, by its token. */
  async answerAll(answers: Readonly<Record<string, PauseAnswer>>): Promise<void> {
    const given = Object.entries(answers).map(([token, answer]) => ({ run: this.id, token, answer }));
    const { items } = await this.#http.json<{
      readonly items: readonly {
        readonly token?: string;
        readonly refused?: { readonly code: string; readonly detail: string };
      }[];
    }>('/answers', { method: 'POST', body: { answers: given } });
    const refused = items.filter((each) => each.refused !== undefined);
    const first = refused[0]?.refused;
    if (first === undefined) return;
    const codes = Object.fromEntries(refused.map(({ token, refused: why }) => [token ?? '', why?.code ?? '']));
    throw new ClientError(first.code, first.detail, { data: { refused: codes } });
  }

  pause(
    options: UntilOptions & {
      readonly before?: { readonly tool: string } | { readonly node: string } | 'next';
      readonly clear?: boolean;
    } = {},
  ): Promise<void> {
    return this.#post('/pause', options);
  }

  cancel(options: UntilOptions & { readonly reason?: string; readonly hard?: boolean } = {}): Promise<void> {
    return this.#post('/cancel', options);
  }

  cancelCall(which: CallPlace | string, options: UntilOptions & { readonly reason?: string } = {}): Promise<void> {
    return this.#post('/cancel-call', { which, ...options });
  }

  send(message: string | UserMessage, options: UntilOptions = {}): Promise<void> {
    return this.#post('/send', { ...sentMessageOf(message), ...options });
  }

  steer(type: ControlType, payload?: JsonObject, options: UntilOptions = {}): Promise<void> {
    return this.#post('/steer', { type, payload, ...options });
  }

  async fork(options: Omit<ForkOptions, 'identity' | 'signal'> = {}): Promise<ClientRun> {
    const { run } = await this.#http.json<{ readonly run: string }>(urlPath`/runs/${this.id}/fork`, {
      method: 'POST',
      body: options,
    });
    return new ClientRun(run, this.#http);
  }

  replay(options: { readonly signal?: AbortSignal } = {}): Promise<ReplayReport> {
    return this.#http.json(urlPath`/runs/${this.id}/replay`, { method: 'POST', signal: options.signal });
  }

  /** What is wrong with a run that cannot be read; `undefined` when nothing is. For an admin. */
  async diagnose(): Promise<Diagnosis | undefined> {
    return (await this.#get<{ readonly diagnosis: Diagnosis | null }>('/diagnosis')).diagnosis ?? undefined;
  }

  /** Sets aside what cannot be read of the run, and pauses it. @returns what was done; `undefined` when nothing is wrong. For an admin. */
  async repair(options: { readonly reason?: string } = {}): Promise<Diagnosis | undefined> {
    const ask = { method: 'POST', body: options } as const;
    const path = urlPath`/runs/${this.id}/repair`;
    return (await this.#http.json<{ readonly diagnosis: Diagnosis | null }>(path, ask)).diagnosis ?? undefined;
  }

  #get<T>(what: string): Promise<T> {
    return this.#http.json(`${urlPath`/runs/${this.id}`}${what}`);
  }

  #post(what: string, body: object): Promise<void> {
    return this.#http.json(`${urlPath`/runs/${this.id}`}${what}`, { method: 'POST', body });
  }
}

/** Asks again and again until there is a result. */
export async function settled(http: Http, path: string, signal?: AbortSignal): Promise<RunResult> {
  for (;;) {
    const response = await http.response(path, { query: { waitMs: WAIT_MS }, signal });
    const body = (await response.json().catch(() => undefined)) as RunResult | undefined;
    // An answer that was cut off is asked for again.
    if (response.status !== 202 && body !== undefined) return body;
  }
}
