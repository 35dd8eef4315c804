/** The routes of our own API as a table: what each takes and gives is said once, for the checks of requests and for OpenAPI. */
import type { Context } from 'hono';
import type { Json, JsonObject } from '#core';
import type { RunRecord } from '#journal';
import type { Run } from '#runtime';
import type { Action } from '../access.ts';
import type { PartContext, ServerEnv } from '../part.ts';
import type { Visit } from '../visit.ts';

/** A JSON Schema, and the type of what fits it. */
export interface Typed<T> {
  readonly schema: JsonObject;
  /** Never there: it carries the type. */
  readonly of?: T;
}

const names = new WeakMap<JsonObject, string>();

/** @param name under which OpenAPI has it among its components. Absent: it stands where it is used. */
export function typed<T>(schema: JsonObject, name?: string): Typed<T> {
  if (name !== undefined) names.set(schema, name);
  return { schema };
}

export function componentNameOf(schema: JsonObject): string | undefined {
  return names.get(schema);
}

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The names in a path such as `/runs/{run}`. */
type ParamsOf<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamsOf<Rest> : never;

/** A request that fits its route. */
export interface ApiRequest<P extends string = string, Q = object, B = unknown> {
  readonly visit: Visit;
  readonly params: Readonly<Record<P, string>>;
  readonly query: Q;
  readonly body: B;
  readonly part: PartContext;
  readonly context: Context<ServerEnv>;
  /** Where the API is, such as `/api`. */
  readonly path: string;
  /** Runs the answer through what clients may be told of errors that runs have recorded. */
  readonly tell: (value: unknown) => Json;
}

/** The run that the path names: the visitor may do with it what the route does. */
interface FoundRun {
  readonly run: Run;
  readonly record: RunRecord;
}

/** What a route gives when all is well. */
export type RouteReply<R> =
  | { readonly kind: 'json'; readonly json: Typed<R>; readonly status: 200 | 201 | 202; readonly also?: Typed<unknown> }
  | { readonly kind: 'events'; readonly event: Typed<unknown>; readonly page?: Typed<R> }
  | { readonly kind: 'bytes' }
  | { readonly kind: 'html' }
  | { readonly kind: 'none' };

interface Words {
  readonly tag: string;
  readonly summary: string;
  /** What the visitor must be allowed to do. Absent: anybody is answered, also who is not let in. */
  readonly action?: Action;
  /** Headers that the route looks at. */
  readonly headers?: readonly string[];
}

export interface ApiRoute extends Words {
  readonly method: Method;
  readonly path: string;
  readonly query: JsonObject | undefined;
  readonly body: JsonObject | undefined;
  /** True: without a body the route takes an empty object. */
  readonly isBodyOptional: boolean;
  readonly reply: RouteReply<unknown>;
  readonly handle: (asked: ApiRequest, found: FoundRun | undefined) => unknown;
}

interface Given<P extends string, Q, B, R> extends Words {
  readonly query?: Typed<Q>;
  readonly body?: Typed<B>;
  readonly isBodyOptional?: boolean;
  readonly reply: RouteReply<R>;
  /** Gives the value of the answer, or the response itself. */
  readonly handle: (
    asked: ApiRequest<ParamsOf<P>, Q, B>,
    found: 'run' extends ParamsOf<P> ? FoundRun : undefined,
  ) => Promise<R | Response> | R | Response;
}

/** @param at the method and the path, such as `get /runs/{run}`. With `{run}` in it the visitor's run is found first. */
export function route<const P extends string, R, Q = object, B = undefined>(
  at: `${Method} ${P}`,
  { query, body, isBodyOptional = false, handle, ...more }: Given<P, Q, B, R>,
): ApiRoute {
  const space = at.indexOf(' ');
  return {
    ...more,
    method: at.slice(0, space) as Method,
    path: at.slice(space + 1),
    query: query?.schema,
    body: body?.schema,
    isBodyOptional,
    // The mount gives what the schemas and the path say.
    handle: handle as unknown as ApiRoute['handle'],
  };
}

/** @param also what is answered with 202 in its place. */
export function jsonReply<R>(value: Typed<R>, status: 200 | 201 | 202 = 200, also?: Typed<unknown>): RouteReply<R> {
  return { kind: 'json', json: value, status, ...(also && { also }) };
}

export const none: RouteReply<undefined> = { kind: 'none' };
