import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { closedPort, failureData, isTransientFailure, remedyFor, retryAfterMs, whyUnavailable } from '#model';
import { httpError } from '../kit/model.ts';

const error = (fields: object, message = 'm'): Error => Object.assign(new Error(message), fields);

describe('a failure of a model', () => {
  it.each<[string, unknown, boolean, boolean]>([
    // what it is, the error, may it pass before a stream began, inside one
    ['a plain error', new Error('429 rate limited, retry'), false, true],
    ['a text', 'overloaded', false, true],
    ['nothing', undefined, false, true],
    ['isRetryable', error({ isRetryable: true }), true, true],
    ['retryable', { retryable: true }, true, true],
    ['not isRetryable', error({ isRetryable: false }), false, false],
    ['not retryable, though a 503', error({ retryable: false, status: 503 }), false, false],
    ['408', httpError(408), true, true],
    ['409', httpError(409), true, true],
    ['425, which the AI SDK does not know', error({ statusCode: 425, isRetryable: false }), true, true],
    ['429', error({ status: 429 }), true, true],
    ['500', error({ statusCode: 500 }), true, true],
    ['529', httpError(529), true, true],
    ['400', error({ statusCode: 400 }), false, false],
    ['401', httpError(401), false, false],
    ['404', httpError(404), false, false],
    ['200 that could not be read', error({ statusCode: 200, isRetryable: false }), true, true],
    ['a reply without choices', error({ name: 'AI_InvalidResponseDataError' }), true, true],
    ['an empty reply', error({ name: 'AI_EmptyResponseBodyError' }), true, true],
    ['a request that is at fault', error({ name: 'AI_InvalidPromptError' }), false, true],
    ['a code that is a status', { code: 502, message: 'bad gateway' }, true, true],
    ['a code that is a refusal', { code: 402, message: 'no credits' }, false, false],
    ['a code that is no status', { code: 20, message: 'aborted' }, false, true],
    ['ECONNRESET', error({ code: 'ECONNRESET' }), true, true],
    ['a cause of a cause', error({ cause: error({ cause: error({ code: 'UND_ERR_SOCKET' }) }) }), true, true],
    ['a code of something else', error({ code: 'ERR_INVALID_ARG_TYPE' }), false, true],
  ])('may pass by what it says itself: %s', (_, thrown, before, inside) => {
    expect([isTransientFailure(thrown, false), isTransientFailure(thrown, true)]).toEqual([before, inside]);
  });

  it('is not searched for ever through causes that go round', () => {
    const round = error({});
    round.cause = round;
    expect(isTransientFailure(round, false)).toBe(false);
  });

  it('is recorded with a code and at most 256 characters of its message', () => {
    expect(failureData(httpError(503))).toEqual({ code: 'http_503', message: 'status 503' });
    expect(failureData({ message: 'Overloaded', type: 'x' })).toEqual({ code: 'model_error', message: 'Overloaded' });
    expect(failureData('text')).toEqual({ code: 'model_error', message: 'text' });
    expect(failureData(new PilotageError('journal_busy', 'b')).code).toBe('journal_busy');
    expect(failureData(error({ cause: { code: 'EPIPE' } })).code).toBe('EPIPE');
    const long = failureData(new Error('🙂'.repeat(1000))).message;
    expect([...long].length).toBe(256);
    expect(long.isWellFormed()).toBe(true);
  });
});

/** A reply of Google's to a key that there is not. */
const GOOGLE_KEY = JSON.stringify({
  error: { code: 400, status: 'INVALID_ARGUMENT', details: [{ '@type': 'ErrorInfo', reason: 'API_KEY_INVALID' }] },
});

it.each<[string, object, boolean]>([
  ['a request that will never do', { type: 'invalid_request_error' }, false],
  ['one that is too long', { code: 'context_length_exceeded' }, false],
  ['a model that there is not', { code: 'model_not_found' }, false],
  ['a call that the server could not read', { type: 'invalid_request_error', code: 'tool_use_failed' }, true],
  ['a rate', { type: 'rate_limit_error' }, true],
])('a stream that breaks off over %s is asked for again only when that may help', (_, said, passes) => {
  expect(isTransientFailure({ error: said }, true)).toBe(passes);
  expect(isTransientFailure({ error: { type: 'error', error: said } }, true)).toBe(passes);
});

it('an error of a class that left its name as it was is known by its class', () => {
  class APIConnectionTimeoutError extends Error {}
  expect(whyUnavailable(new APIConnectionTimeoutError('Request timed out.'), false)).toBe('away');
});

