/** A handle of one session on a server: the methods of the runtime's own `Session`, over HTTP. */
import type { TurnUIMessage, UserMessage } from '#messages';
import type { BusyMode, RunResult, Session, SessionEvent, SessionOptions, StartOptions, TurnView } from '#runtime';
import { receive } from './event-source.ts';
import { ClientError, type Http, urlPath } from './http.ts';
import { ClientRun, settled } from './run.ts';
import { Seen } from './seen.ts';
import { sentMessageOf } from './words.ts';

/** What turns are started with. Whose session it is, the server knows. */
export type ClientSessionOptions = Omit<SessionOptions, 'identity' | 'scopes'>;

export interface ClientSendOptions {
  readonly busy?: BusyMode;
  /** The same message sent again changes nothing. Default: a fresh one. */
  readonly id?: string;
  /** Tools that this client carries out in the turn that the message begins. */
  readonly clientTools?: StartOptions['clientTools'] & object;
}

export interface ClientSentMessage {
  readonly id: string;
  /** The turn that has the message, which is a run. */
  readonly turn: string;
  readonly as: 'started' | 'queued' | 'steered' | 'interrupts' | 'known';
  /** Waits until that turn has ended or is paused. */
  result(): Promise<RunResult>;
}

interface Limit {
  readonly limit?: number;
}

export class ClientSession {
  readonly id: string;
  readonly #http: Http;
  readonly #options: ClientSessionOptions;

  constructor(id: string, options: ClientSessionOptions, http: Http) {
    this.id = id;
    this.#http = http;
    this.#options = options;
  }

  /** Accepts a message. It has an id of its own, so that it is sent again, and accepted once, when the connection breaks. */
  send(message: string | UserMessage, options: ClientSendOptions = {}): Promise<ClientSentMessage> {
    return this.#sent('/messages', sentMessageOf(message), options);
  }

  edit(turn: string, message: string | UserMessage, options: ClientSendOptions = {}): Promise<ClientSentMessage> {
    return this.#sent(urlPath`/turns/${turn}/edit`, sentMessageOf(message), options);
  }

  regenerate(turn: string, options: ClientSendOptions = {}): Promise<ClientSentMessage> {
    return this.#sent(urlPath`/turns/${turn}/regenerate`, {}, options);
  }

  async #sent(path: string, message: object, { busy, id, clientTools }: ClientSendOptions): Promise<ClientSentMessage> {
    const own = { ...this.#options, ...message, busy, clientTools, id: id ?? `message-${crypto.randomUUID()}` };
    const ask = { method: 'POST', body: own, again: true } as const;
    const sent = await this.#http.json<Omit<ClientSentMessage, 'result'>>(`${this.#path}${path}`, ask);
    return { ...sent, result: () => new ClientRun(sent.turn, this.#http).result() };
  }

  /** The events of all turns, and of turns that come later, until the reader leaves or the session is deleted. */
  async *events(
    options: { readonly from?: number; readonly tasks?: boolean; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<SessionEvent, void> {
    const { from = 0, tasks, signal } = options;
    const seen = new Seen();
    const after = from > 0 ? `${from - 1}` : undefined;
    const source = { query: { tasks }, after, signal, onAgain: () => seen.again() };
    for await (const { data } of receive(this.#http, `${this.#path}/events`, source)) {
      yield* seen.fresh(data as SessionEvent);
    }
  }

  /** How far the session has come: `events({ from: position + 1 })` brings what is recorded from now on. */
  async position(): Promise<number> {
    return (await this.#get<{ readonly position: number }>('/turns', { limit: 1 })).position;
  }

  async turns(options: Limit = {}): Promise<readonly TurnView[]> {
    return (await this.#get<{ readonly items: readonly TurnView[] }>('/turns', options)).items;
  }

  /** The conversation as messages of the AI SDK (`UIMessage`). */
  async uiMessages(options: Limit = {}): Promise<TurnUIMessage[]> {
    return (await this.#get<{ readonly items: TurnUIMessage[] }>('/messages', options)).items;
  }

  /** Waits until no turn is under way, or one waits for a person. `undefined` for a session without turns. */
  async result(options: { readonly signal?: AbortSignal } = {}): Promise<RunResult | undefined> {
    try {
      return await settled(this.#http, `${this.#path}/result`, options.signal);
    } catch (error) {
      if (error instanceof ClientError && error.code === 'run_not_found') return undefined;
      throw error;
    }
  }

  async branches(): ReturnType<Session['branches']> {
    return (await this.#get<{ readonly items: Awaited<ReturnType<Session['branches']>> }>('/branches')).items;
  }

  switchTo(turn: string): Promise<void> {
    return this.#http.json(`${this.#path}/switch`, { method: 'POST', body: { turn } });
  }

  /** Cancels the turn that is under way; with `waiting`, also those that wait. */
  cancel(options: { readonly waiting?: boolean } = {}): Promise<void> {
    return this.#http.json(`${this.#path}/cancel`, { method: 'POST', body: options });
  }

  get #path(): string {
    return urlPath`/sessions/${this.id}`;
  }

  #get<T>(what: string, query: object = {}): Promise<T> {
    return this.#http.json(`${this.#path}${what}`, { query: { ...query } });
  }
}
