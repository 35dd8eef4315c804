/** A loopback server with a model whose window is small: four characters are a token, and what is too long is refused in a provider's words. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json, JsonObject } from '#core';

/** What the model says. */
export type Said = { readonly text: string } | { readonly tool: string; readonly args: JsonObject };

/** How one provider writes its replies. */
export interface Protocol {
  json(said: Said, inputTokens: number): Json;
  /** The data of the events. */
  events(said: Said, inputTokens: number): readonly Json[];
  /** Whether the request asks for a stream. */
  streams(path: string, body: JsonObject): boolean;
  readonly named?: true;
}

export interface Seen {
  readonly tokens: number;
  readonly body: JsonObject;
  readonly text: string;
  readonly isSummary: boolean;
  readonly refused: boolean;
}

export interface WindowOptions {
  readonly protocol: Protocol;
  /** In tokens. It may change while the server runs. */
  window: number;
  /** What is said of a request with so many tokens. */
  readonly refuse: (
    tokens: number,
    window: number,
    body: JsonObject,
  ) => { readonly status?: number; readonly body: Json };
  /** Refuses a request that fits for another reason. */
  readonly alsoRefuses?: (body: JsonObject) => boolean;
  /** What the model says to the request of that number, not counting summaries and what was refused. */
  readonly says: (index: number, text: string) => Said | Promise<Said>;
  /** True: what is too long is cut off without a word. */
  readonly cutsOff?: boolean;
}

export interface WindowServer {
  readonly url: string;
  readonly seen: readonly Seen[];
  close(): Promise<void>;
}

const SUMMARY = {
  goals: ['Read the pages.'],
  facts: ['Some pages were read.'],
  pending: ['The rest.'],
  lastOutputDigest: 'A page of words.',
};

/** No two summaries are the same. */
function summary(request: number): string {
  return JSON.stringify({ ...SUMMARY, note: `Written at request ${request}.` });
}

export async function windowServer(options: WindowOptions): Promise<WindowServer> {
  const { protocol, refuse, says, cutsOff = false, alsoRefuses = () => false } = options;
  const seen: Seen[] = [];
  let accepted = 0;
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const body = JSON.parse(text) as JsonObject;
    const tokens = Math.ceil(text.length / 4);
    const isSummary = text.includes('Sum up these steps');
    const isStream = protocol.streams(request.url ?? '', body);
    const isTooLong = tokens > options.window;
    const refused = (isTooLong && !cutsOff) || alsoRefuses(body);
    seen.push({ tokens, body, text, isSummary, refused });
    if (refused) {
      const { status = 200, body: error } = refuse(tokens, options.window, body);
      if (status === 200 && isStream) sendEvents(response, [error], protocol);
      else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(error));
      return;
    }
    const counted = isTooLong ? Math.floor(options.window / 2) + 2 : tokens;
    const said = isSummary ? { text: summary(seen.length) } : await says(accepted++, text);
    if (isStream) sendEvents(response, protocol.events(said, counted), protocol);
    else
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(protocol.json(said, counted)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function sendEvents(response: ServerResponse, events: readonly Json[], { named }: Protocol): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) {
    const data = typeof event === 'string' ? event : JSON.stringify(event);
    const name = named === true ? `event: ${String((event as JsonObject)['type'])}\n` : '';
    response.write(`${name}data: ${data}\n\n`);
  }
  response.end();
}

const OUTPUT_TOKENS = 5;
let ids = 0;
function newId(): string {
  ids += 1;
  return `call${String(ids).padStart(5, '0')}`;
}

const asksForStream = (_: string, body: JsonObject): boolean => body['stream'] === true;

/** OpenAI's chat, and those who speak it. */
export const chat: Protocol = {
  streams: asksForStream,
  json(said, inputTokens) {
    const message = 'text' in said ? { content: said.text } : { content: null, tool_calls: [chatCall(said)] };
    const reason = 'text' in said ? 'stop' : 'tool_calls';
    return {
      ...CHAT,
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason }],
      usage: chatUsage(inputTokens),
    };
  },
  events(said, inputTokens) {
    const delta = 'text' in said ? { content: said.text } : { tool_calls: [{ index: 0, ...chatCall(said) }] };
    const reason = 'text' in said ? 'stop' : 'tool_calls';
    const chunk = { ...CHAT, object: 'chat.completion.chunk' };
    return [
      { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: reason }], usage: chatUsage(inputTokens) },
      '[DONE]',
    ];
  },
};

