/** A value that foreign code has thrown, read exactly once, so that getters and later changes do no harm. */
import { captureObject } from './capture.ts';
import { describeThrown, fieldOf, PilotageError } from './errors.ts';
import type { JsonObject } from './json.ts';
import { askedWaitMs, type RetryHeaders, retryHeadersIn } from './retry-after.ts';

const MAX_CODE_CHARS = 200;

export class Thrown {
  /** Itself, for the `cause` of an error. Nothing of it is to be read. */
  readonly value: unknown;
  readonly message: string;
  readonly name: string;
  /** Whether the error is a `PilotageError`, of this or another copy of the package. */
  readonly isOurs: boolean;
  readonly code: string | undefined;
  readonly data: JsonObject | undefined;
  readonly retryable: boolean | undefined;
  /** An HTTP status. */
  readonly status: number | undefined;
  readonly url: string | undefined;
  readonly expiresInMs: number | undefined;
  readonly #retryAfterMs: number | undefined;
  readonly #headers: RetryHeaders | undefined;
  /**
   * An AI SDK model gave no reply, and may give one later. Of other errors nobody knows whether they are a model's, nor whether they
   * pass.
   */
  readonly isModelAway: boolean;
  // Tells this class by what nobody can imitate, and no proxy hears of.
  readonly #isRead = true;

  private constructor(value: unknown) {
    this.value = value;
    this.message = describeThrown(value);
    const name = fieldOf(value, 'name');
    const code = fieldOf(value, 'code');
    const retryable = fieldOf(value, 'retryable');
    const statuses = [fieldOf(value, 'status'), fieldOf(value, 'statusCode')];
    const url = fieldOf(value, 'url');
    const expiresInMs = fieldOf(value, 'expiresInMs');
    this.name = isWord(name) && typeof value === 'object' ? name : typeof value;
    this.isOurs = PilotageError.is(value);
    const last = name === 'AI_RetryError' ? fieldOf(value, 'lastError') : value;
    const retryAfterMs = fieldOf(value, 'retryAfterMs');
    this.isModelAway = fieldOf(last, 'name') === 'AI_APICallError' && fieldOf(last, 'isRetryable') === true;
    this.code = isWord(code) ? code : undefined;
    this.data = dataOf(fieldOf(value, 'data'));
    this.retryable = typeof retryable === 'boolean' ? retryable : undefined;
    this.status = statuses.find((status) => typeof status === 'number');
    this.url = typeof url === 'string' ? url : undefined;
    this.expiresInMs = typeof expiresInMs === 'number' ? expiresInMs : undefined;
    this.#retryAfterMs = typeof retryAfterMs === 'number' && retryAfterMs >= 0 ? retryAfterMs : undefined;
    this.#headers = headersOf(fieldOf(last, 'responseHeaders'));
  }

  /**
   * How long whoever failed asks to be left alone, in milliseconds from `nowMs` on: `retryAfterMs` of the error, or the headers of the reply that
   * an error of the AI SDK keeps. It may be any number from 0 up.
   */
  retryAfterMs(nowMs: number): number | undefined {
    return this.#retryAfterMs ?? (this.#headers && askedWaitMs(this.#headers, nowMs));
  }

  static of(value: unknown): Thrown {
    return typeof value === 'object' && value !== null && #isRead in value ? value : new Thrown(value);
  }
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_CODE_CHARS;
}

function headersOf(headers: unknown): RetryHeaders | undefined {
  try {
    return retryHeadersIn(headers);
  } catch {
    return undefined;
  }
}

/** The error itself is worth more than data that is no JSON. */
function dataOf(data: unknown): JsonObject | undefined {
  if (typeof data !== 'object' || data === null) return undefined;
  try {
    return captureObject(data, 'error.data').json;
  } catch {
    return undefined;
  }
}
