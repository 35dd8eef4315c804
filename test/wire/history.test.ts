/** The history goes back as it came: the second request of our agent beside that of the AI SDK's own loop, on the same bytes. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createDeepSeek } from '@ai-sdk/deepseek';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, it } from 'vitest';
import { asJson, isJsonObject, type Json, type JsonObject } from '#core';
import { withoutMadeIds } from './both.ts';
import { ours, theirs, type WireAnswer, type WireCase, type WireRequest } from './kit.ts';

interface HistoryCase extends WireCase {
  /** The messages after the user's first. */
  readonly history: (request: WireRequest) => Json;
  /** Why the first reply stopped, in the provider's own word. */
  readonly stopped?: string;
}

const apiKey = 'k';
const usage = { input_tokens: 9, output_tokens: 5 };

function message(content: readonly Json[], reason: string): WireAnswer {
  return {
    json: {
      type: 'message',
      id: 'm1',
      role: 'assistant',
      model: 'claude-x',
      content,
      stop_reason: reason,
      stop_sequence: null,
      usage,
    },
  };
}

const call = (id: string, city: string): JsonObject => ({ type: 'tool_use', id, name: 'weather', input: { city } });
const done = message([{ type: 'text', text: 'Sunny.' }], 'end_turn');
const anthropic = (url: string) => createAnthropic({ apiKey, baseURL: url })('claude-sonnet-4-5');

/** Marks for the provider's cache are no part of what was said. */
function unmarked(value: Json): Json {
  if (Array.isArray(value)) return value.map(unmarked);
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== 'cache_control');
  return Object.fromEntries(kept.map(([key, each]) => [key, unmarked(each as Json)]));
}

const afterUser = ({ body }: WireRequest): Json => unmarked((body['messages'] as Json[]).slice(1));

function chat(said: JsonObject, reason = 'tool_calls'): WireAnswer {
  const choices = [{ index: 0, message: { role: 'assistant', ...said }, finish_reason: reason }];
  return {
    json: {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices,
      usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
    },
  };
}

const chatCall = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
const chatHistory = ({ body }: WireRequest): Json => (body['messages'] as JsonObject[]).filter(isAfterUser);

function isAfterUser({ role }: JsonObject): boolean {
  return role === 'assistant' || role === 'tool';
}

function responses(output: readonly Json[]): WireAnswer {
  return {
    json: {
      id: 'r1',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'gpt-x',
      output,
      usage: { input_tokens: 9, output_tokens: 5, total_tokens: 14 },
    },
  };
}

function gemini(parts: readonly Json[]): WireAnswer {
  return {
    json: {
      candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 14 },
      modelVersion: 'gemini-x',
    },
  };
}

const cases: Record<string, HistoryCase> = {
  'Anthropic: text, a call, text, and a call': {
    model: anthropic,
    stopped: 'tool_use',
    history: afterUser,
    answers: [
      message(
        [
          { type: 'text', text: 'Calling a tool first.' },
          call('t1', 'Oslo'),
          { type: 'text', text: 'Now the other.' },
          call('t2', 'Rome'),
        ],
        'tool_use',
      ),
      done,
    ],
  },
  'Anthropic: signed thinking, redacted thinking, and a call': {
    model: anthropic,
    stopped: 'tool_use',
    history: afterUser,
    answers: [
      message(
        [
          { type: 'thinking', thinking: 'I must look.', signature: 'c2ln' },
          { type: 'redacted_thinking', data: 'xxx' },
          { type: 'text', text: 'I look.' },
          call('t1', 'Oslo'),
        ],
        'tool_use',
      ),
      done,
    ],
  },
  'Anthropic: a search of its own, with what it found, beside a call': {
    model: anthropic,
    stopped: 'tool_use',
    history: afterUser,
    answers: [
      message(
        [
          { type: 'text', text: 'I search.' },
          { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'oslo' } },
          {
            type: 'web_search_tool_result',
            tool_use_id: 's1',
            content: [
              {
                type: 'web_search_result',
                url: 'https://a.example/',
                title: 'Oslo',
                encrypted_content: 'ZW5j',
                page_age: null,
              },
            ],
          },
          { type: 'text', text: 'And now the weather.' },
          call('t1', 'Oslo'),
        ],
        'tool_use',
      ),
      done,
    ],
  },
  'DeepSeek: reasoning without a signature': {
    model: (url) => createDeepSeek({ apiKey, baseURL: url })('deepseek-reasoner'),
    history: chatHistory,
    stopped: 'tool_calls',
    answers: [
      chat({ content: 'I look.', reasoning_content: 'I must look.', tool_calls: [chatCall] }),
      chat({ content: 'Sunny.', reasoning_content: 'So.' }, 'stop'),
    ],
  },
  'OpenAI, chat': {
    model: (url) => createOpenAI({ apiKey, baseURL: url }).chat('gpt-5.2'),
    history: chatHistory,
    stopped: 'tool_calls',
    answers: [chat({ content: 'I look.', tool_calls: [chatCall] }), chat({ content: 'Sunny.' }, 'stop')],
  },
  'OpenAI, responses: reasoning items, a search of its own and a call': {
    model: (url) => createOpenAI({ apiKey, baseURL: url }).responses('gpt-5.2'),
    history: ({ body }) =>
      (body['input'] as JsonObject[]).filter(({ role, type }) => !isAsked(role) || type !== undefined),
    answers: [
      responses([
        {
          type: 'reasoning',
          id: 'rs_1',
          summary: [{ type: 'summary_text', text: 'I look.' }],
          encrypted_content: 'ZW5j',
        },
        { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'oslo' } },
        {
          type: 'function_call',
          id: 'fc_1',
          call_id: 'c1',
          name: 'weather',
          arguments: '{"city":"Oslo"}',
          status: 'completed',
        },
      ]),
      responses([
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Sunny.', annotations: [] }],
        },
      ]),
    ],
  },
  'Google: a signed thought and signed calls': {
    model: (url) => createGoogle({ apiKey, baseURL: url })('gemini-3-pro'),
    history: ({ body }) => (body['contents'] as Json[]).slice(1),
    answers: [
      gemini([
        { text: 'I must look.', thought: true },
        { text: 'I look.', thoughtSignature: 'c2ln' },
        { functionCall: { name: 'weather', args: { city: 'Oslo' } }, thoughtSignature: 'c2lnMg==' },
      ]),
      gemini([{ text: 'Sunny.' }]),
    ],
  },
};

