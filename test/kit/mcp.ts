/** A server of MCP on the scenario agent, and its clients: those that people have, unmodified. */
import { createMCPClient } from '@ai-sdk/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';
import type { JsonObject } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, type Runtime, type RuntimeOptions } from '#runtime';
import { createHandler, serve } from '#server';
import { type McpOptions, mcp } from '#server/mcp';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

export const SECRET = 'a secret of the tests, long enough';

type HandlerOptions = Parameters<typeof createHandler>[0];

export interface McpServed {
  readonly runtime: Runtime;
  readonly effects: Effects;
  readonly url: URL;
  /** What was told to `onFault`. */
  readonly faults: unknown[];
  close(): Promise<void>;
}

export interface ServedOptions extends Partial<McpOptions> {
  readonly runtime?: Partial<RuntimeOptions>;
  readonly handler?: Partial<HandlerOptions>;
  /** Where it listens. Default: any free port. */
  readonly port?: number;
}

/** Serves the scenario agent on a journal in memory, unless the options say otherwise. */
export async function mcpServed(options: ServedOptions = {}): Promise<McpServed> {
  const { runtime: more = {}, handler: handling = {}, port = 0, ...ours } = options;
  const effects = new Effects();
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(error);
  const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal: memoryJournal(), onFault, ...more });
  const handler = createHandler({ runtime, parts: [mcp({ secret: SECRET, ...ours })], onFault, ...handling });
  const { url, close } = await serve(handler, { port });
  onTestFinished(async () => {
    await close();
    await runtime.close();
  });
  return { runtime, effects, faults, url: new URL(`${url}/mcp`), close };
}

export interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: JsonObject;
  readonly isError?: boolean;
}

/** What a person is shown, and says. */
export type Answers = (params: JsonObject) => JsonObject | Promise<JsonObject>;

/** Answers so, and notes what was shown. */
export function noting(asked: JsonObject[], answers: Answers): Answers {
  return (params) => {
    asked.push(params);
    return answers(params);
  };
}

export interface CallMore {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: { readonly progress: number; readonly message?: string | undefined }) => void;
  readonly meta?: JsonObject;
  readonly tool?: string;
}

/** What all of them can do. */
export interface McpClient {
  tools(): Promise<readonly JsonObject[]>;
  call(args: JsonObject | string, more?: CallMore): Promise<ToolAnswer>;
  close(): Promise<void>;
}

export interface ClientOptions {
  /** Absent: it cannot be asked. */
  readonly onAsked?: Answers;
  readonly headers?: Record<string, string>;
  readonly fetch?: typeof fetch;
}

export type ClientName = 'client 2.4, 2025-11-25' | 'client 2.4, auto' | 'sdk 1.32' | '@ai-sdk/mcp';
const INFO = { name: 'test', version: '1.0.0' };
const ELICITS = { elicitation: { form: {}, url: {} } };
/** A server that is gone is back soon. */
const RECONNECTS = {
  ...{ initialReconnectionDelay: 100, maxReconnectionDelay: 200, reconnectionDelayGrowFactor: 1, maxRetries: 100 },
};

async function second(url: URL, isAuto: boolean, { onAsked, headers, fetch }: ClientOptions): Promise<McpClient> {
  const client = new Client(INFO, {
    capabilities: onAsked === undefined ? {} : ELICITS,
    ...(isAuto ? { versionNegotiation: { mode: 'auto' } } : {}),
  });
  if (onAsked !== undefined)
    client.setRequestHandler('elicitation/create', async ({ params }) => (await onAsked(params as never)) as never);
  const more = { ...(headers && { requestInit: { headers } }), ...(fetch && { fetch }) };
  await client.connect(new StreamableHTTPClientTransport(url, { reconnectionOptions: RECONNECTS, ...more }));
  return {
    tools: async () => (await client.listTools()).tools as unknown as JsonObject[],
    call: async (args, { tool = 'scenario', signal, onProgress, meta } = {}) => {
      const params = { name: tool, arguments: argsOf(args), ...(meta && { _meta: meta }) };
      const options = { ...(signal && { signal }), ...(onProgress && { onprogress: onProgress }) };
      return (await client.callTool(params, options)) as unknown as ToolAnswer;
    },
    close: () => client.close(),
  };
}

