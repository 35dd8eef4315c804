/** How long a server asks to be left alone, from the headers of its reply. */

const MAX_HEADER_CHARS = 256;
const NUMBER = /^\d+(\.\d+)?$/;
/** A date begins with the name of a day, as HTTP writes dates, or with a year. `Date.parse` takes other texts for dates too. */
const LOOKS_LIKE_DATE = /^\s*((Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s|\d{4}-\d\d-\d\d)/;

export interface RetryHeaders {
  /** `retry-after-ms`. */
  readonly exact: string | undefined;
  /** `retry-after`. */
  readonly plain: string | undefined;
}

/** `undefined` when the headers ask for nothing. */
export function retryHeadersIn(headers: unknown): RetryHeaders | undefined {
  const exact = headerIn(headers, 'retry-after-ms');
  const plain = headerIn(headers, 'retry-after');
  return exact === undefined && plain === undefined ? undefined : { exact, plain };
}

/** A number of seconds, the largest of several, or a date. Anything else says nothing. Milliseconds from 0 up. */
export function askedWaitMs({ exact, plain }: RetryHeaders, nowMs: number): number | undefined {
  const exactMs = largestOf(exact);
  if (exactMs !== undefined) return exactMs;
  const seconds = largestOf(plain);
  if (seconds !== undefined) return seconds * 1000;
  if (plain === undefined || !LOOKS_LIKE_DATE.test(plain)) return undefined;
  const waitMs = Date.parse(plain) - nowMs;
  return Number.isNaN(waitMs) ? undefined : Math.max(waitMs, 0);
}

/** A header that came twice, or passed several servers, is a list. */
function largestOf(value: string | undefined): number | undefined {
  if (value === undefined || value.length > MAX_HEADER_CHARS) return undefined;
  const parts = value.split(',').map((part) => part.trim());
  return parts.every((part) => NUMBER.test(part)) ? Math.max(...parts.map(Number)) : undefined;
}

/** @param headers an object, whose values may be lists, a `Map`, or `Headers`. @param name in lower case. */
export function headerIn(headers: unknown, name: string): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined;
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const entries: Iterable<[unknown, unknown]> = headers instanceof Map ? headers : Object.entries(headers);
  for (const [key, value] of entries) {
    if (typeof key !== 'string' || key.toLowerCase() !== name) continue;
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    const texts = values.filter((part) => typeof part === 'string' || typeof part === 'number');
    if (texts.length > 0) return texts.join(', ');
  }
  return undefined;
}
