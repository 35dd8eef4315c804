/**
 * OpenAI's chat completions, and those who follow them: https://platform.openai.com/docs/api-reference/chat. Where the reasoning
 * stands, where cached tokens are counted and how a call comes in a stream differs from one to the other.
 */
import { createAlibaba } from '@ai-sdk/alibaba';
import { createAzure } from '@ai-sdk/azure';
import { createDeepSeek } from '@ai-sdk/deepseek';
import { createGroq } from '@ai-sdk/groq';
import { createMistral } from '@ai-sdk/mistral';
import { createMoonshotAI } from '@ai-sdk/moonshotai';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createPerplexity } from '@ai-sdk/perplexity';
import type { Json, JsonObject } from '#core';
import { COUNTS, events, halves, type Protocol, type Provider, type Said, type Saying } from './saying.ts';

interface Dialect {
  /** The field of the reasoning; `chunks`: among the parts of `content`, as Mistral has it. */
  readonly thought?: 'reasoning_content' | 'reasoning' | 'chunks';
  readonly usage?: JsonObject;
  /** A call comes in one piece in a stream too. */
  readonly wholeCalls?: boolean;
  /** The usage comes with the last chunk and not behind it. */
  readonly usageWith?: 'last' | 'x_groq';
  readonly failure?: Json;
  /** What stands in place of no text. Default null. */
  readonly noText?: '';
}

const STOPS = {
  end: 'stop',
  calls: 'tool_calls',
  length: 'length',
  refused: 'content_filter',
  paused: 'stop',
} as const;
/** The word says no more than that it was refused. */
const refusedBare = { finish: 'content_filter' } as const;
const totals = {
  prompt_tokens: COUNTS.input,
  completion_tokens: COUNTS.output,
  total_tokens: COUNTS.input + COUNTS.output,
};
const details = {
  prompt_tokens_details: { cached_tokens: COUNTS.cached },
  completion_tokens_details: { reasoning_tokens: COUNTS.thought },
};

function protocol(dialect: Dialect): Protocol {
  const usage: JsonObject = { ...totals, ...(dialect.usage ?? details) };
  const head = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'm' };
  const whole = ({ said, stop }: Saying): Json => ({
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: message(said, dialect), finish_reason: STOPS[stop] }],
    usage,
  });
  const frames = ({ said, stop }: Saying): Uint8Array[] => {
    const chunk = (delta: JsonObject, finish_reason: string | null = null, more: JsonObject = {}): Json => ({
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason }],
      ...more,
    });
    const calls = said.filter((part) => 'call' in part);
    const pieces = said.flatMap((part) => deltas(part, calls.indexOf(part as never), dialect));
    const atEnd: Json[] =
      dialect.usageWith === undefined
        ? [chunk({}, STOPS[stop]), { ...head, object: 'chat.completion.chunk', choices: [], usage }]
        : [chunk({}, STOPS[stop], dialect.usageWith === 'last' ? { usage } : { x_groq: { id: 'req_1', usage } })];
    const deltasOfReply = pieces.map((delta) => chunk(delta));
    return events([chunk({ role: 'assistant', content: '' }), ...deltasOfReply, ...atEnd, '[DONE]']);
  };
  return {
    whole,
    frames,
    mime: 'text/event-stream',
    failure: events([dialect.failure ?? SERVER_ERROR])[0] as Uint8Array,
  };
}

const SERVER_ERROR = {
  error: { message: 'The server had an error while processing your request.', type: 'server_error', code: null },
};

