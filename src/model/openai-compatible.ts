/**
 * A model behind any server that speaks the OpenAI chat protocol: Ollama, vLLM, LM Studio, llama.cpp, a gateway. A
 * reply has an end, and the request, with its key, goes to no other server.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import {
  assertOptions,
  defined,
  isTooLarge,
  knowKey,
  knowKeysOf,
  LARGE_CHARS,
  type OptionShape,
  PilotageError,
  systemClock,
} from '#core';
import { BrokenReply, MisdirectedRequest } from './failure.ts';
import { paceOf } from './watch.ts';

export interface OpenAICompatibleOptions {
  /** The part before `/chat/completions`, such as `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  /** The server's name of the model. */
  readonly model: string;
  /** The key, sent as a bearer token. */
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The most bytes of a reply. A longer reply is broken off, as a failure that may pass. Default 67,108,864 (64 MiB). One JSON
   * text in it may have 8 MiB.
   */
  readonly maxReplyBytes?: number;
}

const OPTIONS: OptionShape<OpenAICompatibleOptions> = {
  baseUrl: 'any',
  model: 'text',
  apiKey: 'text?',
  headers: 'object?',
  maxReplyBytes: 'any?',
};

/**
 * A server that redirects to another host is not followed: the key would go with the request.
 * @throws PilotageError `invalid_config`
 */
export function openaiCompatible(options: OpenAICompatibleOptions): LanguageModelV4 {
  assertOptions('openaiCompatible', options, OPTIONS);
  const { baseUrl, model, apiKey, headers, maxReplyBytes = MAX_REPLY_BYTES } = options;
  if (!Number.isSafeInteger(maxReplyBytes) || maxReplyBytes < 1) {
    const message = `maxReplyBytes is ${maxReplyBytes}; give a whole number from 1 up.`;
    throw new PilotageError('invalid_config', message);
  }
  assertBaseUrl(baseUrl);
  if (apiKey !== undefined) knowKey(apiKey);
  knowKeysOf(headers ?? {});
  const asking = (isStream: boolean): LanguageModelV4 =>
    createOpenAICompatible({
      name: 'openaiCompatible',
      baseURL: baseUrl,
      fetch: serverFetch(maxReplyBytes, isStream),
      // Without it a streamed reply says nothing of its tokens.
      includeUsage: true,
      // Without it a schema is left out in silence. A server that refuses it is asked again without (see structured.ts).
      supportsStructuredOutputs: true,
      ...defined({ apiKey }),
      ...(headers === undefined ? {} : { headers: { ...headers } }),
    })(model);
  const whole = asking(false);
  const streamed = asking(true);
  const { specificationVersion, provider, modelId, supportedUrls } = whole;
  return {
    ...{ specificationVersion, provider, modelId, supportedUrls },
    doGenerate: (request) => whole.doGenerate(request),
    doStream: (request) => streamed.doStream(request),
  };
}

/**
 * `fetch` reports a wrong address in the same way as a server that is away, and a run would wait for it: so the address is checked
 * here.
 */
function assertBaseUrl(baseUrl: unknown): asserts baseUrl is string {
  if (typeof baseUrl !== 'string') {
    throw new PilotageError(
      'invalid_config',
      'baseUrl must be a string: give an address such as http://127.0.0.1:11434/v1.',
    );
  }
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url !== undefined && (url.username !== '' || url.password !== '')) {
    throw new PilotageError(
      'invalid_config',
      'baseUrl must not hold a user or a password. Give the key as apiKey, or in headers.',
    );
  }
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return;
  throw new PilotageError(
    'invalid_config',
    `baseUrl is ${JSON.stringify(baseUrl)}; give an address that begins with http:// or https://, such as http://127.0.0.1:11434/v1.`,
  );
}

/** The most bytes of one reply on the wire. A streamed token takes some 300 bytes. */
const MAX_REPLY_BYTES: number = 64 * 1024 * 1024;
const MAX_HOPS = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Redirect statuses after which the request keeps its method and body. */
const SAME_REQUEST: ReadonlySet<number> = new Set([307, 308]);

/**
 * @param isStream the request asks for a stream of events; a reply with the status of an error is not a stream.
 * @throws MisdirectedRequest; reading the body throws a BrokenReply when it is over `maxReplyBytes`, or holds JSON that is too large.
 */
