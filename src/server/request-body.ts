/** The body of a request, as JSON that fits a schema. */
import type { Context } from 'hono';
import type { Json, JsonObject } from '#core';
import { explainSchemaError, firstIssues, schemaErrors } from '#schema';
import { RequestRefused } from './problem.ts';

/**
 * @param schema the JSON Schema of what the route takes. `T` is the type of what fits it.
 * @throws RequestRefused `request_invalid` for a body that is not JSON, or does not fit.
 */
export async function bodyOf<T>(context: Context, schema: JsonObject): Promise<T> {
  const text = await textOf(context);
  let body: Json;
  try {
    body = JSON.parse(text) as Json;
  } catch {
    throw new RequestRefused('request_invalid', 'The body of the request must be JSON.');
  }
  assertNotDeep(body, text);
  assertFits(body, schema, 'The body of the request');
  return body as T;
}

const MOST_LEVELS = 1_000;

/** What is nested deeper is parsed, but nothing can be written of it. @param text of which it was parsed. @throws RequestRefused `request_invalid`. */
export function assertNotDeep(body: Json, text: string): void {
  // Each level takes two characters.
  if (text.length < 2 * MOST_LEVELS) return;
  const isBranch = (value: Json): value is JsonObject | Json[] => typeof value === 'object' && value !== null;
  let level = [body].filter(isBranch);
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === MOST_LEVELS)
      throw new RequestRefused(
        'request_invalid',
        `The body of the request is nested deeper than ${MOST_LEVELS} levels.`,
      );
    level = level.flatMap((value) => Object.values(value).filter(isBranch));
  }
}

/** @throws RequestRefused `request_invalid` for a body that breaks off. */
export async function textOf(context: Context): Promise<string> {
  try {
    return await context.req.text();
  } catch {
    throw new RequestRefused('request_invalid', 'The body of the request broke off.');
  }
}

/** @throws RequestRefused `request_invalid`. */
export function assertFits(value: Json, schema: JsonObject, what: string): void {
  const errors = schemaErrors(schema, value);
  if (errors.length > 0)
    throw new RequestRefused('request_invalid', `${what} does not fit: ${firstIssues(errors.map(explainSchemaError))}`);
}

/** The bytes of a file that comes in a message, as base64 in either of its alphabets. @throws RequestRefused `request_invalid` for what is not base64. */
export function fileBytes(base64: string): Uint8Array {
  if (!/^[A-Za-z0-9+/_\s-]*(?:=\s*){0,2}$/.test(base64))
    throw new RequestRefused('request_invalid', 'The data of a file must be base64.');
  return new Uint8Array(Buffer.from(base64, 'base64'));
}