function message(said: readonly Said[], { thought, noText }: Dialect): JsonObject {
  const texts = said.flatMap((part) => ('text' in part ? [part.text] : []));
  const thoughts = said.flatMap((part) => ('thought' in part ? [part.thought] : []));
  const calls = said.flatMap((part) => ('call' in part ? [callOf(part.call, part.args)] : []));
  const content = texts.length === 0 ? (noText ?? null) : texts.join('');
  return {
    role: 'assistant',
    content: thought === 'chunks' && thoughts.length > 0 ? chunksOf(thoughts, texts) : content,
    ...(thought === undefined || thought === 'chunks' || thoughts.length === 0 ? {} : { [thought]: thoughts.join('') }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function chunksOf(thoughts: readonly string[], texts: readonly string[]): Json {
  return [
    ...thoughts.map((text) => ({ type: 'thinking', thinking: [{ type: 'text', text }] })),
    ...texts.map((text) => ({ type: 'text', text })),
  ];
}

function callOf(id: string, args: string): JsonObject {
  return { id, type: 'function', function: { name: 'weather', arguments: args } };
}

function deltas(part: Said, index: number, { thought, wholeCalls = false }: Dialect): JsonObject[] {
  if ('search' in part) return [];
  if ('text' in part) return halves(part.text).map((content) => ({ content }));
  if ('thought' in part) {
    if (thought === undefined) return [];
    return halves(part.thought).map((text) =>
      thought === 'chunks' ? { content: chunksOf([text], []) } : { [thought]: text },
    );
  }
  if (wholeCalls) return [{ tool_calls: [{ index, ...callOf(part.call, part.args) }] }];
  return [
    { tool_calls: [{ index, ...callOf(part.call, '') }] },
    ...halves(part.args).map((args) => ({ tool_calls: [{ index, function: { arguments: args } }] })),
  ];
}

/** @param message as the server says that a request is too long. */
function tooLong(message: string, more: JsonObject = {}): Provider['tooLong'] {
  return { status: 400, json: { error: { message, type: 'invalid_request_error', ...more } } };
}

const TOO_LONG = tooLong(
  "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
  { param: 'messages', code: 'context_length_exceeded' },
);

const apiKey = 'k';
const thinking = { places: ['calls', 'thought'], noArgs: ['{}', ''], refusal: refusedBare } as const;
const plain = { places: ['calls'], noArgs: ['{}', ''], refusal: refusedBare } as const;

export const chats: readonly Provider[] = [
  {
    name: 'openai, chat',
    model: (at) => createOpenAI({ apiKey, ...at }).chat('gpt-4.1'),
    ...plain,
    ...protocol({}),
    tooLong: TOO_LONG,
  },
  {
    name: 'azure, chat',
    model: (at) => createAzure({ apiKey, ...at }).chat('gpt-4.1'),
    ...plain,
    ...protocol({}),
    tooLong: TOO_LONG,
  },
  {
    name: 'groq',
    model: (at) => createGroq({ apiKey, ...at })('openai/gpt-oss-120b'),
    ...thinking,
    ...protocol({ thought: 'reasoning', usageWith: 'x_groq' }),
    tooLong: tooLong('Please reduce the length of the messages or completion.', {
      param: 'messages',
      code: 'context_length_exceeded',
    }),
  },
  {
    name: 'deepseek',
    model: (at) => createDeepSeek({ apiKey, ...at })('deepseek-reasoner'),
    ...thinking,
    ...protocol({
      thought: 'reasoning_content',
      usageWith: 'last',
      usage: {
        prompt_cache_hit_tokens: COUNTS.cached,
        prompt_cache_miss_tokens: COUNTS.input - COUNTS.cached,
        completion_tokens_details: { reasoning_tokens: COUNTS.thought },
      },
    }),
    tooLong: tooLong(
      "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (132000 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.",
      { param: null, code: 'invalid_request_error' },
    ),
  },
  {
    name: 'mistral',
    model: (at) => createMistral({ apiKey, ...at })('magistral-medium-2509'),
    ...thinking,
    ...protocol({ thought: 'chunks', usageWith: 'last', wholeCalls: true, usage: {} }),
    tooLong: {
      status: 400,
      json: {
        object: 'error',
        message:
          'Prompt contains 130000 tokens and 0 draft tokens, too large for model with 128000 maximum context length',
        type: 'invalid_request_error',
        param: null,
        code: '3051',
      },
    },
  },
  {
    name: 'alibaba',
    model: (at) => createAlibaba({ apiKey, ...at })('qwen3-max'),
    ...thinking,
    ...protocol({ thought: 'reasoning_content' }),
    tooLong: tooLong('Range of input length should be [1, 258048]', { param: null, code: 'invalid_parameter_error' }),
  },
  {
    name: 'moonshotai',
    model: (at) => createMoonshotAI({ apiKey, ...at })('kimi-k2-thinking'),
    ...thinking,
    ...protocol({ thought: 'reasoning_content', usage: { cached_tokens: COUNTS.cached } }),
    tooLong: tooLong('Invalid request: Your request exceeded model token limit: 262144'),
  },
  {
    name: 'openai-compatible',
    model: (at) => createOpenAICompatible({ name: 'local', apiKey, includeUsage: true, ...at })('glm-4.6'),
    ...thinking,
    ...protocol({ thought: 'reasoning_content' }),
    tooLong: TOO_LONG,
  },
  {
    name: 'perplexity',
    model: (at) => createPerplexity({ apiKey, ...at })('sonar-pro'),
    places: [],
    noArgs: [],
    refusal: refusedBare,
    ...protocol({ usageWith: 'last', usage: {}, noText: '' }),
    tooLong: tooLong('Input is too long for the requested model: the context window of 200000 tokens was exceeded.', {
      code: 400,
    }),
  },
];
