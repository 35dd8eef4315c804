/** Messages of JSON-RPC over HTTP that are answered before the MCP package sees them. */
import { isJsonObject, type Json, type JsonObject } from '#core';
import { statusOf, toldError } from '../problem.ts';

export type RequestId = string | number;

/** A request, a notification, or the answer to a request of the server. */
export interface RpcMessage {
  readonly id: RequestId | undefined;
  readonly method: string | undefined;
  readonly params: JsonObject;
  readonly result: Json | undefined;
  readonly error: Json | undefined;
}

export const PARSE_ERROR = -32_700;
export const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;
export const SESSION_NOT_FOUND = -32_001;
export const METHOD_NOT_ALLOWED = -32_000;
export const HEADER_MISMATCH = -32_020;
export const MISSING_CAPABILITY = -32_021;

/** @returns `undefined` when the body is not a single message. */
export function messageIn(body: Json): RpcMessage | undefined {
  if (!isJsonObject(body)) return undefined;
  const { id, method, params = {}, result, error } = body;
  return {
    id: typeof id === 'string' || typeof id === 'number' ? id : undefined,
    method: typeof method === 'string' ? method : undefined,
    params: isJsonObject(params) ? params : {},
    result,
    error,
  };
}

export function resultMessage(id: RequestId, result: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id, result };
}

export function errorMessage(id: RequestId | null, code: number, message: string, data?: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } };
}

/** @param onFault is called with errors whose details the client is not told. */
export function thrownMessage(id: RequestId | null, error: unknown, onFault: (error: unknown) => void): JsonObject {
  const isOurs = statusOf(error) >= 500;
  if (isOurs) onFault(error);
  const { code, message } = toldError(error);
  return errorMessage(id, isOurs ? INTERNAL_ERROR : INVALID_PARAMS, message, { code });
}

export function jsonResponse(body: JsonObject, status = 200, headers: Record<string, string> = {}): Response {
  const all = { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers };
  return new Response(JSON.stringify(body), { status, headers: all });
}
