/** Errors in the two forms of A2A: JSON-RPC, and `google.rpc.Status` over HTTP. */
import { type JsonObject, PilotageError } from '#core';
import { RequestRefused, statusOf, toldError } from '../problem.ts';

interface Kind {
  readonly code: number;
  readonly http: number;
  readonly status: string;
}

export type A2aReason =
  | 'PARSE_ERROR'
  | 'INVALID_REQUEST'
  | 'METHOD_NOT_FOUND'
  | 'INVALID_PARAMS'
  | 'INTERNAL_ERROR'
  | 'TASK_NOT_FOUND'
  | 'TASK_NOT_CANCELABLE'
  | 'PUSH_NOTIFICATION_NOT_SUPPORTED'
  | 'UNSUPPORTED_OPERATION'
  | 'CONTENT_TYPE_NOT_SUPPORTED'
  | 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'
  | 'VERSION_NOT_SUPPORTED';

const KINDS: Readonly<Record<A2aReason, Kind>> = {
  PARSE_ERROR: { code: -32_700, http: 400, status: 'INVALID_ARGUMENT' },
  INVALID_REQUEST: { code: -32_600, http: 400, status: 'INVALID_ARGUMENT' },
  METHOD_NOT_FOUND: { code: -32_601, http: 404, status: 'UNIMPLEMENTED' },
  INVALID_PARAMS: { code: -32_602, http: 400, status: 'INVALID_ARGUMENT' },
  INTERNAL_ERROR: { code: -32_603, http: 500, status: 'INTERNAL' },
  TASK_NOT_FOUND: { code: -32_001, http: 404, status: 'NOT_FOUND' },
  TASK_NOT_CANCELABLE: { code: -32_002, http: 400, status: 'FAILED_PRECONDITION' },
  PUSH_NOTIFICATION_NOT_SUPPORTED: { code: -32_003, http: 400, status: 'FAILED_PRECONDITION' },
  UNSUPPORTED_OPERATION: { code: -32_004, http: 400, status: 'FAILED_PRECONDITION' },
  CONTENT_TYPE_NOT_SUPPORTED: { code: -32_005, http: 400, status: 'INVALID_ARGUMENT' },
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: { code: -32_007, http: 400, status: 'FAILED_PRECONDITION' },
  VERSION_NOT_SUPPORTED: { code: -32_009, http: 400, status: 'FAILED_PRECONDITION' },
};

/** The request is answered with an error of the protocol. Clients are sent its message. */
export class A2aRefused extends Error {
  override readonly name: string = 'A2aRefused';
  readonly reason: A2aReason;

  constructor(reason: A2aReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

interface Told extends Kind {
  readonly reason: string;
  readonly message: string;
}

/** A thrown error in the form of the protocol. An error that is not of the protocol keeps its HTTP status and reveals nothing of the server. */
function told(error: unknown): Told {
  if (error instanceof A2aRefused) return { ...KINDS[error.reason], reason: error.reason, message: error.message };
  const { code, message } = toldError(error);
  const reason = code.toUpperCase();
  if (PilotageError.is(error, 'run_not_found'))
    return { ...KINDS.TASK_NOT_FOUND, reason: 'TASK_NOT_FOUND', message: 'There is no such task.' };
  if (PilotageError.is(error, 'run_ended'))
    return { ...KINDS.UNSUPPORTED_OPERATION, reason: 'UNSUPPORTED_OPERATION', message };
  const http = statusOf(error);
  if (error instanceof RequestRefused && http === 400)
    return { ...KINDS.INVALID_PARAMS, reason: 'INVALID_PARAMS', message };
  if (http >= 500) return { ...KINDS.INTERNAL_ERROR, http, reason, message };
  return {
    code: http === 403 || http === 429 ? -32_000 : -32_602,
    http,
    status: STATUS[http] ?? 'UNKNOWN',
    reason,
    message,
  };
}

const STATUS: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  410: 'FAILED_PRECONDITION',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
};

/** Whether the error is the server's own fault, so that the program has to be told. */
export function isFault(error: unknown): boolean {
  return !(error instanceof A2aRefused) && statusOf(error) >= 500;
}

function infoOf(reason: string): JsonObject {
  return { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' };
}

/** The `error` of a JSON-RPC response. */
export function rpcError(error: unknown): JsonObject {
  const { code, message, reason } = told(error);
  return { code, message, data: [infoOf(reason)] };
}

/** The body and status of an error over HTTP+JSON. */
export function restError(error: unknown): { readonly body: JsonObject; readonly status: number } {
  const { http, status, message, reason } = told(error);
  return { status: http, body: { error: { code: http, status, message, details: [infoOf(reason)] } } };
}