function isAsked(role: Json | undefined): boolean {
  return role === 'user' || role === 'system' || role === 'developer';
}

/** The same reply as the events of a stream, each text in two pieces. */
function streamedMessage({ json }: WireAnswer): WireAnswer {
  const { content, stop_reason, ...head } = json as JsonObject & { readonly content: readonly JsonObject[] };
  const events: Json[] = [{ type: 'message_start', message: { ...head, content: [], stop_reason: null } }];
  for (const [index, block] of content.entries()) {
    events.push(...blockEvents(index, block), { type: 'content_block_stop', index });
  }
  events.push({ type: 'message_delta', delta: { stop_reason: stop_reason ?? null, stop_sequence: null }, usage });
  return { events: [...events, { type: 'message_stop' }], named: true };
}

function blockEvents(index: number, block: JsonObject): Json[] {
  const begin = (content_block: JsonObject): Json => ({ type: 'content_block_start', index, content_block });
  const piece = (delta: JsonObject): Json => ({ type: 'content_block_delta', index, delta });
  const halves = (text: unknown): string[] => [String(text).slice(0, 3), String(text).slice(3)];
  switch (block['type']) {
    case 'text':
      return [
        begin({ type: 'text', text: '' }),
        ...halves(block['text']).map((text) => piece({ type: 'text_delta', text })),
      ];
    case 'thinking':
      return [
        begin({ type: 'thinking', thinking: '', signature: '' }),
        ...halves(block['thinking']).map((thinking) => piece({ type: 'thinking_delta', thinking })),
        piece({ type: 'signature_delta', signature: String(block['signature']) }),
      ];
    case 'tool_use':
    case 'server_tool_use':
      return [
        begin({ ...block, input: {} }),
        ...halves(JSON.stringify(block['input'])).map((json) =>
          piece({ type: 'input_json_delta', partial_json: json }),
        ),
      ];
    default:
      return [begin(block)];
  }
}

function streamedChat({ json }: WireAnswer): WireAnswer {
  const { choices, usage: used, ...head } = json as JsonObject & { readonly choices: readonly JsonObject[] };
  const { message: said, finish_reason } = choices[0] as { message: JsonObject; finish_reason: string };
  const chunk = (delta: JsonObject, reason: string | null = null): Json => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  const { reasoning_content, content, tool_calls } = said;
  const events: Json[] = [chunk({ role: 'assistant' })];
  if (reasoning_content !== undefined) events.push(chunk({ reasoning_content }));
  if (content !== undefined) events.push(chunk({ content }));
  if (tool_calls !== undefined) events.push(chunk({ tool_calls: [{ index: 0, ...(tool_calls as JsonObject[])[0] }] }));
  return {
    events: [
      ...events,
      chunk({}, finish_reason),
      { ...head, object: 'chat.completion.chunk', choices: [], usage: used ?? null },
      '[DONE]',
    ],
  };
}

const streamed = Object.entries(cases).flatMap(([name, each]): [string, HistoryCase][] => {
  const stream = name.startsWith('Anthropic')
    ? streamedMessage
    : name.startsWith('DeepSeek')
      ? streamedChat
      : undefined;
  return stream === undefined
    ? []
    : [[`${name}, streamed`, { ...each, stream: true, answers: each.answers.map(stream) }]];
});

describe('the second request', () => {
  it.each([...Object.entries(cases), ...streamed])('has the history that the AI SDK sends: %s', async (_, each) => {
    const sdk = await theirs(each);
    const mine = await ours(each);
    expect(mine.result).toMatchObject({ status: 'finished', answer: 'Sunny.' });
    expect(mine.requests).toHaveLength(sdk.length);
    // Why the provider stopped stands in the entry, in its own word where that is another.
    const [first] = mine.state.steps;
    expect(first?.provenance).toMatchObject({
      finish: 'tool-calls',
      ...(each.stopped === undefined ? {} : { providerFinish: each.stopped }),
    });
    expect(sdk).toHaveLength(2);
    if (each.stream === true) expect(mine.requests[1]?.body).toMatchObject({ stream: true });
    const [our, their] = [mine.requests, sdk].map((requests) => {
      const [, second] = requests;
      return second && withoutMadeIds(asJson([each.history(second)]));
    });
    expect(our).toEqual(their);
  });
});