/** As clients of providers throw them, whatever their classes are. */
describe('an error of another client', () => {
  const headers = { 'retry-after': '7' };
  it.each<[string, object, string | undefined, number | undefined]>([
    ['a status and Headers', { status: 429, headers: new Headers(headers) }, 'away', 7_000],
    ['a status and a record', { status: 503, headers: { 'Retry-After': ['5', '10'] } }, 'away', 10_000],
    ['a statusCode and a Map', { statusCode: 503, headers: new Map([['Retry-After', 3]]) }, 'away', 3_000],
    ['a response', { response: { status: 429, headers: new Headers(headers) } }, 'away', 7_000],
    ['$metadata', { $metadata: { httpStatusCode: 503 } }, 'away', undefined],
    ['a status as a text', { status: '503' }, 'away', undefined],
    ['the last of several tries', { name: 'AI_RetryError', lastError: error({ status: 429, headers }) }, 'away', 7_000],
    ['a cause', { cause: { status: 401 } }, 'key_refused', undefined],
    ['a refused key', { status: 401, error: { type: 'x' } }, 'key_refused', undefined],
    ['an empty account', { status: 429, error: { code: 'insufficient_quota' } }, 'key_refused', undefined],
    ['no such model', { response: { status: 404 } }, 'model_unknown', undefined],
    ['a request at fault', { response: { status: 400 } }, undefined, undefined],
    ['a wrong key at Google', { name: 'ApiError', status: 400, message: GOOGLE_KEY }, 'key_refused', undefined],
    [
      'that through the AI SDK',
      { statusCode: 400, isRetryable: false, responseBody: GOOGLE_KEY },
      'key_refused',
      undefined,
    ],
    ['Anthropic overloaded in a stream', { error: { error: { type: 'overloaded_error' } } }, 'away', undefined],
    ['a key refused in a stream', { error: { error: { type: 'authentication_error' } } }, 'key_refused', undefined],
    ['a key that is not there', { lastError: error({ name: 'AI_LoadAPIKeyError' }) }, 'key_refused', undefined],
    ['no connection at the last try', { lastError: error({ isRetryable: true }) }, 'away', undefined],
    ['none at several addresses', { errors: [{ code: 'ECONNREFUSED' }] }, 'unreachable', undefined],
    ['AWS that throttles', { name: 'ThrottlingException', $metadata: { httpStatusCode: 400 } }, 'away', undefined],
    [
      'what AWS takes again',
      { $retryable: { throttling: false }, $metadata: { httpStatusCode: 400 } },
      'away',
      undefined,
    ],
    ['an old token', { name: 'ExpiredTokenException', $metadata: { httpStatusCode: 400 } }, 'key_refused', undefined],
    ['a status_code', { status_code: 404 }, 'model_unknown', undefined],
    ['a code that is a status as a text', { code: '503' }, 'away', undefined],
    ['a client that was used wrongly', { code: 'UND_ERR_INVALID_ARG' }, undefined, undefined],
    ['a word that is no status', { status: 'failed', statusCode: 7 }, undefined, undefined],
  ])('is judged by its status: %s', (_, fields, why, waitMs) => {
    expect([whyUnavailable(error(fields), false), retryAfterMs(error(fields), 0)]).toEqual([why, waitMs]);
  });

  const NOW = Date.UTC(2026, 0, 1);
  const DAY = 24 * 60 * 60 * 1_000;
  it.each<[string, number | undefined]>([
    ['5', 5_000],
    [' 1.5 ', 1_500],
    ['5, 10', 10_000],
    ['10,5', 10_000],
    ['0', 0],
    ['-5', undefined],
    ['5 10', undefined],
    ['5, soon', undefined],
    ['', undefined],
    ['1e9', undefined],
    ['Infinity', undefined],
    ['May 10', undefined],
    ['99999999999999999999', DAY],
    ['Thu, 01 Jan 2026 00:00:07 GMT', 7_000],
    ['Thursday, 01-Jan-26 00:00:07 GMT', 7_000],
    ['Thu Jan  1 00:00:07 2026 GMT', 7_000],
    ['2026-01-01T00:00:07Z', 7_000],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['Thu, 01 Jan 2999 00:00:00 GMT', DAY],
  ])('Retry-After %j', (value, waitMs) => {
    expect(retryAfterMs({ headers: { 'retry-after': value } }, NOW)).toBe(waitMs);
  });

  it('retry-after-ms goes first, unless it says nothing', () => {
    const at = (ms: string): number | undefined =>
      retryAfterMs({ headers: { 'retry-after-ms': ms, 'retry-after': '7' } }, NOW);
    expect([at('1234'), at(''), at('-1'), at('5, 10')]).toEqual([1_234, 7_000, 7_000, 10]);
  });
});

describe('a port to which fetch sends nothing', () => {
  const PORTS = [1, 22, 25, 53, 79, 110, 143, 389, 465, 587, 993, 995, 2049, 5060, 6000, 6665, 6666, 6667, 6697, 10080];

  it.each(PORTS)('%i is a wrong address, which no wait puts right', async (port) => {
    const url = `http://127.0.0.1:${port}/v1`;
    const thrown: unknown = await fetch(url).catch((cause: unknown) => cause);
    expect((thrown as { cause: Error }).cause.message).toBe('bad port');
    const wrapped = error({ name: 'AI_APICallError', isRetryable: true, url, cause: thrown });
    expect(whyUnavailable(wrapped, false)).toBe('misdirected');
    expect(remedyFor('misdirected', wrapped, 'm')).toContain(`the port ${port}: fetch refuses it`);
  });

  it('is none of those that servers have', () => {
    for (const port of [80, 443, 1234, 3000, 4000, 8000, 8080, 11434]) {
      expect(closedPort(`http://127.0.0.1:${port}/v1`)).toBeUndefined();
    }
    expect([closedPort('https://models.example/v1'), closedPort('no address')]).toEqual([undefined, undefined]);
  });
});
