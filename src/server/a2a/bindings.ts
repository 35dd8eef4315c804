/** The two bindings of A2A: JSON-RPC at one address, and HTTP+JSON with an address for each operation. */
import type { Context, Hono } from 'hono';
import { isJsonObject, type Json, type JsonObject } from '#core';
import type { PartContext, ServerEnv } from '../part.ts';
import { assertNotDeep } from '../request-body.ts';
import type { A2aAsked, OperationDeps } from './asked.ts';
import { A2aRefused, isFault, restError, rpcError } from './errors.ts';
import { legacyMethod } from './legacy.ts';
import { checked, OPERATIONS, STREAMS } from './operations.ts';
import {
  type A2aVersion,
  LEGACY_VERSION,
  MEDIA_TYPE,
  type OperationName,
  PROTOCOL_VERSION,
  type StreamName,
  type StreamResponse,
} from './wire.ts';

type Request = Context<ServerEnv>;

export interface A2aBinding {
  readonly path: string;
  readonly deps: (request: Request) => OperationDeps;
  readonly context: PartContext;
}

export function jsonRpc(app: Hono<ServerEnv>, binding: A2aBinding): void {
  app.post(binding.path, async (request) => {
    let id: Json = null;
    const failed = (error: unknown): Response => {
      if (isFault(error)) binding.context.onFault(error);
      return request.json({ jsonrpc: '2.0', id, error: rpcError(error) });
    };
    try {
      const call = await rpcCallIn(request);
      id = call.id;
      const { version, method, params, told } = spoken(request, call);
      const asked = { ...askedIn(binding, request, params), version };
      if (isStream(method))
        return await streamed(asked, method, {
          event: (event) => ({ data: JSON.stringify({ jsonrpc: '2.0', id, result: told(event) }) }),
          error: (error) => ({ data: JSON.stringify({ jsonrpc: '2.0', id, error: rpcError(error) }) }),
        });
      if (!isOperation(method)) throw new A2aRefused('METHOD_NOT_FOUND', `There is no method ${method.slice(0, 100)}.`);
      const result = told((await checked(OPERATIONS[method], asked)(asked)) ?? null);
      return request.json({ jsonrpc: '2.0', id, result: result as object | null });
    } catch (error) {
      return failed(error);
    }
  });
}

interface RpcCall {
  readonly id: Json;
  readonly method: string;
  readonly params: JsonObject;
}

async function rpcCallIn(request: Request): Promise<RpcCall> {
  assertJson(request);
  const body = parsed(await request.req.text());
  if (!isJsonObject(body)) throw new A2aRefused('INVALID_REQUEST', 'A request is one object of JSON-RPC 2.0.');
  const { jsonrpc, method, params = {}, id } = body;
  if (jsonrpc !== '2.0' || typeof method !== 'string' || (typeof id !== 'string' && typeof id !== 'number'))
    throw new A2aRefused('INVALID_REQUEST', 'A request has jsonrpc "2.0", a method, and an id.');
  if (!isJsonObject(params)) throw new A2aRefused('INVALID_PARAMS', 'params is an object.');
  return { id, method, params };
}

interface Spoken extends Pick<RpcCall, 'method' | 'params'> {
  readonly version: A2aVersion;
  /** What 1.0 answers, in the words of the version. */
  readonly told: (result: unknown) => unknown;
}

/** The call in the words of 1.0. */
function spoken(request: Request, { method, params }: RpcCall): Spoken {
  const version = versionIn(request);
  if (version === PROTOCOL_VERSION) return { version, method, params, told: (result) => result };
  const legacy = legacyMethod(method);
  if (legacy !== undefined) return { version, method: legacy.name, params: legacy.params(params), told: legacy.result };
  if (isStream(method) || isOperation(method)) throw notSpoken(request, `has no method ${method}`);
  throw new A2aRefused('METHOD_NOT_FOUND', `There is no method ${method.slice(0, 100)}.`);
}

/** The routes of HTTP+JSON, each also below the name of the visitor's tenant. */
export function rest(app: Hono<ServerEnv>, binding: A2aBinding): void {
  restAt(app, binding, binding.path);
  restAt(app, binding, `${binding.path}/:tenant`);
}

/** The parameter `:id` of a task may end with a verb such as `:cancel`. */
function restAt(app: Hono<ServerEnv>, binding: A2aBinding, path: string): void {
  const answers = (name: OperationName, params: (request: Request) => JsonObject | Promise<JsonObject>) =>
    answering(binding, async (request) => {
      const asked = restAsked(binding, request, await params(request));
      return restJson((await checked(OPERATIONS[name], asked)(asked)) ?? {});
    });
  const streams = (name: StreamName, params: (request: Request) => JsonObject | Promise<JsonObject>) =>
    answering(binding, async (request) => restStream(binding, request, name, await params(request)));
  const configs = `${path}/tasks/:task/pushNotificationConfigs`;
  const placeOf = ({ req }: Request): JsonObject => ({ taskId: req.param('task') ?? '', id: req.param('id') ?? '' });

  app.post(`${path}/message:send`, answers('SendMessage', bodyIn));
  app.post(`${path}/message:stream`, streams('SendStreamingMessage', bodyIn));
  app.get(`${path}/tasks`, answers('ListTasks', listingIn));
  app.post(
    configs,
    answers('CreateTaskPushNotificationConfig', async (request) => ({
      ...(await bodyIn(request)),
      taskId: request.req.param('task') ?? '',
    })),
  );
  app.get(configs, answers('ListTaskPushNotificationConfigs', placeOf));
  app.get(`${configs}/:id`, answers('GetTaskPushNotificationConfig', placeOf));
  app.delete(`${configs}/:id`, answers('DeleteTaskPushNotificationConfig', placeOf));
  app.get(
    `${path}/extendedAgentCard`,
    answers('GetExtendedAgentCard', () => ({})),
  );
  app.on(
    ['GET', 'POST'],
    `${path}/tasks/:id`,
    answering(binding, (request) => ofTask(binding, request)),
  );
}

