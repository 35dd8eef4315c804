/** What an error of a model says of itself. Its text is never searched: texts are for people, and change. */
import { describeThrown, type ErrorData, fieldOf as field, PilotageError } from '../core/errors.ts';

const MAX_MESSAGE_CHARS = 256;
const MAX_RETRY_AFTER_MS = 30_000;
const MAX_CAUSES = 5;

/** Statuses below 500 of a server that may take the same request later. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 409, 429]);
const NETWORK_CODES: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'ENETDOWN',
  'ENETUNREACH',
  'EHOSTDOWN',
  'EHOSTUNREACH',
]);

/** A reply that broke off without an error of the provider. It may pass. */
export class BrokenReply extends Error {
  override readonly name: string = 'BrokenReply';
  readonly code: 'model_stalled' | 'model_interrupted';
  readonly isRetryable: boolean = true;

  constructor(code: BrokenReply['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * May the same request succeed later, or with another model? Before a reply has begun an error has to say so itself. Inside
 * a stream that the provider had accepted, it may unless the error says otherwise.
 */
export function mayPass(error: unknown, inStream: boolean): boolean {
  const said = field(error, 'isRetryable') ?? field(error, 'retryable');
  if (said === true) return true;
  const status = statusOf(error);
  // The AI SDK's errors derive the flag from the status; 200 is the status of the stream, and says nothing of its error.
  const derived = inStream && status !== undefined && status < 400;
  if (said === false && !derived) return false;
  if (status !== undefined && status >= 400) return status >= 500 || PASSING_STATUSES.has(status);
  return inStream || networkCodeOf(error) !== undefined;
}

/** How long the provider asks to be left alone, at most 30 seconds. */
export function retryAfterMs(error: unknown, nowMs: number): number | undefined {
  const headers = field(error, 'responseHeaders');
  const exact = Number(headerOf(headers, 'retry-after-ms'));
  if (exact >= 0) return Math.min(exact, MAX_RETRY_AFTER_MS);
  const value = headerOf(headers, 'retry-after');
  if (value === undefined) return undefined;
  const waitMs = /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), MAX_RETRY_AFTER_MS);
}

/** The error as a remark holds it. */
export function failureData(error: unknown): ErrorData {
  const message = field(error, 'message');
  const text = typeof message === 'string' && message !== '' ? message : describeThrown(error);
  return {
    code: codeOf(error),
    message: [...text.slice(0, 2 * MAX_MESSAGE_CHARS)].slice(0, MAX_MESSAGE_CHARS).join(''),
  };
}

/** The HTTP status that the error names. */
export function statusOf(error: unknown): number | undefined {
  const status = field(error, 'statusCode') ?? field(error, 'status');
  if (isStatus(status, 100)) return status;
  // Gateways put it there when the failure comes inside a stream.
  const code = field(error, 'code');
  return isStatus(code, 400) ? code : undefined;
}

function codeOf(error: unknown): string {
  if (PilotageError.is(error) || error instanceof BrokenReply) return error.code;
  const status = statusOf(error);
  if (status !== undefined && status >= 400) return `http_${status}`;
  return networkCodeOf(error) ?? 'model_error';
}

function networkCodeOf(error: unknown): string | undefined {
  let at = error;
  for (let depth = 0; depth < MAX_CAUSES; depth += 1) {
    const code = field(at, 'code');
    if (typeof code === 'string' && (NETWORK_CODES.has(code) || code.startsWith('UND_ERR_'))) return code;
    at = field(at, 'cause');
  }
  return undefined;
}

function headerOf(headers: unknown, name: string): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined;
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name && typeof value === 'string') return value;
  }
  return undefined;
}

function isStatus(value: unknown, least: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value < 600;
}
