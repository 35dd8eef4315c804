/** Puts the table of routes on the server: checks what each takes, and answers with what its handler gives. */
import type { Context, Hono } from 'hono';
import { isJsonObject, type Json, type JsonObject } from '#core';
import type { PartContext, ServerEnv } from '../part.ts';
import { type ErrorText, plainErrorText, RequestRefused } from '../problem.ts';
import { assertFits, bodyOf, textOf } from '../request-body.ts';
import { told } from '../told.ts';
import type { ApiRequest, ApiRoute } from './route.ts';

/** What no store has among its ids. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;
const MAX_PARAM = 512;

export function mount(app: Hono<ServerEnv>, route: ApiRoute, path: string, part: PartContext): void {
  const at = `${path}${route.path.replace(/\{(\w+)\}/g, ':$1')}`;
  app.on(route.method.toUpperCase(), at, async (context) => {
    const visit = context.get('visit');
    const tell = teller(part.errorText);
    const params = paramsOf(context);
    // Probes and pages of others may have a query of their own.
    const isAnybodys = route.action === undefined && route.query === undefined;
    const query = isAnybodys ? {} : queryOf(context, route.query);
    const { run: id } = params;
    // Whoever may not see the run is not told whether the body fits.
    const found = id === undefined ? undefined : await visit.run(id, route.action);
    if (found === undefined && params['session'] === undefined && route.action !== undefined)
      await visit.must(route.action);
    const body = route.body === undefined ? undefined : await readBody(context, route);
    const asked: ApiRequest = { visit, params, query, body, part, context, path, tell };
    const answer = await route.handle(asked, found);
    return answer instanceof Response ? answer : answerOf(route, tell(answer));
  });
}

function teller(errorText: ErrorText = plainErrorText): (value: unknown) => Json {
  return (value) => told(value === undefined ? null : (value as Json), errorText);
}

function answerOf({ reply }: ApiRoute, value: Json): Response {
  if (reply.kind === 'none') return new Response(null, { status: 204 });
  const status = reply.kind === 'json' ? reply.status : 200;
  return jsonAnswer(value, status);
}

export function jsonAnswer(value: Json, status: number, headers: Readonly<Record<string, string>> = {}): Response {
  const own = { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers };
  return new Response(JSON.stringify(value), { status, headers: own });
}

/** @throws RequestRefused `request_invalid`. */
function paramsOf(context: Context<ServerEnv>): Readonly<Record<string, string>> {
  const params: Record<string, string> = context.req.param();
  for (const [name, value] of Object.entries(params)) {
    const isFit = value.trim() !== '' && value.length <= MAX_PARAM && !UNFIT.test(value);
    if (!isFit) throw new RequestRefused('request_invalid', `The path has no ${name} that there can be.`);
  }
  return params;
}

/**
 * Texts of the query in the types that the schema says: a list is a name that comes several times.
 * @throws RequestRefused `request_invalid`.
 */
function queryOf(context: Context<ServerEnv>, schema: JsonObject | undefined): JsonObject {
  const given = new URL(context.req.url).searchParams;
  const wanted = schema?.['properties'];
  const properties = isJsonObject(wanted) ? wanted : {};
  const read: Record<string, Json> = {};
  for (const name of new Set(given.keys())) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isJsonObject(property)) {
      const known = Object.keys(properties).join(', ') || 'none';
      throw new RequestRefused('request_invalid', `${name.slice(0, 64)} is not in the query of this route: ${known}.`);
    }
    const texts = given.getAll(name);
    if (property['type'] === 'array') read[name] = texts;
    else if (texts.length > 1) throw new RequestRefused('request_invalid', `The query has ${name} more than once.`);
    else read[name] = readText(texts[0] ?? '', property['type']);
  }
  if (schema !== undefined) assertFits(read, schema, 'The query of the request');
  for (const text of given.values())
    if (UNFIT.test(text)) throw new RequestRefused('request_invalid', 'The query has a character that no text has.');
  return read;
}

function readText(text: string, type: Json | undefined): Json {
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

async function readBody(context: Context<ServerEnv>, { body = {}, isBodyOptional }: ApiRoute): Promise<unknown> {
  if (!isBodyOptional) return bodyOf(context, body);
  const text = await textOf(context);
  return text.trim() === '' ? {} : bodyOf(context, body);
}