/** `/tasks/{id}`, `/tasks/{id}:cancel`, `/tasks/{id}:subscribe`. */
async function ofTask(binding: A2aBinding, request: Request): Promise<Response> {
  const { method } = request.req;
  const given = request.req.param('id') ?? '';
  const [, id = given, verb = ''] = /^(.*):(cancel|subscribe)$/s.exec(given) ?? [];
  if (verb === 'subscribe') return restStream(binding, request, 'SubscribeToTask', { id });
  const name =
    verb === 'cancel' && method === 'POST' ? 'CancelTask' : verb === '' && method === 'GET' ? 'GetTask' : undefined;
  if (name === undefined) throw new A2aRefused('METHOD_NOT_FOUND', 'Nothing answers this method here.');
  const length = request.req.query('historyLength');
  const asked = restAsked(binding, request, { id, ...(length === undefined ? {} : { historyLength: Number(length) }) });
  return restJson(await checked(OPERATIONS[name], asked)(asked));
}

function restStream(binding: A2aBinding, request: Request, name: StreamName, params: JsonObject): Promise<Response> {
  return streamed(restAsked(binding, request, params), name, {
    event: (data) => ({ data: JSON.stringify(data) }),
    error: (error) => ({ event: 'error', data: JSON.stringify(restError(error).body) }),
  });
}

function answering(binding: A2aBinding, answer: (request: Request) => Promise<Response>) {
  return async (request: Request): Promise<Response> => {
    try {
      if (versionIn(request) !== PROTOCOL_VERSION) throw notSpoken(request, 'is not spoken over HTTP+JSON');
      return await answer(request);
    } catch (error) {
      if (isFault(error)) binding.context.onFault(error);
      const { body, status } = restError(error);
      return restJson(body, status);
    }
  };
}

interface Framing {
  event(data: StreamResponse): { readonly data: string };
  error(error: unknown): { readonly event?: string; readonly data: string };
}

async function streamed(asked: A2aAsked, name: StreamName, framing: Framing): Promise<Response> {
  const events = await checked(STREAMS[name], asked)(asked);
  const { visit } = asked;
  return visit.stream(
    async function* (signal) {
      for await (const event of events(signal)) yield framing.event(event);
    },
    { onError: (error) => framing.error(error) },
  );
}

function askedIn({ deps, context: { errorText } }: A2aBinding, request: Request, params: JsonObject): A2aAsked {
  const visit = request.get('visit');
  return { visit, runs: visit, errorText, deps: deps(request), version: PROTOCOL_VERSION, params };
}

function restAsked(binding: A2aBinding, request: Request, params: JsonObject): A2aAsked {
  const tenant = request.req.param('tenant');
  return askedIn(binding, request, tenant === undefined ? params : { ...params, tenant });
}

function restJson(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': MEDIA_TYPE } });
}

async function bodyIn(request: Request): Promise<JsonObject> {
  assertJson(request);
  const body = parsed(await request.req.text());
  if (isJsonObject(body)) return body;
  throw new A2aRefused('INVALID_PARAMS', 'The body of the request is a JSON object.');
}

function listingIn({ req }: Request): JsonObject {
  const { pageSize, historyLength, includeArtifacts, ...rest } = req.query();
  return {
    ...rest,
    ...(pageSize === undefined ? {} : { pageSize: Number(pageSize) }),
    ...(historyLength === undefined ? {} : { historyLength: Number(historyLength) }),
    ...(includeArtifacts === undefined ? {} : { includeArtifacts: includeArtifacts === 'true' }),
  };
}

function parsed(text: string): Json {
  let body: Json;
  try {
    body = JSON.parse(text) as Json;
  } catch {
    throw new A2aRefused('PARSE_ERROR', 'The body of the request must be JSON.');
  }
  assertNotDeep(body, text);
  return body;
}

/** By the specification, a client that does not send the header speaks 0.3. @throws A2aRefused for a version that is not spoken here. */
function versionIn(request: Request): A2aVersion {
  const version = versionSaid(request);
  if (/^1\.0(\.\d+)?$/.test(version)) return PROTOCOL_VERSION;
  if (/^(0\.3(\.\d+)?)?$/.test(version)) return LEGACY_VERSION;
  throw notSpoken(request, 'is not spoken here');
}

function versionSaid({ req }: Request): string {
  return (req.header('a2a-version') ?? req.query('A2A-Version') ?? '').trim();
}

function notSpoken(request: Request, why: string): A2aRefused {
  const version = versionSaid(request);
  const asked = version === '' ? '0.3 (there is no header A2A-Version)' : version.slice(0, 20);
  return new A2aRefused('VERSION_NOT_SUPPORTED', `A2A ${asked} ${why}. Speak 1.0, with the header A2A-Version: 1.0.`);
}

function assertJson({ req }: Request): void {
  const type = req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
  if (type === 'application/json' || type === MEDIA_TYPE) return;
  throw new A2aRefused('CONTENT_TYPE_NOT_SUPPORTED', `The body of a request is application/json or ${MEDIA_TYPE}.`);
}

function isStream(method: string): method is StreamName {
  return Object.hasOwn(STREAMS, method);
}

function isOperation(method: string): method is OperationName {
  return Object.hasOwn(OPERATIONS, method);
}
