/** Requests to a server of ours: JSON there and back, and errors with our codes. */
import type { Json } from '#core';

export interface CreateClientOptions {
  /** Where the API is, such as `https://agents.example.com` or, on a page of the same server, `/api`. */
  readonly url: string;
  /** Sent with each request, such as `authorization`; a function is asked each time. */
  readonly headers?: Headers_ | (() => Headers_ | Promise<Headers_>);
  /** Default: the `fetch` of the surroundings. */
  readonly fetch?: typeof fetch;
  /** For how long a server that is away is tried again where that repeats nothing, in milliseconds. Default 60,000. */
  readonly patienceMs?: number;
}

type Headers_ = Readonly<Record<string, string>>;

/** Why a request was refused, or that the server could not be reached. */
export class ClientError extends Error {
  override readonly name: string = 'ClientError';
  /** The same codes as those of `PilotageError`, those of the server's own refusals, `server_failed`, and `connection_failed`. */
  readonly code: string;
  /** That of the response; 0 when there was none. */
  readonly status: number;
  readonly data: Readonly<Record<string, Json>> | undefined;

  constructor(
    code: string,
    message: string,
    about: { readonly status?: number; readonly data?: Readonly<Record<string, Json>>; readonly cause?: unknown } = {},
  ) {
    super(message, about.cause === undefined ? undefined : { cause: about.cause });
    this.code = code;
    this.status = about.status ?? 0;
    this.data = about.data;
  }

  /** The same request may be answered later. */
  get isPassing(): boolean {
    return this.code === 'connection_failed' || [429, 502, 503, 504].includes(this.status);
  }
}

export interface HttpAsk {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly headers?: Headers_;
  readonly signal?: AbortSignal | undefined;
  /** True: asked again while the server is away, since it happens once however often it is asked. Default: for `GET`. */
  readonly again?: boolean;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const PATIENCE_MS = 60_000;

export class Http {
  readonly #options: CreateClientOptions;
  readonly patienceMs: number;

  constructor(options: CreateClientOptions) {
    this.#options = options;
    this.patienceMs = options.patienceMs ?? PATIENCE_MS;
  }

  /** @throws ClientError; the reason of the signal. */
  async json<T>(path: string, ask: HttpAsk = {}): Promise<T> {
    return this.#patiently(ask, async () => {
      const response = await this.#once(path, ask);
      return (response.status === 204 ? undefined : await bodyOf(response)) as T;
    });
  }

  /** @throws ClientError for an answer that refuses; the reason of the signal. */
  async response(path: string, ask: HttpAsk = {}): Promise<Response> {
    return this.#patiently(ask, () => this.#once(path, ask));
  }

  async #patiently<T>(
    { method = 'GET', again = method === 'GET', signal }: HttpAsk,
    work: () => Promise<T>,
  ): Promise<T> {
    if (!again) return work();
    const patience = new Patience(this.patienceMs);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        await patience.over(error, signal);
      }
    }
  }

  async #once(path: string, { method = 'GET', query, body, headers, signal }: HttpAsk): Promise<Response> {
    const { url, headers: given = {}, fetch: ask = globalThis.fetch } = this.#options;
    const own = typeof given === 'function' ? await given() : given;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    let response: Response;
    try {
      response = await ask(`${url.replace(/\/$/, '')}${path}${queryText(query)}`, {
        ...{ method, headers: { accept: 'application/json', ...type, ...own, ...headers }, ...sent },
        ...(signal == null ? {} : { signal }),
      });
    } catch (cause) {
      signal?.throwIfAborted();
      throw new ClientError('connection_failed', 'The server could not be reached.', { cause });
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

/** For how long one that is away is waited for. */
export class Patience {
  readonly #ms: number;
  #failingSince: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(ms: number) {
    this.#ms = ms;
  }

  /** The server was there again. */
  found(): void {
    this.#failingSince = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** A while, after which it may be asked again. @throws the error, when that is for good, or has lasted too long. */
  async over(error: unknown, signal?: AbortSignal): Promise<void> {
    if (!(error instanceof ClientError) || !error.isPassing) throw error;
    this.#failingSince ??= performance.now();
    if (performance.now() - this.#failingSince >= this.#ms) throw error;
    await pause(this.#pauseMs, signal);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

/** Ends early, without an error, when the signal is aborted. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal?.aborted === true) end();
    else signal?.addEventListener('abort', end);
  });
}

async function bodyOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    throw new ClientError('connection_failed', 'The answer of the server was cut off.', { cause });
  }
}

async function refusal(response: Response): Promise<ClientError> {
  const { status } = response;
  const said: unknown = await response.json().catch(() => undefined);
  return clientErrorOf(said, status);
}

/** The error that a problem document tells of. */
export function clientErrorOf(said: unknown, status: number = 0): ClientError {
  const { code, detail, data } = (typeof said === 'object' && said !== null ? said : {}) as {
    readonly code?: unknown;
    readonly detail?: unknown;
    readonly data?: Readonly<Record<string, Json>>;
  };
  const about = { status, ...(data === undefined ? {} : { data }) };
  if (typeof code === 'string') return new ClientError(code, String(detail), about);
  return new ClientError('server_failed', `The server has answered with ${status}.`, about);
}

function queryText(query: HttpAsk['query'] = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) params.append(name, String(each));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

export function urlPath(strings: TemplateStringsArray, ...ids: readonly string[]): string {
  return strings
    .map((part, index) => `${part}${index < ids.length ? encodeURIComponent(ids[index] ?? '') : ''}`)
    .join('');
}
