/** What providers name as the sources of a reply, as their packages give it: pages and documents of citations, searches and grounding. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createCohere } from '@ai-sdk/cohere';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createPerplexity } from '@ai-sdk/perplexity';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { createXai } from '@ai-sdk/xai';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject, Source } from '#core';
import { ours, type WireAnswer } from './kit.ts';

const apiKey = 'k';
const TEXT = 'The sun shines in Oslo.';
const OSLO = 'https://weather.test/oslo';
const SUN = 'https://weather.test/sun';
const page = (url: string, title?: string): Source => ({ type: 'url', url, ...(title === undefined ? {} : { title }) });

// Anthropic: a search of its own, and citations of a text.
const usage = { input_tokens: 9, output_tokens: 5 };
const found = (url: string, title: string) => ({
  type: 'web_search_result',
  url,
  title,
  encrypted_content: 'ZW5j',
  page_age: null,
});
const citation = {
  type: 'web_search_result_location',
  url: OSLO,
  title: 'Oslo',
  encrypted_index: 'aWR4',
  cited_text: 'Sunny all day.',
};
const search = { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'oslo' } };
const results = {
  type: 'web_search_tool_result',
  tool_use_id: 's1',
  content: [found(OSLO, 'Oslo'), found(SUN, 'Sun')],
};
const anthropicHead = { type: 'message', id: 'm1', role: 'assistant', model: 'claude-sonnet-4-5' };
const anthropic: WireAnswer = {
  json: {
    ...anthropicHead,
    content: [search, results, { type: 'text', text: TEXT, citations: [citation] }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  },
};
const begin = (index: number, content_block: Json): Json => ({ type: 'content_block_start', index, content_block });
const piece = (index: number, delta: Json): Json => ({ type: 'content_block_delta', index, delta });
const stop = (index: number): Json => ({ type: 'content_block_stop', index });
const anthropicStream: WireAnswer = {
  named: true,
  events: [
    {
      type: 'message_start',
      message: { ...anthropicHead, content: [], stop_reason: null, stop_sequence: null, usage },
    },
    begin(0, { ...search, input: {} }),
    piece(0, { type: 'input_json_delta', partial_json: '{"query":"oslo"}' }),
    stop(0),
    begin(1, results),
    stop(1),
    begin(2, { type: 'text', text: '' }),
    piece(2, { type: 'text_delta', text: TEXT }),
    piece(2, { type: 'citations_delta', citation }),
    stop(2),
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ],
};

// OpenAI's Responses and xAI's: annotations of a text.
const annotations = [
  { type: 'url_citation', url: OSLO, title: 'Oslo', start_index: 0, end_index: 7 },
  { type: 'url_citation', url: SUN, title: 'Sun', start_index: 8, end_index: 14 },
  { type: 'url_citation', url: OSLO, title: 'Oslo', start_index: 15, end_index: 22 },
];
const item = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: TEXT, annotations, logprobs: [] }],
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
  usage: { ...usage, total_tokens: 14 },
};
const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
const responseStream: WireAnswer = {
  named: true,
  events: [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.output_text.delta', ...at, delta: TEXT, logprobs: [] },
    ...annotations.map((annotation, annotation_index) => ({
      type: 'response.output_text.annotation.added',
      ...at,
      annotation_index,
      annotation,
    })),
    { type: 'response.output_text.done', ...at, text: TEXT, logprobs: [] },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ].map((event, sequence_number) => ({ ...event, sequence_number })),
};

// OpenAI's chat: annotations of the message.
const noted = [OSLO, SUN].map((url) => ({
  type: 'url_citation',
  url_citation: { url, title: url === OSLO ? 'Oslo' : 'Sun', start_index: 0, end_index: 7 },
}));
const totals = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };
const chatHead = { id: 'c1', created: 1, model: 'm' };
const chat = (message: JsonObject, more: JsonObject = {}): WireAnswer => ({
  json: {
    ...chatHead,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: TEXT, ...message }, finish_reason: 'stop' }],
    usage: totals,
    ...more,
  },
});
const chatStream = (delta: JsonObject, more: JsonObject = {}): WireAnswer => {
  const chunk = (part: JsonObject, finish_reason: string | null = null): Json => ({
    ...chatHead,
    ...more,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { role: 'assistant', ...part }, finish_reason }],
    usage: totals,
  });
  return {
    events: [
      chunk({ content: TEXT }),
      ...(Object.keys(delta).length > 0 ? [chunk(delta)] : []),
      chunk({}, 'stop'),
      '[DONE]',
    ],
  };
};

// Google: grounding in pages and in files.
const groundingMetadata = {
  webSearchQueries: ['oslo'],
  groundingChunks: [
    { web: { uri: OSLO, title: 'Oslo' } },
    { web: { uri: OSLO, title: 'Oslo' } },
    { retrievedContext: { uri: 'gs://bucket/oslo.pdf', title: 'Climate of Oslo' } },
  ],
};
const google: Json = {
  candidates: [
    { index: 0, content: { role: 'model', parts: [{ text: TEXT }] }, finishReason: 'STOP', groundingMetadata },
  ],
  usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 14 },
};
const climate: Source = {
  type: 'document',
  title: 'Climate of Oslo',
  mediaType: 'application/pdf',
  filename: 'oslo.pdf',
};

// Google's Interactions: annotations of a text.
const interaction = {
  id: 'int_1',
  object: 'interaction',
  model: 'gemini-3-pro-preview',
  created: '2026-01-01T00:00:00Z',
  status: 'completed',
  steps: [
    {
      type: 'model_output',
      content: [{ type: 'text', text: TEXT, annotations: [{ type: 'url_citation', url: OSLO, title: 'Oslo' }] }],
    },
  ],
  usage: { total_input_tokens: 9, total_output_tokens: 5, total_tokens: 14 },
};

// Cohere: citations of documents.
const cohere: Json = {
  id: 'c1',
  generation_id: 'c1',
  message: {
    role: 'assistant',
    content: [{ type: 'text', text: TEXT }],
    citations: [
      {
        start: 0,
        end: 7,
        text: 'The sun',
        sources: [{ type: 'document', id: 'doc:0', document: { id: 'doc:0', text: 'Sunny.', title: 'Oslo' } }],
        type: 'TEXT_CONTENT',
      },
    ],
  },
  finish_reason: 'COMPLETE',
  usage: { tokens: usage, billed_units: usage },
};

interface Case {
  readonly model: (baseURL: string) => LanguageModelV4;
  readonly answer: WireAnswer;
  readonly sources: readonly Source[];
}

const titled = [page(OSLO, 'Oslo'), page(SUN, 'Sun')];
const claude = (baseURL: string) => createAnthropic({ apiKey, baseURL })('claude-sonnet-4-5');
const gpt = (baseURL: string) => createOpenAI({ apiKey, baseURL });
const grok = (baseURL: string) => createXai({ apiKey, baseURL }).responses('grok-4-fast-reasoning');
const gemini = (baseURL: string) => createGoogle({ apiKey, baseURL });
const sonar = (baseURL: string) => createPerplexity({ apiKey, baseURL })('sonar-pro');
const cited = { citations: [OSLO, SUN, OSLO] };

const CASES: Readonly<Record<string, Case>> = {
  anthropic: { model: claude, answer: anthropic, sources: titled },
  'anthropic, streamed': { model: claude, answer: anthropicStream, sources: titled },
  'openai, responses': { model: (url) => gpt(url).responses('gpt-5.2'), answer: { json: response }, sources: titled },
  'openai, responses, streamed': {
    model: (url) => gpt(url).responses('gpt-5.2'),
    answer: responseStream,
    sources: titled,
  },
  'openai, chat': { model: (url) => gpt(url).chat('gpt-4.1'), answer: chat({ annotations: noted }), sources: titled },
  'openai, chat, streamed': {
    model: (url) => gpt(url).chat('gpt-4.1'),
    answer: chatStream({ annotations: noted }),
    sources: titled,
  },
  xai: { model: grok, answer: { json: response }, sources: [page(OSLO, 'Oslo'), page(SUN, 'Sun')] },
  'xai, streamed': { model: grok, answer: responseStream, sources: [page(OSLO, 'Oslo'), page(SUN, 'Sun')] },
  google: {
    model: (url) => gemini(url)('gemini-3-pro-preview'),
    answer: { json: google },
    sources: [page(OSLO, 'Oslo'), climate],
  },
  'google, streamed': {
    model: (url) => gemini(url)('gemini-3-pro-preview'),
    answer: { events: [google] },
    sources: [page(OSLO, 'Oslo'), climate],
  },
  'google, interactions': {
    model: (url) => gemini(url).interactions('gemini-3-pro-preview'),
    answer: { json: interaction },
    sources: [page(OSLO, 'Oslo')],
  },
  perplexity: { model: sonar, answer: chat({}, cited), sources: [page(OSLO), page(SUN)] },
  'perplexity, streamed': { model: sonar, answer: chatStream({}, cited), sources: [page(OSLO), page(SUN)] },
  cohere: {
    model: (baseURL) => createCohere({ apiKey, baseURL })('command-a-03-2025'),
    answer: { json: cohere },
    sources: [{ type: 'document', title: 'Oslo', mediaType: 'text/plain' }],
  },
};

describe('sources are those of the run', () => {
  it.each(Object.entries(CASES))('%s', async (_, { model, answer, sources }) => {
    const { result } = await ours({ model, answers: [answer], stream: answer.events !== undefined });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', answer: TEXT });
    expect(result.status === 'finished' && result.sources).toEqual(sources);
  });

  it('of a provider that names none, there are none', async () => {
    const { result } = await ours({ model: (url) => gpt(url).chat('gpt-4.1'), answers: [chat({})] });
    expect(result).not.toHaveProperty('sources');
  });

  it('at most 100 of one reply are kept, and no address that is too long to be one', async () => {
    const many = Array.from({ length: 150 }, (_, index) => `https://weather.test/${index}`);
    const long = `https://weather.test/${'x'.repeat(5_000)}`;
    const { result } = await ours({ model: sonar, answers: [chat({}, { citations: [long, ...many] })] });
    const sources = result.status === 'finished' ? (result.sources ?? []) : [];
    expect(sources).toHaveLength(100);
    expect(sources[0]).toEqual(page('https://weather.test/0'));
  });
});
