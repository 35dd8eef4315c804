import { describe, expect, it } from 'vitest';
import { PilotageError } from '../../src/core/errors.ts';
import { failureData, mayPass } from '../../src/model/failure.ts';
import { httpError } from './support.ts';

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
    expect([mayPass(thrown, false), mayPass(thrown, true)]).toEqual([before, inside]);
  });

  it('is not searched for ever through causes that go round', () => {
    const round = error({});
    round.cause = round;
    expect(mayPass(round, false)).toBe(false);
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
