/** A real HTTP server on loopback that speaks the OpenAI chat-completions protocol from a script. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  assertKnownKeys,
  defined,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  type OptionShape,
  type Usage,
} from '#core';
import { CALL_KEYS, type ScriptedCall, split } from './models.ts';

export interface ServerReply {
  readonly text?: string;
  /** Reasoning, sent as `reasoning_content`. */
  readonly reasoning?: string;
  readonly calls?: readonly ScriptedCall[];
  /** The protocol's finish reason. Default `tool_calls` with calls, otherwise `stop`. */
  readonly finishReason?: string;
  readonly usage?: Usage;
  /** An HTTP error in place of a reply. */
  readonly error?: {
    readonly status: number;
    readonly message: string;
    /** The `Retry-After` header: seconds, or an HTTP date. */
    readonly retryAfter?: string;
  };
  /** Breaks the connection off after this many events of a stream. The first event holds only the role. */
  readonly breakAfterEvents?: number;
  /** Sends nothing more after this many events, and keeps the connection open. */
  readonly stallAfterEvents?: number;
  /** An error event in place of the rest of the stream, whose status is 200 all the same. */
  readonly errorEvent?: {
    readonly afterEvents: number;
    readonly message: string;
    readonly type?: string;
    readonly code?: string | number;
  };
}

const REPLY: OptionShape<ServerReply> = {
  ...({ text: 'any?', reasoning: 'any?', calls: 'any?', finishReason: 'any?', usage: 'any?', error: 'any?' } as const),
  ...({ breakAfterEvents: 'any?', stallAfterEvents: 'any?', errorEvent: 'any?' } as const),
};
const REPLY_KEYS = Object.keys(REPLY);

export type ServerHandler = (request: ChatRequest, index: number) => ServerReply | Promise<ServerReply>;

export interface RecordedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: ChatRequest;
}

export interface OpenAIServer {
  /** The base URL: give it to `openaiCompatible`. */
  readonly url: string;
  /** The requests that were well-formed JSON, refused ones included. */
  readonly requests: readonly RecordedRequest[];
  /** Event streams whose connection is open. */
  readonly openStreams: number;
  /** Closes the server, and breaks off replies under way. */
  close(): Promise<void>;
}

/** Listens on a free port. Replies in the order of the list, or as the function says; 500 beyond the end of the list. */
export async function openaiServer(script: readonly ServerReply[] | ServerHandler): Promise<OpenAIServer> {
  if (typeof script !== 'function') script.forEach(assertReply);
  const requests: RecordedRequest[] = [];
  let answered = 0;
  let openStreams = 0;
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((thrown: unknown) => {
      if (response.headersSent) response.destroy();
      else sendError(response, 500, describeThrown(thrown));
    });
  });

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (incoming.method !== 'POST' || incoming.url !== '/v1/chat/completions') {
      sendError(response, 404, `There is no ${incoming.method} ${incoming.url} here.`);
      return;
    }
    const body = await readJson(incoming);
    if (body === undefined) {
      sendError(response, 400, 'The body is not JSON.');
      return;
    }
    const request = body as unknown as ChatRequest;
    requests.push({ headers: incoming.headers, body: request });
    const fault = chatFault(body);
    if (fault !== undefined) {
      sendError(response, 400, fault);
      return;
    }
    const index = answered;
    answered += 1;
    const reply = typeof script === 'function' ? await script(request, index) : script[index];
    if (typeof script === 'function' && reply !== undefined) assertReply(reply, index);
    if (reply === undefined) sendError(response, 500, `The script has no reply ${index + 1}.`);
    else if (reply.error !== undefined)
      sendError(response, reply.error.status, reply.error.message, reply.error.retryAfter);
    else if (request.stream === true) {
      openStreams += 1;
      response.once('close', () => {
        openStreams -= 1;
      });
      await sendEvents(response, request, reply, index);
    } else sendJson(response, 200, completion(request, reply, index));
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    get openStreams() {
      return openStreams;
    },
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)));
        server.closeAllConnections();
      }),
  };
}

