/** Refusals that a protocol has beside its word for the end of a reply: in fields of their own, and in place of a reply. */
import { createAzure } from '@ai-sdk/azure';
import { createGoogle } from '@ai-sdk/google';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { expect, it } from 'vitest';
import type { Json, JsonObject } from '#core';
import { askOurs } from './both.ts';
import { ours, type WireAnswer } from './kit.ts';
import { answerOf, anywhere, jsonAnswer, wire } from './pieces.ts';
import { PROVIDERS } from './replies/providers.ts';
import type { Provider } from './replies/saying.ts';

const apiKey = 'k';
const NO = "I'm sorry, but I can't help with that.";
const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };
const chunk = (delta: JsonObject, finish_reason: string | null = null): Json => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});

/** OpenAI's field of its own; the reply ends with `stop`. */
const chat: WireAnswer = {
  json: {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: null, refusal: NO }, finish_reason: 'stop' }],
    usage,
  },
};
const chatStream: WireAnswer = {
  events: [
    chunk({ role: 'assistant', content: null, refusal: '' }),
    chunk({ refusal: NO.slice(0, 9) }),
    chunk({ refusal: NO.slice(9) }),
    chunk({}, 'stop'),
    '[DONE]',
  ],
};

const item = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'refusal', refusal: NO }],
};
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  status: 'completed',
  incomplete_details: null,
  error: null,
  output: [item],
  usage: { input_tokens: 9, output_tokens: 5, total_tokens: 14 },
};
const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
const responseStream: WireAnswer = {
  named: true,
  events: [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...at, part: { type: 'refusal', refusal: '' } },
    { type: 'response.refusal.delta', ...at, delta: NO.slice(0, 9) },
    { type: 'response.refusal.delta', ...at, delta: NO.slice(9) },
    { type: 'response.refusal.done', ...at, refusal: NO },
    { type: 'response.content_part.done', ...at, part: { type: 'refusal', refusal: NO } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ].map((event, sequence_number) => ({ ...event, sequence_number })),
};

/** The whole prompt was blocked: there is no candidate. */
const blocked = {
  promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
  usageMetadata: { promptTokenCount: 9, totalTokenCount: 9 },
  modelVersion: 'gemini-3-pro-preview',
};

const AZURE = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.";
const azureError: WireAnswer = {
  status: 400,
  json: {
    error: {
      message: AZURE,
      type: null,
      param: 'prompt',
      code: 'content_filter',
      status: 400,
      innererror: {
        code: 'ResponsibleAIPolicyViolation',
        content_filter_result: {
          hate: { filtered: false, severity: 'safe' },
          jailbreak: { filtered: true, detected: true },
        },
      },
    },
  },
};
const OPENAI = 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.';
const openaiError: WireAnswer = {
  status: 400,
  json: { error: { message: OPENAI, type: 'invalid_request_error', param: null, code: 'invalid_prompt' } },
};
const failed: WireAnswer = {
  named: true,
  events: [
    { type: 'response.created', sequence_number: 0, response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.in_progress', sequence_number: 1, response: { ...response, status: 'in_progress', output: [] } },
    {
      type: 'response.failed',
      sequence_number: 2,
      response: { ...response, status: 'failed', output: [], error: { code: 'invalid_prompt', message: OPENAI } },
    },
  ],
};

interface Case {
  readonly model: (baseURL: string) => LanguageModelV4;
  readonly answer: WireAnswer;
  readonly refusal: JsonObject;
  readonly text?: string;
}

const openai = (baseURL: string) => createOpenAI({ apiKey, baseURL });
const CASES: Readonly<Record<string, Case>> = {
  'openai, chat': { model: (url) => openai(url).chat('gpt-5.2'), answer: chat, refusal: {}, text: NO },
  'openai, chat, streamed': { model: (url) => openai(url).chat('gpt-5.2'), answer: chatStream, refusal: {}, text: NO },
  'openai-compatible': {
    model: (baseURL) => createOpenAICompatible({ name: 'local', baseURL })('m'),
    answer: chat,
    refusal: {},
    text: NO,
  },
  'openai, responses': {
    model: (url) => openai(url).responses('gpt-5.2'),
    answer: { json: response },
    refusal: {},
    text: NO,
  },
  'openai, responses, streamed': {
    model: (url) => openai(url).responses('gpt-5.2'),
    answer: responseStream,
    refusal: {},
    text: NO,
  },
  'openai, a prompt': {
    model: (url) => openai(url).responses('gpt-5.2'),
    answer: openaiError,
    refusal: { message: OPENAI },
  },
  'openai, a prompt, inside the stream': {
    model: (url) => openai(url).responses('gpt-5.2'),
    answer: failed,
    refusal: { message: OPENAI },
  },
  'azure, a prompt': {
    model: (baseURL) => createAzure({ apiKey, baseURL }).chat('gpt-4.1'),
    answer: azureError,
    refusal: { category: 'jailbreak', message: AZURE },
  },
  'google, a prompt': {
    model: (baseURL) => createGoogle({ apiKey, baseURL })('gemini-3-pro-preview'),
    answer: { json: blocked },
    refusal: { finish: 'PROHIBITED_CONTENT', category: 'PROHIBITED_CONTENT' },
  },
  'google, a prompt, streamed': {
    model: (baseURL) => createGoogle({ apiKey, baseURL })('gemini-3-pro-preview'),
    answer: { events: [blocked] },
    refusal: { finish: 'PROHIBITED_CONTENT', category: 'PROHIBITED_CONTENT' },
  },
};

it.each(Object.entries(CASES))('%s', async (_, { model, answer, refusal, text }) => {
  const { result, requests } = await ours({ model, answers: [answer], stream: answer.events !== undefined });
  expect(requests).toHaveLength(1);
  expect(result).toMatchObject({
    status: 'finished',
    reason: 'refused',
    metadata: { stop_reason: 'content-filter', refusal: { model: expect.any(String), ...refusal } },
  });
  expect(result.status === 'finished' && result.answer).toBe(text);
});

it('open-responses, whose package has no place for the words: the reply is an empty one, and does no harm', async () => {
  const model = (url: string) => createOpenResponses({ name: 'local', apiKey, url: `${url}/responses` })('m');
  const { result } = await ours({ model, answers: [{ json: response }] });
  expect(result).toMatchObject({ status: 'finished', reason: 'no_path' });
});

it('a prompt that Azure refuses goes to the model of another provider', async () => {
  const anthropic = PROVIDERS.find(({ name }) => name === 'anthropic') as Provider;
  const end = answerOf(anthropic, { said: [{ text: 'Here it is.' }], stop: 'end' }, true);
  const first = wire([jsonAnswer(azureError.json as Json, 400)], anywhere(7));
  const second = wire([end], anywhere(7));
  const baseURL = 'http://provider.test/v1';
  const models = [
    createAzure({ apiKey, baseURL, fetch: first.fetch }).chat('gpt-4.1'),
    anthropic.model({ baseURL, fetch: second.fetch }),
  ];
  expect((await askOurs(models, true)).result).toMatchObject({ reason: 'goal', answer: 'Here it is.' });
  expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
});
