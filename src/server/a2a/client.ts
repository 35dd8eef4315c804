/** A client of another agent over A2A 1.0, with what `a2aTool` needs. */
import { defined, givenTraceparent, isJsonObject, type Json, type JsonObject } from '#core';
import { explainSchemaError, firstIssues, schemaErrors } from '#schema';
import { NotSent, OutcomeUnknown, ToolFailure } from '#tools';
import { BEGUN, PEER_CARD, PEER_TASK, PEER_TASKS } from './peer-shapes.ts';
import { type A2aMessage, type AgentCard, MEDIA_TYPE, PROTOCOL_VERSION, type Task } from './wire.ts';

export interface ClientOptions {
  /** The card of the agent, or the address of the card. */
  readonly card: AgentCard | string;
  readonly headers: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
}

/** What an agent returns for a message. */
export type Begins = { readonly task: Task } | { readonly message: A2aMessage };

const RPC = 'JSONRPC';
const REST = 'HTTP+JSON';
const REQUEST_MS = 30_000;
/** What is longer could not be recorded. */
const MOST_BYTES = 4_000_000;
/** Codes of errors before a connection was made: then nothing was sent. */
const UNSENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export class A2aClient {
  readonly #options: ClientOptions;
  #place: Promise<{ readonly url: string; readonly binding: string }> | undefined;
  #requests = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  async send(message: A2aMessage, signal: AbortSignal): Promise<Begins> {
    const params = { message: { ...message }, configuration: { returnImmediately: true } } as unknown as JsonObject;
    return fitting(BEGUN, await this.#ask('SendMessage', params, ['POST', '/message:send'], signal));
  }

  async get(id: string, signal: AbortSignal): Promise<Task> {
    const path = `/tasks/${encodeURIComponent(id)}?historyLength=0`;
    const task = fitting<Task>(PEER_TASK, await this.#ask('GetTask', { id, historyLength: 0 }, ['GET', path], signal));
    if (task.id !== id) throw new OutcomeUnknown('The agent told of another task than the one that it was asked for.');
    return task;
  }

  cancel(id: string, signal: AbortSignal): Promise<unknown> {
    return this.#ask('CancelTask', { id }, ['POST', `/tasks/${encodeURIComponent(id)}:cancel`], signal);
  }

  /** A page of tasks with their histories, newest first. `next` is the token of the next page. */
  async list(
    contextId: string | undefined,
    pageToken: string,
    signal: AbortSignal,
  ): Promise<{ readonly tasks: readonly Task[]; readonly next: string }> {
    const params = {
      pageSize: 100,
      historyLength: 100,
      ...(contextId && { contextId }),
      ...(pageToken && { pageToken }),
    };
    const query = new URLSearchParams(
      Object.entries(params).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const page = await this.#ask('ListTasks', params, ['GET', `/tasks?${query}`], signal);
    const { tasks = [], nextPageToken = '' } = fitting<{ tasks?: readonly Task[]; nextPageToken?: string }>(
      PEER_TASKS,
      page,
    );
    return { tasks, next: nextPageToken };
  }

  async #ask(
    method: string,
    params: JsonObject,
    [verb, path]: readonly [verb: string, path: string],
    signal: AbortSignal,
  ): Promise<Json> {
    this.#place ??= this.#find(signal);
    const { url, binding } = await this.#place.catch((error: unknown) => {
      this.#place = undefined;
      throw error;
    });
    const isRpc = binding === RPC;
    this.#requests += 1;
    const id = this.#requests;
    const body = isRpc ? { jsonrpc: '2.0', id, method, params } : verb === 'POST' ? params : undefined;
    const answer = await this.#fetch(isRpc ? url : `${url}${path}`, isRpc ? 'POST' : verb, body, signal);
    return isRpc ? resultIn(answer, id) : bodyIn(answer);
  }

  /** Chooses one of the interfaces that the card offers. */
  async #find(signal: AbortSignal): Promise<{ readonly url: string; readonly binding: string }> {
    const { card: given } = this.#options;
    const card = typeof given === 'string' ? await this.#card(given, signal) : given;
    const [issue] = schemaErrors(PEER_CARD, card as unknown as Json);
    if (issue !== undefined)
      throw new ToolFailure(`The card of the agent cannot be used: ${explainSchemaError(issue)}`);
    const usable = card.supportedInterfaces.find(
      ({ url, protocolBinding, protocolVersion }) =>
        /^https?:$/.test(URL.parse(url)?.protocol ?? '') &&
        [RPC, REST].includes(protocolBinding) &&
        protocolVersion.startsWith(PROTOCOL_VERSION),
    );
    if (usable === undefined)
      throw new ToolFailure(
        `The agent does not speak A2A ${PROTOCOL_VERSION} over JSONRPC or HTTP+JSON, as its card says.`,
      );
    return { url: usable.url.replace(/\/+$/, ''), binding: usable.protocolBinding };
  }

  async #card(at: string, signal: AbortSignal): Promise<AgentCard> {
    const url = new URL(at);
    if (url.pathname === '/') url.pathname = '/.well-known/agent-card.json';
    const { json, status } = await this.#fetch(url.href, 'GET', undefined, signal).catch((error: unknown) => {
      // When the card could not be read, no message was sent.
      throw error instanceof OutcomeUnknown ? new NotSent(error.message, { cause: error }) : error;
    });
    if (status === 200 && isJsonObject(json)) return json as unknown as AgentCard;
    throw new NotSent(`There is no card of an agent at ${url.origin}${url.pathname} (status ${status}).`);
  }

  async #fetch(url: string, method: string, body: JsonObject | undefined, signal: AbortSignal): Promise<Answer> {
    const headers = {
      // The call that asks is what the agent's own run is a part of.
      ...defined({ traceparent: givenTraceparent() }),
      ...(await this.#options.headers()),
      'a2a-version': PROTOCOL_VERSION,
      accept: `application/json, ${MEDIA_TYPE}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const within = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]);
    try {
      const response = await fetch(url, {
        method,
        headers,
        signal: within,
        // Where it leads, the headers are not for; the status says what is wrong.
        redirect: 'manual',
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, json: parsed(await textIn(response)) };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof OutcomeUnknown) throw error;
      const { code = '' } = ((error as { cause?: unknown }).cause ?? {}) as { readonly code?: string };
      if (UNSENT.has(code)) throw new NotSent('The agent cannot be reached.', { cause: error });
      throw new OutcomeUnknown('The answer of the agent was lost.', { cause: error });
    }
  }
}

interface Answer {
  readonly status: number;
  /** `undefined` when the body is not JSON. */
  readonly json: Json | undefined;
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** @throws OutcomeUnknown for a body that is too long. */
async function textIn(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop ends the connection.
  for await (const piece of response.body ?? []) {
    size += piece.byteLength;
    if (size > MOST_BYTES) throw new OutcomeUnknown(`The answer of the agent has more than ${MOST_BYTES} bytes.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** @throws OutcomeUnknown: the agent has been asked, and what it says cannot be read. */
function fitting<T>(schema: JsonObject, value: Json): T {
  const issues = schemaErrors(schema, value).map(explainSchemaError);
  if (issues.length === 0) return value as T;
  throw new OutcomeUnknown(`The answer of the agent does not fit A2A ${PROTOCOL_VERSION}: ${firstIssues(issues)}`);
}

function resultIn({ status, json }: Answer, id: number): Json {
  if (isJsonObject(json) && (json['id'] ?? id) !== id)
    throw new OutcomeUnknown('The agent gave the answer to another request.');
  if (isJsonObject(json) && isJsonObject(json['error'])) throw refusedWith(json['error'], status);
  if (status === 200 && isJsonObject(json) && json['result'] !== undefined) return json['result'];
  throw unclear(status);
}

function bodyIn({ status, json }: Answer): Json {
  if (status >= 200 && status < 300 && json !== undefined) return json;
  if (status < 500 && isJsonObject(json) && isJsonObject(json['error'])) throw refusedWith(json['error'], status);
  throw unclear(status);
}

/** The error for an answer in which the agent says what is wrong. */
function refusedWith({ message, code }: JsonObject, status: number): Error {
  const words = `The agent refused: ${String(message).slice(0, 500)}`;
  const isInside = code === -32_603 || status >= 500;
  return isInside
    ? new OutcomeUnknown(words)
    : new ToolFailure(words, { code: 'agent_refused', data: { code: Number(code) } });
}

function unclear(status: number): Error {
  if (status === 401 || status === 403)
    return new ToolFailure('The agent does not let this runtime in.', { code: 'agent_refused' });
  if (status === 429) return new NotSent('The agent has too much to do.', { retryAfterMs: 1_000 });
  return new OutcomeUnknown(`The agent gave no answer that can be read (status ${status}).`);
}
