/** The routes of MCP. They tell requests of the older protocols from those of 2026-07-28. */
import type { McpHttpHandler, McpRequestContext, Server } from '@modelcontextprotocol/server';
import type { Context } from 'hono';
import { assertOptions, isJsonObject, type Json, type JsonObject, type OptionShape, PilotageError } from '#core';
import type { Part, ServerEnv } from '../part.ts';
import type { Visit } from '../visit.ts';
import { AnswerNews } from './answer-news.ts';
import { plainWay, type ResultWords } from './answers.ts';
import { type McpAuthorization, ProtectedResource } from './authorization.ts';
import type { Ground } from './call.ts';
import { errorMessage, jsonResponse, messageIn, PARSE_ERROR, type RpcMessage } from './json-rpc.ts';
import { Legacy, SESSION_HEADER } from './legacy.ts';
import { type Asking, answerToolCall, boundToCall, protocolError } from './modern.ts';
import { sdk } from './sdk.ts';
import { Seal } from './seal.ts';
import { TASKS_EXTENSION, taskResponse } from './tasks.ts';
import { LISTED_RUN_RESULT, type McpAgent, type ServedTool, servedTools } from './tools.ts';

export interface McpOptions {
  /**
   * Signs what clients keep for the server: the state of calls that ask somebody, and sessions of the older protocols. At least 32 bytes, the same in all
   * processes. Of several secrets the first one signs, and all are accepted.
   */
  readonly secret: string | readonly string[];
  /** The path of the server. Default `/mcp`. */
  readonly path?: string;
  /** Who gives clients their tokens (OAuth): clients that are not let in are told so. Default: they are told nothing, and have to know their token. */
  readonly authorization?: McpAuthorization;
  /** The agents that are offered, each by its name or with options. Default: all agents of the runtime. */
  readonly agents?: readonly (string | McpAgent)[];
  /** The name of the server. Default `pilotage`. */
  readonly name?: string;
  /** How long a question can be answered through the call that asked it, in milliseconds. Default 7 days. The run waits as long as it takes. */
  readonly holdsMs?: number;
  /**
   * What happens to the run of a call when the client closes the stream of the call. For the protocol 2026-07-28 that is a cancellation. A call that is a
   * task is never cancelled by it. Default `cancel`.
   */
  readonly onClosedCall?: 'cancel' | 'leave';
  /** Tells a client that cannot be asked how a person answers. Default: by the command `pilotage approve`. */
  readonly howToAnswer?: ResultWords['howToAnswer'];
}

const OPTIONS: OptionShape<McpOptions> = {
  secret: 'any',
  path: 'text?',
  authorization: 'object?',
  agents: 'list?',
  name: 'text?',
  holdsMs: 'count?',
  onClosedCall: 'text?',
  howToAnswer: 'function?',
};
const HOLDS_MS = 7 * 86_400_000;
const VERSION = '1';

/** @throws PilotageError `invalid_config`; `agent_unknown` when the handler is made. */
export function mcp(options: McpOptions): Part {
  assertOptions('mcp', options, OPTIONS);
  const { path = '/mcp', agents, name = 'pilotage', secret, holdsMs = HOLDS_MS, howToAnswer = plainWay } = options;
  const { onClosedCall = 'cancel', authorization } = options;
  if (!path.startsWith('/') || !['cancel', 'leave'].includes(onClosedCall)) {
    const message = 'mcp takes a path such as /mcp, and onClosedCall as cancel or leave.';
    throw new PilotageError('invalid_config', message);
  }
  const seal = new Seal(typeof secret === 'string' ? [secret] : secret);
  const resource = authorization && new ProtectedResource(authorization, path);
  return {
    name: 'mcp',
    ...(resource && { open: resource.paths, refused: resource.refused }),
    routes: (app, context) => {
      if (resource !== undefined) for (const each of resource.paths) app.get(each, () => resource.metadata());
      const tools = servedTools(context.runtime, agents);
      const served = new McpServing({ ...context, seal, tools, holdsMs, onClosedCall, howToAnswer }, name);
      app.all(path, (request) => served.response(request));
    },
  };
}

class McpServing {
  readonly #ground: Ground;
  readonly #name: string;
  readonly #legacy: Legacy;
  /** What the package's handlers need to know beside a request. */
  readonly #askings = new WeakMap<Request, Asking>();
  /** Answers calls as streams, which are kept open, and everything else as JSON. */
  readonly #calls: McpHttpHandler;
  readonly #others: McpHttpHandler;
  readonly #older: ReturnType<ReturnType<typeof sdk>['legacyStatelessFallback']>;

