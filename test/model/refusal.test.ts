/** What providers say when they, or their models, do not want to answer. */
import { APICallError } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { failureData, type ModelRefusal, refusalIn, refusalOf } from '#model';

function httpError(status: number, body: object): APICallError {
  const error = (body as { error?: { message?: string } | string }).error;
  return new APICallError({
    message: typeof error === 'object' ? (error.message ?? 'Bad Request') : 'Bad Request',
    url: 'https://provider.test/',
    requestBodyValues: {},
    statusCode: status,
    responseBody: JSON.stringify(body),
    data: body,
  });
}

const AZURE = 'The response was filtered due to the prompt triggering the content management policy.';
const OPENAI = 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.';

describe('an error that is a refusal', () => {
  it.each<[string, unknown, ModelRefusal]>([
    [
      'of Azure, with the filters that it was',
      httpError(400, {
        error: {
          message: AZURE,
          code: 'content_filter',
          innererror: {
            content_filter_result: { hate: { filtered: false }, sexual: { filtered: true, severity: 'high' } },
          },
        },
      }),
      { category: 'sexual', message: AZURE },
    ],
    [
      'of OpenAI, for its policy',
      httpError(400, { error: { message: OPENAI, type: 'invalid_request_error', code: 'invalid_prompt' } }),
      { message: OPENAI },
    ],
    [
      'of Alibaba',
      httpError(400, {
        error: { message: 'Input data may contain inappropriate content.', code: 'data_inspection_failed' },
      }),
      { message: 'Input data may contain inappropriate content.' },
    ],
    [
      'of Moonshot, in its type',
      httpError(400, { error: { message: 'The request was considered high risk', type: 'content_filter' } }),
      { message: 'The request was considered high risk' },
    ],
    [
      'of DeepSeek, which has no code for it',
      httpError(400, { error: { message: 'Content Exists Risk', code: 'invalid_request_error' } }),
      { message: 'Content Exists Risk' },
    ],
    [
      'of xAI, with the status of a wrong key',
      httpError(403, { code: 'permission denied', error: 'Content violates usage guidelines. Failed check: X' }),
      { message: 'Content violates usage guidelines. Failed check: X' },
    ],
    [
      'wrapped by a client that tries again itself',
      { name: 'AI_RetryError', lastError: httpError(400, { error: { message: AZURE, code: 'content_filter' } }) },
      { message: AZURE },
    ],
  ])('%s', (_, error, refusal) => {
    expect(refusalOf(error)).toEqual(refusal);
  });

  it.each<[string, unknown]>([
    ['a prompt that is malformed', httpError(400, { error: { message: 'Invalid value', code: 'invalid_prompt' } })],
    ['a wrong key', httpError(403, { error: { message: 'Forbidden' } })],
    [
      'a limit',
      httpError(429, { error: { message: 'Slow down. See our usage policy.', code: 'rate_limit_exceeded' } }),
    ],
    ['talk of it', httpError(400, { error: { message: 'The content_filter setting is unknown', code: 'bad' } })],
    ['no error at all', undefined],
  ])('%s is none', (_, error) => {
    expect(refusalOf(error)).toBeUndefined();
  });

  it('keeps to a bound', () => {
    const message = 'x'.repeat(5_000);
    expect(refusalOf(httpError(400, { error: { message, code: 'content_filter' } }))?.message).toHaveLength(1_000);
    expect(failureData(httpError(403, { error: { message: 'Forbidden' } })).message).toContain('the key was refused');
  });
});

describe('what is said beside a reply that was refused', () => {
  it.each<[string, string | undefined, Record<string, unknown> | undefined, ModelRefusal]>([
    ['nothing', undefined, undefined, {}],
    ['the bare word', 'content_filter', {}, {}],
    ['a word that says more', 'ERROR_TOXIC', undefined, { category: 'ERROR_TOXIC' }],
    [
      'Anthropic',
      'refusal',
      { anthropic: { stopDetails: { type: 'refusal', category: 'cyber', explanation: 'It was blocked.' } } },
      { category: 'cyber', message: 'It was blocked.' },
    ],
    [
      'Google, of a prompt',
      'PROHIBITED_CONTENT',
      { google: { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } } },
      { category: 'PROHIBITED_CONTENT' },
    ],
    [
      'Google, of a reply',
      'SAFETY',
      {
        google: {
          promptFeedback: null,
          safetyRatings: [
            { category: 'HARM_CATEGORY_HARASSMENT', probability: 'LOW' },
            { category: 'HARM_CATEGORY_DANGEROUS_CONTENT', probability: 'HIGH', blocked: true },
          ],
          finishMessage: 'Stopped.',
        },
      },
      { category: 'HARM_CATEGORY_DANGEROUS_CONTENT', message: 'Stopped.' },
    ],
    [
      'Bedrock',
      'guardrail_intervened',
      { bedrock: { trace: { guardrail: { actionReason: 'Guardrail blocked.' } } } },
      { category: 'guardrail_intervened', message: 'Guardrail blocked.' },
    ],
  ])('%s', (_, raw, metadata, refusal) => {
    expect(refusalIn(raw, metadata)).toEqual(refusal);
  });
});