function serverFetch(maxReplyBytes: number, isStream: boolean): typeof globalThis.fetch {
  return async (input, init) => {
    let url = new URL(input instanceof Request ? input.url : input);
    for (let hops = 0; ; hops += 1) {
      const response = await fetch(url, { ...init, redirect: 'manual' });
      if (!REDIRECTS.has(response.status))
        return bounded(response, new BodyLimits(maxReplyBytes, isStream && response.ok));
      // Nobody wants to know what else it says, nor whether it can be stopped.
      response.body?.cancel().catch(() => undefined);
      url = nextUrl(url, response, hops);
    }
  };
}

function nextUrl(from: URL, { status, headers }: Response, hops: number): URL {
  const location = headers.get('location') ?? '';
  const to = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  const isSameServer = to?.origin === from.origin;
  if (to !== undefined && isSameServer && SAME_REQUEST.has(status) && hops < MAX_HOPS) return to;
  const where = to === undefined ? 'nowhere' : isSameServer ? `${to.origin}${to.pathname}` : to.origin;
  const why = isSameServer ? `HTTP ${status}, ${hops + 1} in a row` : 'the key would go there too';
  throw new MisdirectedRequest(
    `The model server at ${from.origin} sends the request on to ${where}, and it was not followed (${why}). Set the base URL to where the server is.`,
  );
}

function bounded(response: Response, limits: BodyLimits): Response {
  if (response.body === null) return response;
  const { status, statusText, headers } = response;
  return new Response(within(limits, response.body.getReader()), { status, statusText, headers });
}

function within(limits: BodyLimits, reader: ReadableStreamDefaultReader<Uint8Array>): ReadableStream<Uint8Array> {
  const pace = paceOf(systemClock);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      try {
        if (done) limits.end();
        else limits.add(value);
      } catch (error) {
        reader.cancel(error).catch(() => undefined);
        throw error;
      }
      if (done) return controller.close();
      await pace.take(value.byteLength);
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

// What the body of a reply may be: what would keep the thread for long is refused before a value is made of it.

/** Bounds of one JSON text: an event of a stream, or a whole reply. Parsing more takes over 50 ms without a break. */
const MAX_JSON_BYTES = 8 * 1024 * 1024;
const LF = 10;
const CR = 13;

/** Watches one body as it comes. */
class BodyLimits {
  readonly #maxBytes: number;
  readonly #isStream: boolean;
  #bytes = 0;
  /** Counters of the JSON text that is being read. */
  #text: Uint8Array[] = [];
  #textBytes = 0;
  /** Nothing but its end came of the line so far. */
  #isBlank = true;

  /** @param isStream an empty line ends an event, and with it a JSON text; otherwise the body is one. */
  constructor(maxBytes: number, isStream: boolean) {
    this.#maxBytes = maxBytes;
    this.#isStream = isStream;
  }

  /** @throws BrokenReply before the end of a text that is too large is given on. */
  add(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes)
      throw tooLarge(`The reply of the model server went on after ${this.#maxBytes} bytes, and was broken off.`);
    this.#grow(chunk.subarray(this.#isStream ? this.#endTexts(chunk) : 0));
  }

  /** The body is whole. @throws BrokenReply */
  end(): void {
    this.#endText();
  }

  /** Returns where the text begins that the chunk does not end. */
  #endTexts(chunk: Uint8Array): number {
    let text = 0;
    let line = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, line)) {
      if (this.#isBlank && isBlank(chunk, line, end)) {
        this.#grow(chunk.subarray(text, end));
        this.#endText();
        text = end + 1;
      }
      this.#isBlank = true;
      line = end + 1;
    }
    this.#isBlank &&= isBlank(chunk, line, chunk.length);
    return text;
  }

  #grow(part: Uint8Array): void {
    this.#textBytes += part.length;
    if (this.#textBytes > MAX_JSON_BYTES) {
      const what = this.#isStream ? 'An event' : 'The reply';
      throw tooLarge(`${what} of the model server has more than ${MAX_JSON_BYTES} bytes of JSON, and was not read.`);
    }
    this.#text.push(part);
  }

  #endText(): void {
    // As Latin-1 each byte is a character: what is counted are signs of ASCII, and keys that differ.
    if (this.#textBytes >= LARGE_CHARS && isTooLarge(Buffer.concat(this.#text).toString('latin1')))
      throw tooLarge('The model server sent JSON with more values, or more different keys, than are read.');
    this.#text = [];
    this.#textBytes = 0;
  }
}

function isBlank(chunk: Uint8Array, from: number, to: number): boolean {
  return to === from || (to - from === 1 && chunk[from] === CR);
}

function tooLarge(message: string): BrokenReply {
  return new BrokenReply('model_reply_too_large', message);
}