  constructor(ground: Ground, name: string) {
    this.#ground = ground;
    this.#name = name;
    this.#legacy = new Legacy(ground, new AnswerNews());
    const factory = (about: McpRequestContext): Server => this.#server(about);
    // Malformed requests are the fault of the client, which is told of them.
    this.#calls = sdk().createMcpHandler(factory, { legacy: 'reject', responseMode: 'sse' });
    this.#others = sdk().createMcpHandler(factory, { legacy: 'reject' });
    this.#older = sdk().legacyStatelessFallback(factory);
  }

  async response(context: Context<ServerEnv>): Promise<Response> {
    const { raw } = context.req;
    const visit = context.get('visit');
    if (raw.method !== 'POST') return this.#withoutBody(visit, raw);
    if (!sdk().isJsonContentType(raw.headers.get('content-type'))) return this.#others.fetch(raw);
    const body = jsonIn(await context.req.text());
    if (body === undefined)
      return jsonResponse(errorMessage(null, PARSE_ERROR, 'The body of the request must be JSON.'), 400);
    const message = messageIn(body);
    const asking: Asking = { visit, params: message?.params ?? {}, isClosing: () => isClosing(context.env) };
    this.#askings.set(raw, asking);
    if (await sdk().isLegacyRequest(raw, body)) return this.#legacyResponse(visit, raw, body, message);
    const task = message && (await taskResponse(this.#ground, asking, raw, message, body));
    if (task !== undefined) return task;
    const handler = message?.method === 'tools/call' ? this.#calls : this.#others;
    return handler.fetch(raw, { parsedBody: body });
  }

  async #withoutBody(visit: Visit, request: Request): Promise<Response> {
    const rest = request.method === 'GET' ? await this.#legacy.response(visit, request, undefined) : undefined;
    return rest ?? this.#older(request);
  }

  async #legacyResponse(
    visit: Visit,
    request: Request,
    body: Json,
    message: RpcMessage | undefined,
  ): Promise<Response> {
    const begins = message?.method === 'initialize';
    const own = begins ? undefined : await this.#legacy.response(visit, request, message);
    if (own !== undefined) return own;
    const answer = await this.#older(request, { parsedBody: body });
    if (!begins || !answer.ok) return answer;
    const headers = new Headers(answer.headers);
    headers.set(SESSION_HEADER, this.#legacy.sessionFor(visit, message.params));
    return new Response(answer.body, { status: answer.status, headers });
  }

  /** Makes the package's server, of which each request needs one of its own. */
  #server({ requestInfo, era }: McpRequestContext): Server {
    const asking = requestInfo && this.#askings.get(requestInfo);
    if (asking === undefined) throw new Error('The request is not one of ours.');
    const { seal } = this.#ground;
    const extensions = era === 'modern' ? { extensions: { [TASKS_EXTENSION]: {} } } : {};
    const server = new (sdk().Server)(
      { name: this.#name, version: VERSION },
      {
        capabilities: { tools: {}, ...extensions },
        // The list depends on the visitor.
        cacheHints: { 'tools/list': { ttlMs: 0, cacheScope: 'private' } },
        requestState: { verify: (state) => opened(seal, asking, state) },
      },
    );
    server.setRequestHandler('tools/list', async () => ({ tools: (await this.#listed(asking.visit)) as never }));
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      // From clients of the older protocols only batches of calls come here. They cannot be asked, and a closed connection does not cancel them.
      const own = era === 'modern' ? asking : { ...asking, params: params as JsonObject, isClosing: () => true };
      return (await answerToolCall(this.#ground, own, context)) as never;
    });
    return server;
  }

  async #listed(visit: Visit): Promise<readonly JsonObject[]> {
    const { tools, onFault } = this.#ground;
    try {
      const may = await Promise.all(tools.map(({ agent }: ServedTool) => visit.may('start', { agent })));
      return [...tools.filter((_, index) => may[index]).map(({ listed }) => listed), LISTED_RUN_RESULT];
    } catch (error) {
      throw protocolError(error, onFault);
    }
  }
}

async function opened(seal: Seal, asking: Asking, state: string): Promise<JsonObject> {
  const content = seal.open('state', boundToCall(asking), state);
  if (content === undefined || !isJsonObject(content)) throw new Error('It does not open.');
  return content;
}

function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** What `serve` gives beside the request. */
function isClosing(env: unknown): boolean {
  return ((env ?? {}) as { readonly closing?: AbortSignal }).closing?.aborted === true;
}
