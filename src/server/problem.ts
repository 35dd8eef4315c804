/** Errors as clients are told of them: problem details (RFC 9457) with Pilotage's code, and never a stack, a path or a key. */
import { type ErrorCode, type ErrorData, type JsonObject, PilotageError } from '#core';

/** Makes the text about an error that a client shows to a person. */
export type ErrorText = (error: ErrorData) => string;

/** The codes of requests that are refused before the runtime is asked, with their statuses. */
const REFUSALS = {
  request_invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  route_unknown: 404,
  request_too_large: 413,
  streams_full: 429,
} as const;

export type RefusalCode = keyof typeof REFUSALS;

/** The server does not take the request. Clients are sent the message and the data. */
export class RequestRefused extends Error {
  override readonly name: string = 'RequestRefused';
  readonly code: RefusalCode;
  readonly data: JsonObject | undefined;

  constructor(code: RefusalCode, message: string, data?: JsonObject) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

const STATUS: Partial<Record<ErrorCode, number>> = {
  unknown_control_type: 400,
  scope_mismatch: 403,
  scope_invalid: 403,
  approver_refused: 403,
  run_not_found: 404,
  pause_not_found: 404,
  call_not_found: 404,
  task_not_found: 404,
  schedule_not_found: 404,
  artifact_not_found: 404,
  agent_unknown: 404,
  tool_not_found: 404,
  run_ended: 409,
  run_changed: 409,
  run_unwound: 409,
  run_paused: 409,
  call_ended: 409,
  call_in_doubt: 409,
  idempotency_conflict: 409,
  session_busy: 409,
  session_changed: 409,
  schedule_changed: 409,
  journal_conflict: 409,
  superseded: 409,
  task_id_taken: 409,
  tool_name_taken: 422,
  tool_schema_invalid: 422,
  run_cancelled: 409,
  pause_expired: 410,
  payload_invalid: 422,
  validation_failed: 422,
  invalid_config: 422,
  identity_required: 422,
  memory_block_unserializable: 422,
  price_missing: 422,
  unserializable: 422,
  url_refused: 422,
  url_failed: 422,
  stream_refused: 422,
  store_refused: 422,
  budget_exceeded: 429,
  rate_limited: 429,
  inbox_full: 429,
  signals_full: 429,
  runtime_closed: 503,
  engine_unavailable: 503,
};

/** The HTTP status of an error. Below 500 it is about what the caller did, and the caller is told all of it; `toldError` hides the rest. */
export function statusOf(error: unknown): number {
  if (error instanceof RequestRefused) return REFUSALS[error.code];
  if (!PilotageError.is(error)) return 500;
  return STATUS[error.code] ?? (error.code.startsWith('journal_') ? 503 : 500);
}

/** The text about a recorded error that says nothing but its code: the message may hold what is of this machine. */
export const plainErrorText: ErrorText = ({ code }) => `Something went wrong (${code}).`;

/** A thrown error as a client may see it. */
export function toldError(error: unknown): ErrorData {
  const status = statusOf(error);
  if (error instanceof RequestRefused || (PilotageError.is(error) && status < 500)) {
    const { code, message, data } = error;
    if (code === 'agent_unknown') return unknownAgent(data);
    return { code, message, ...(data === undefined ? {} : { data }) };
  }
  if (status === 503 && PilotageError.is(error))
    return { code: error.code, message: 'The server cannot do this now. Try again in a moment.' };
  return { code: 'server_failed', message: 'The server failed at this request. What went wrong is in its own log.' };
}

/** The runtime names all agents that it has, to whoever writes the program. A visitor may not know of all of them. */
function unknownAgent({ agent = '' }: JsonObject = {}): ErrorData {
  return { code: 'agent_unknown', message: `There is no agent ${JSON.stringify(agent)} here.`, data: { agent } };
}

/** The members of a problem document. */
export interface Problem {
  readonly type: 'about:blank';
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly data?: JsonObject;
}

/** The body of a problem document. `title` depends on the code alone; `detail` is about this request. */
export function problemBody(error: unknown): Problem {
  const { code, message, data } = toldError(error);
  const title = code.replaceAll('_', ' ');
  return { type: 'about:blank', title, status: statusOf(error), detail: message, code, ...(data && { data }) };
}

/** The response that tells of an error, as a problem document. */
export function problem(error: unknown): Response {
  const body = problemBody(error);
  const { status } = body;
  const headers: Record<string, string> = { 'content-type': 'application/problem+json', 'cache-control': 'no-store' };
  if (status === 429 || status === 503) headers['retry-after'] = '1';
  return new Response(JSON.stringify(body), { status, headers });
}