/** A word of a reply that is not known would be a stall, or an error, that never comes. */
function assertReply(reply: ServerReply, index: number): void {
  assertKnownKeys(`The reply ${index} of openaiServer`, reply, REPLY_KEYS);
  for (const call of reply.calls ?? [])
    assertKnownKeys(`A call of the reply ${index} of openaiServer`, call, CALL_KEYS);
}

async function readJson(incoming: IncomingMessage): Promise<Json | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Json;
  } catch {
    return undefined;
  }
}

function sendJson(response: ServerResponse, status: number, body: JsonObject): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendError(response: ServerResponse, status: number, message: string, retryAfter?: string): void {
  if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  sendJson(response, status, { error: { message, type, param: null, code: null } });
}

function completion(request: ChatRequest, reply: ServerReply, index: number): JsonObject {
  const calls = toolCalls(reply, index);
  const message = {
    role: 'assistant',
    content: reply.text ?? null,
    ...defined({ reasoning_content: reply.reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return {
    ...head(request, index, 'chat.completion'),
    choices: [{ index: 0, message, finish_reason: finishReason(reply) }],
    usage: usageBody(reply.usage),
  };
}

/** Each event is out before the next is written, so that the client gets it in pieces. */
async function sendEvents(
  response: ServerResponse,
  request: ChatRequest,
  reply: ServerReply,
  index: number,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const { breakAfterEvents, stallAfterEvents, errorEvent } = reply;
  const whole = [...eventsOf(request, reply, index)];
  const events = whole.slice(0, breakAfterEvents ?? stallAfterEvents ?? errorEvent?.afterEvents);
  if (errorEvent !== undefined) events.push({ error: errorBody(errorEvent) });
  for (const event of events) {
    // The client may be gone: then there is nobody to tell.
    await new Promise((written) => response.write(`data: ${JSON.stringify(event)}\n\n`, written));
    if (response.destroyed) return;
  }
  if (breakAfterEvents !== undefined) response.destroy();
  else if (stallAfterEvents === undefined) response.end('data: [DONE]\n\n');
}

function errorBody({ message, type = 'server_error', code }: NonNullable<ServerReply['errorEvent']>): JsonObject {
  return { message, type, param: null, code: code ?? null };
}

function* eventsOf(request: ChatRequest, reply: ServerReply, index: number): Generator<JsonObject> {
  const base = head(request, index, 'chat.completion.chunk');
  const chunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  yield chunk({ role: 'assistant', content: '' });
  for (const piece of split(reply.reasoning ?? '')) yield chunk({ reasoning_content: piece });
  for (const piece of split(reply.text ?? '')) yield chunk({ content: piece });
  for (const [place, call] of toolCalls(reply, index).entries()) {
    const { name, arguments: input } = call.function;
    yield chunk({ tool_calls: [{ index: place, id: call.id, type: 'function', function: { name, arguments: '' } }] });
    for (const piece of split(input)) {
      yield chunk({ tool_calls: [{ index: place, function: { arguments: piece } }] });
    }
  }
  yield chunk({}, finishReason(reply));
  if (request.stream_options?.include_usage === true) yield { ...base, choices: [], usage: usageBody(reply.usage) };
}

function head(request: ChatRequest, index: number, object: string): JsonObject {
  return { id: `chatcmpl-${index}`, object, created: 1_767_312_000, model: request.model };
}

function finishReason({ finishReason: word, calls = [] }: ServerReply): string {
  return word ?? (calls.length === 0 ? 'stop' : 'tool_calls');
}

function toolCalls({ calls = [] }: ServerReply, index: number) {
  return calls.map(({ id, tool, args = {}, input }, place) => ({
    id: id ?? `call_${index}_${place}`,
    type: 'function',
    function: { name: tool, arguments: input ?? JSON.stringify(args) },
  }));
}

function usageBody({ inputTokens = 0, outputTokens = 0, cachedInputTokens = 0 }: Usage = {}): JsonObject {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  };
}

// The request, and what strict servers refuse in it.

export interface ChatToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ChatMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  readonly content?: Json;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ChatToolCall[];
  readonly tool_call_id?: string;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly {
    readonly type: 'function';
    readonly function: { readonly name: string; readonly description?: string; readonly parameters?: Json };
  }[];
  readonly parallel_tool_calls?: boolean;
  readonly max_tokens?: number;
  readonly temperature?: number;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

const ROLES: ReadonlySet<Json> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** What is wrong with the body; `undefined` when nothing is. */
function chatFault(body: Json): string | undefined {
  if (!isJsonObject(body)) return 'The body is not an object.';
  if (typeof body['model'] !== 'string' || body['model'] === '') return 'model is missing.';
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) return 'messages is empty.';
  return toolsFault(body['tools']) ?? messagesFault(messages as readonly Json[]);
}

function toolsFault(tools: Json | undefined): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools) || tools.length === 0) return 'tools is not a list with something in it.';
  const names = new Set<string>();
  for (const [index, tool] of (tools as readonly Json[]).entries()) {
    const spec = isJsonObject(tool) ? tool['function'] : undefined;
    const name = isJsonObject(spec ?? null) ? (spec as { name?: Json }).name : undefined;
    if (typeof name !== 'string' || !TOOL_NAME.test(name)) return `tools[${index}].function.name is not a tool name.`;
    if (names.has(name)) return `tools has ${name} twice.`;
    names.add(name);
  }
  return undefined;
}

