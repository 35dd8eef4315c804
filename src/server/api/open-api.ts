/** The table of routes as OpenAPI 3.1. */
import { type Json, type JsonObject, setField } from '#core';
import { problemDocument } from './reply-shapes.ts';
import { type ApiRoute, componentNameOf, type RouteReply } from './route.ts';

/** Named schemas become components, and each place that has one becomes a reference. */
class Components {
  readonly schemas: Record<string, Json> = {};

  refer(schema: JsonObject): JsonObject {
    const name = componentNameOf(schema);
    if (name === undefined) return this.#inside(schema);
    if (!Object.hasOwn(this.schemas, name)) {
      setField(this.schemas, name, {});
      setField(this.schemas, name, this.#inside(schema));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  #inside(schema: JsonObject): JsonObject {
    return Object.fromEntries(Object.entries(schema).map(([key, part]) => [key, this.#part(part)]));
  }

  #part(part: Json): Json {
    if (Array.isArray(part)) return part.map((each) => this.#part(each));
    return typeof part === 'object' && part !== null ? this.refer(part as JsonObject) : part;
  }
}

export function openApi(routes: readonly ApiRoute[], path: string, version: string): JsonObject {
  const components = new Components();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const at = `${path}${route.path}`;
    paths[at] ??= {};
    paths[at][route.method] = operation(route, components);
  }
  const problem = {
    description: 'Why the request was refused, with our code.',
    content: { 'application/problem+json': { schema: components.refer(problemDocument.schema) } },
  };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pilotage',
      version,
      description: 'Durable agents: runs, sessions, what waits, schedules and events.',
    },
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas: components.schemas, responses: { Problem: problem } },
  };
}

function operation(route: ApiRoute, components: Components): JsonObject {
  const { method, path, tag, summary, body, isBodyOptional } = route;
  const named = path
    .replace(/\{|\}/g, '')
    .split('/')
    .filter((part) => part !== '');
  const content = body && { 'application/json': { schema: components.refer(body) } };
  return {
    operationId: [method, ...named.map((part) => part.replace(/\W+/g, '_'))].join('_'),
    tags: [tag],
    summary,
    parameters: parametersOf(route),
    ...(content && { requestBody: { required: !isBodyOptional, content } }),
    responses: { ...responsesOf(route.reply, components), default: { $ref: '#/components/responses/Problem' } },
  };
}

function parametersOf({ path, query, headers = [] }: ApiRoute): Json {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true, schema: { type: 'string' } },
  }));
  const { properties = {}, required = [] } = (query ?? {}) as { properties?: JsonObject; required?: readonly string[] };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    ...{ name, in: 'query', required: required.includes(name), schema },
  }));
  const inHeader = headers
    .filter((name) => name !== 'Accept')
    .map((name) => ({ name, in: 'header', required: false, schema: { type: 'string' } }));
  return [...inPath, ...inQuery, ...inHeader];
}

function responsesOf(reply: RouteReply<unknown>, components: Components): JsonObject {
  const asJson = (schema: JsonObject): JsonObject => ({ 'application/json': { schema: components.refer(schema) } });
  switch (reply.kind) {
    case 'none':
      return { 204: { description: 'It is done.' } };
    case 'html':
      return { 200: { description: 'A page.', content: { 'text/html': { schema: { type: 'string' } } } } };
    case 'bytes': {
      const content = { '*/*': { schema: { type: 'string', format: 'binary' } } };
      return { 200: { description: 'The bytes.', content }, 206: { description: 'A part of them.', content } };
    }
    case 'events': {
      const each = components.refer(reply.event.schema);
      const stream = {
        'text/event-stream': { schema: { type: 'string', description: 'data: of this shape.' }, 'x-event': each },
      };
      const page = reply.page === undefined ? {} : asJson(reply.page.schema);
      return {
        200: { description: 'The events.', content: { ...stream, ...page } },
        204: { description: 'Nothing more comes.' },
      };
    }
    case 'json': {
      const { json, status, also } = reply;
      const later = also && { 202: { description: 'Not yet.', content: asJson(also.schema) } };
      return { [status]: { description: 'It is done.', content: asJson(json.schema) }, ...later };
    }
    default:
      return reply satisfies never;
  }
}