async function first(url: URL, { onAsked, headers, fetch }: ClientOptions): Promise<McpClient> {
  const client = new FirstClient(INFO, { capabilities: onAsked === undefined ? {} : ELICITS });
  if (onAsked !== undefined)
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => (await onAsked(params as never)) as never);
  const more = { ...(headers && { requestInit: { headers } }), ...(fetch && { fetch }) };
  const transport = new FirstTransport(url, { reconnectionOptions: RECONNECTS, ...more });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return {
    tools: async () => (await client.listTools()).tools as unknown as JsonObject[],
    call: async (args, { tool = 'scenario', signal, onProgress, meta } = {}) => {
      const params = { name: tool, arguments: argsOf(args), ...(meta && { _meta: meta }) };
      const options = { ...(signal && { signal }), ...(onProgress && { onprogress: onProgress }) };
      return (await client.callTool(params, undefined, options)) as unknown as ToolAnswer;
    },
    close: () => client.close(),
  };
}

async function aiSdk(url: URL, { onAsked, headers }: ClientOptions): Promise<McpClient> {
  const client = await createMCPClient({
    transport: { type: 'http', url: url.href, ...(headers && { headers }) },
    ...(onAsked === undefined ? {} : { capabilities: { elicitation: {} } }),
  });
  if (onAsked !== undefined) {
    const { ElicitationRequestSchema } = await import('@ai-sdk/mcp');
    client.onElicitationRequest(
      ElicitationRequestSchema,
      async ({ params }) => (await onAsked(params as never)) as never,
    );
  }
  return {
    tools: async () => (await client.listTools()).tools as unknown as JsonObject[],
    call: async (args, { tool = 'scenario', signal } = {}) => {
      const tools = (await client.tools()) as Record<string, { execute: (args: unknown, options: unknown) => unknown }>;
      const options = { toolCallId: 'call', messages: [], ...(signal && { abortSignal: signal }) };
      return (await tools[tool]?.execute(argsOf(args), options)) as ToolAnswer;
    },
    close: () => client.close(),
  };
}

function argsOf(args: JsonObject | string): JsonObject {
  return typeof args === 'string' ? { input: args } : args;
}

type Connects = (url: URL, options: ClientOptions) => Promise<McpClient>;

const CLIENTS: Readonly<Record<ClientName, Connects>> = {
  'client 2.4, 2025-11-25': (url, options) => second(url, false, options),
  'client 2.4, auto': (url, options) => second(url, true, options),
  'sdk 1.32': first,
  '@ai-sdk/mcp': aiSdk,
};

export const CLIENT_NAMES: readonly ClientName[] = Object.keys(CLIENTS) as ClientName[];

export async function mcpClient(name: ClientName, url: URL, options: ClientOptions = {}): Promise<McpClient> {
  const client = await CLIENTS[name](url, options);
  onTestFinished(() => client.close());
  return client;
}

/** A message of the protocol 2025-11-25. @returns the response, whose body may be a stream. */
export function older(url: URL, message: JsonObject, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
}

/** Begins a session of that protocol. @returns its id. */
export async function olderSession(
  url: URL,
  capabilities: JsonObject = {},
  headers: Record<string, string> = {},
): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: INFO };
  const response = await older(url, { id: 0, method: 'initialize', params }, headers);
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

/** The messages of a stream, until it ends. */
export async function messagesIn(response: Response): Promise<readonly JsonObject[]> {
  const text = await response.text();
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data) as JsonObject);
}

/** A request of the protocol 2026-07-28, as a client writes it. @returns the result or the error. */
export async function modern(
  url: URL,
  method: string,
  params: JsonObject,
  {
    capabilities = {},
    headers = {},
    signal,
  }: { capabilities?: JsonObject; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<{ readonly status: number; readonly result?: JsonObject; readonly error?: JsonObject }> {
  const { _meta: meta, ...rest } = params;
  const named = params['name'] ?? params['taskId'];
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof named === 'string' ? { 'mcp-name': named } : {}),
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...rest,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': INFO,
          'io.modelcontextprotocol/clientCapabilities': capabilities,
          ...((meta ?? {}) as JsonObject),
        },
      },
    }),
    ...(signal && { signal }),
  });
  const text = await response.text();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const last = isStream
    ? text
        .match(/^data: (.+)$/gm)
        ?.at(-1)
        ?.slice('data: '.length)
    : text;
  return { status: response.status, ...JSON.parse(last || '{}') };
}
