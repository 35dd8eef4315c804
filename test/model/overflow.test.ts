/** What servers say of a request is read rightly: each message names the server, and where its words are found. */
import { describe, expect, it } from 'vitest';
import { overflowOf, roomFor } from '#model';
import { OTHERS } from './other-messages.ts';
import { said, TOO_LONG, TOO_LONG_A_REPLY } from './overflow-messages.ts';

/** As the AI SDK makes it of a reply: the message is what its provider package found in the body. */
function apiError(status: number | undefined, body: unknown, message?: string): Error {
  const responseBody = typeof body === 'string' ? body : JSON.stringify(body);
  const found = (body as { error?: { message?: string }; message?: string } | undefined) ?? {};
  const words = message ?? found.error?.message ?? found.message ?? 'Bad Request';
  const url = 'https://api.example.com/v1/chat';
  return Object.assign(new Error(words), { name: 'AI_APICallError', url, statusCode: status, responseBody });
}

describe('a request that does not fit the window', () => {
  it('is known by at least fifty messages of servers', () => {
    expect(TOO_LONG.length).toBeGreaterThanOrEqual(50);
    expect(new Set(TOO_LONG.map(({ source }) => source)).size).toBe(TOO_LONG.length);
  });

  it.each(TOO_LONG)('$source', ({ status, body, overflow }) => {
    expect(overflowOf(apiError(status, body))).toMatchObject({ kind: 'input', ...overflow });
  });

  it('is known where a client has wrapped the error, and where a stream gives an object or a text', () => {
    const inner = apiError(400, said('prompt is too long: 213462 tokens > 200000 maximum'));
    const wrapped = Object.assign(new Error('Failed after 3 attempts.'), { name: 'AI_RetryError', lastError: inner });
    for (const error of [
      wrapped,
      Object.assign(new Error('x'), { cause: inner }),
      { type: 'invalid_request_error', message: 'prompt is too long: 213462 tokens > 200000 maximum' },
      'prompt is too long: 213462 tokens > 200000 maximum',
    ]) {
      expect(overflowOf(error)).toMatchObject({ kind: 'input', limitTokens: 200_000, sentTokens: 213_462 });
    }
  });

  it('has no numbers that cannot be', () => {
    const odd = said('prompt is too long: 99999999999999999999 tokens > 0 maximum');
    expect(overflowOf(apiError(400, odd))).toEqual({ kind: 'input' });
  });
});

describe('a wish for too long a reply', () => {
  it.each(TOO_LONG_A_REPLY)('$source', ({ body, mostTokens }) => {
    expect(overflowOf(apiError(400, body))).toMatchObject({ kind: 'output', mostTokens });
  });

  it('is one only where the request leaves room for a reply', () => {
    expect(roomFor(8_192, 64)).toBe(4_064);
    expect(roomFor(200_000, 197_952)).toBe(1_024);
    expect(roomFor(200_000, 197_953)).toBeUndefined();
    expect(roomFor(1_000, 900)).toBeUndefined();
    expect(roomFor(1_000, 870)).toBe(65);
    expect(roomFor(100, 200)).toBeUndefined();
  });
});

describe('another error', () => {
  it('is one of at least fifty', () => {
    expect(OTHERS.length).toBeGreaterThanOrEqual(50);
    expect(OTHERS.filter(({ status }) => status === 400 || status === 413).length).toBeGreaterThanOrEqual(50);
  });

  it.each(OTHERS)('$source', ({ status, body }) => {
    expect(overflowOf(apiError(status, body))).toBeUndefined();
  });

  it.each([undefined, null, 0, '', {}, [], new Error('x')])('%s', (error) => {
    expect(overflowOf(error)).toBeUndefined();
  });
});