/** Every call is followed by exactly one result, before anything else is said; no result is without its call. */
function messagesFault(messages: readonly Json[]): string | undefined {
  const open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (!isJsonObject(message) || !ROLES.has(message['role'] ?? null)) return `messages[${index}].role is unknown.`;
    if (message['role'] === 'tool') {
      const id = message['tool_call_id'];
      if (typeof id !== 'string' || !open.delete(id)) return `messages[${index}] is a result without its tool call.`;
      if (typeof message['content'] !== 'string') return `messages[${index}].content is not text.`;
      continue;
    }
    if (open.size > 0) return `messages[${index}] comes before the results of ${[...open].join(', ')}.`;
    const fault = contentFault(message['content']) ?? callsFault(message['tool_calls'], open);
    if (fault !== undefined) return `messages[${index}].${fault}`;
    if (message['role'] !== 'assistant' && message['tool_calls'] !== undefined)
      return `messages[${index}] has tool_calls, and is not the assistant's.`;
    if (message['content'] == null && message['tool_calls'] === undefined)
      return `messages[${index}] has neither content nor tool_calls.`;
  }
  return open.size === 0 ? undefined : `The results of ${[...open].join(', ')} are missing.`;
}

function contentFault(content: Json | undefined): string | undefined {
  const known = content === undefined || content === null || typeof content === 'string' || Array.isArray(content);
  return known ? undefined : 'content is neither text nor parts.';
}

/** Adds the ids of the calls to `open`. */
function callsFault(calls: Json | undefined, open: Set<string>): string | undefined {
  if (calls === undefined) return undefined;
  if (!Array.isArray(calls) || calls.length === 0) return 'tool_calls is not a list with something in it.';
  for (const [index, call] of (calls as readonly Json[]).entries()) {
    const { id, function: called } = isJsonObject(call) ? call : {};
    if (typeof id !== 'string' || id === '') return `tool_calls[${index}].id is missing.`;
    if (open.has(id)) return `tool_calls[${index}].id is there twice.`;
    open.add(id);
    if (!isJsonObject(called ?? null)) return `tool_calls[${index}].function is missing.`;
    const { name, arguments: input } = called as { name?: Json; arguments?: Json };
    if (typeof name !== 'string' || !TOOL_NAME.test(name))
      return `tool_calls[${index}].function.name is not a tool name.`;
    if (typeof input !== 'string' || !holdsObject(input))
      return `tool_calls[${index}].function.arguments is not a JSON object.`;
  }
  return undefined;
}

function holdsObject(text: string): boolean {
  try {
    return isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}