const CHAT = { id: 'c', created: 1, model: 'm' };
const chatUsage = (input: number): JsonObject => ({
  prompt_tokens: input,
  completion_tokens: OUTPUT_TOKENS,
  total_tokens: input + OUTPUT_TOKENS,
});

function chatCall({ tool, args }: Exclude<Said, { text: string }>): JsonObject {
  return { id: newId(), type: 'function', function: { name: tool, arguments: JSON.stringify(args) } };
}

/** OpenAI's responses. */
export const responses: Protocol = {
  streams: asksForStream,
  json: (said, inputTokens) => ({
    ...RESPONSE,
    status: 'completed',
    output: [responsesItem(said)],
    usage: responsesUsage(inputTokens),
  }),
  events(said, inputTokens) {
    const item = responsesItem(said);
    return [
      { type: 'response.created', response: { ...RESPONSE, status: 'in_progress' } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, status: 'in_progress', ...('text' in said ? { content: [] } : { arguments: '' }) },
      },
      'text' in said
        ? {
            type: 'response.output_text.delta',
            item_id: item['id'] as string,
            output_index: 0,
            content_index: 0,
            delta: said.text,
          }
        : {
            type: 'response.function_call_arguments.delta',
            item_id: item['id'] as string,
            output_index: 0,
            delta: JSON.stringify(said.args),
          },
      { type: 'response.output_item.done', output_index: 0, item },
      {
        type: 'response.completed',
        response: { ...RESPONSE, status: 'completed', output: [item], usage: responsesUsage(inputTokens) },
      },
    ];
  },
};

const RESPONSE = { id: 'r1', object: 'response', created_at: 1, model: 'gpt-x' };
const responsesUsage = (input: number): JsonObject => ({
  input_tokens: input,
  output_tokens: OUTPUT_TOKENS,
  total_tokens: input + OUTPUT_TOKENS,
});

function responsesItem(said: Said): JsonObject {
  const id = newId();
  return 'text' in said
    ? {
        id: `m${id}`,
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: said.text, annotations: [] }],
      }
    : {
        id: `f${id}`,
        type: 'function_call',
        call_id: id,
        name: said.tool,
        arguments: JSON.stringify(said.args),
        status: 'completed',
      };
}

export const anthropic: Protocol = {
  named: true,
  streams: asksForStream,
  json: (said, inputTokens) => ({
    ...MESSAGE,
    content: [block(said)],
    stop_reason: 'text' in said ? 'end_turn' : 'tool_use',
    usage: { input_tokens: inputTokens, output_tokens: OUTPUT_TOKENS },
  }),
  events(said, inputTokens) {
    const empty = 'text' in said ? { type: 'text', text: '' } : { ...block(said), input: {} };
    const delta =
      'text' in said
        ? { type: 'text_delta', text: said.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(said.args) };
    return [
      {
        type: 'message_start',
        message: { ...MESSAGE, content: [], stop_reason: null, usage: { input_tokens: inputTokens, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: empty },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'text' in said ? 'end_turn' : 'tool_use', stop_sequence: null },
        usage: { output_tokens: OUTPUT_TOKENS },
      },
      { type: 'message_stop' },
    ];
  },
};

const MESSAGE = { type: 'message', id: 'm1', role: 'assistant', model: 'claude-x', stop_sequence: null };

function block(said: Said): JsonObject {
  return 'text' in said
    ? { type: 'text', text: said.text }
    : { type: 'tool_use', id: newId(), name: said.tool, input: said.args };
}

export const google: Protocol = {
  streams: (path) => path.includes('streamGenerateContent'),
  json(said, inputTokens) {
    const part = 'text' in said ? { text: said.text } : { functionCall: { name: said.tool, args: said.args } };
    return {
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: {
        promptTokenCount: inputTokens,
        candidatesTokenCount: OUTPUT_TOKENS,
        totalTokenCount: inputTokens + OUTPUT_TOKENS,
      },
      modelVersion: 'gemini-x',
    };
  },
  events: (said, inputTokens) => [google.json(said, inputTokens)],
};
