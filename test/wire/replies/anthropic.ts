/** Anthropic's Messages: https://platform.claude.com/docs/en/api/messages and …/build-with-claude/streaming */
import { createAnthropic } from '@ai-sdk/anthropic';
import type { Json, JsonObject } from '#core';
import { argsObject, COUNTS, events, halves, type Provider, type Said, type Saying } from './saying.ts';

const STOPS = {
  end: 'end_turn',
  calls: 'tool_use',
  length: 'max_tokens',
  refused: 'refusal',
  paused: 'pause_turn',
} as const;
const stopped = (stop: Saying['stop']): JsonObject => ({
  stop_reason: STOPS[stop],
  stop_sequence: null,
  ...(stop === 'refused'
    ? { stop_details: { type: 'refusal', category: 'cyber', explanation: 'It is about attacks.' } }
    : {}),
});
export const refusal = { finish: 'refusal', category: 'cyber', message: 'It is about attacks.' } as const;
const input = {
  input_tokens: COUNTS.input - COUNTS.cached,
  cache_read_input_tokens: COUNTS.cached,
  cache_creation_input_tokens: 0,
};
const head = { type: 'message', id: 'msg_1', role: 'assistant', model: 'claude-sonnet-4-5' };

export function whole({ said, stop }: Saying): Json {
  return {
    ...head,
    content: said.flatMap(blocks),
    ...stopped(stop),
    usage: { ...input, output_tokens: COUNTS.output },
  };
}

function blocks(part: Said): Json[] {
  if (!('search' in part)) return [block(part)];
  const { search, found } = part;
  const use = { type: 'server_tool_use', id: search, name: 'web_search', input: { query: 'sun' } };
  return found === undefined ? [use] : [use, pageFound(search, found)];
}

function pageFound(search: string, url: string): JsonObject {
  const page = { type: 'web_search_result', url, title: 'Sun', encrypted_content: 'ZW5j', page_age: null };
  return { type: 'web_search_tool_result', tool_use_id: search, content: [page] };
}

function block(part: Exclude<Said, { search: string }>): Json {
  if ('text' in part) return { type: 'text', text: part.text };
  if ('thought' in part) {
    return part.thought === ''
      ? { type: 'redacted_thinking', data: part.sealed ?? '' }
      : { type: 'thinking', thinking: part.thought, signature: part.sealed ?? '' };
  }
  return { type: 'tool_use', id: part.call, name: 'weather', input: argsObject(part.args) };
}

/** The events of a stream, without their frames: Bedrock has others. */
export function streamEvents({ said, stop }: Saying): JsonObject[] {
  return [
    {
      type: 'message_start',
      message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage: { ...input, output_tokens: 1 } },
    },
    { type: 'ping' },
    ...said
      .flatMap((part) => ('search' in part && part.found !== undefined ? [{ search: part.search }, part] : [part]))
      .flatMap(blockEvents),
    {
      type: 'message_delta',
      delta: stopped(stop),
      usage: { output_tokens: COUNTS.output },
    },
    { type: 'message_stop' },
  ];
}

function blockEvents(part: Said, index: number): JsonObject[] {
  const begin = (content_block: Json): JsonObject => ({ type: 'content_block_start', index, content_block });
  const piece = (delta: Json): JsonObject => ({ type: 'content_block_delta', index, delta });
  const end = { type: 'content_block_stop', index };
  if ('search' in part) {
    if (part.found !== undefined) return [begin(pageFound(part.search, part.found)), end];
    return [
      begin({ type: 'server_tool_use', id: part.search, name: 'web_search', input: {} }),
      ...halves('{"query":"sun"}').map((json) => piece({ type: 'input_json_delta', partial_json: json })),
      end,
    ];
  }
  if ('text' in part) {
    const pieces = halves(part.text).map((text) => piece({ type: 'text_delta', text }));
    return [begin({ type: 'text', text: '' }), ...pieces, end];
  }
  if ('thought' in part) {
    if (part.thought === '') return [begin(block(part)), end];
    return [
      begin({ type: 'thinking', thinking: '', signature: '' }),
      ...halves(part.thought).map((thinking) => piece({ type: 'thinking_delta', thinking })),
      ...(part.sealed === undefined ? [] : [piece({ type: 'signature_delta', signature: part.sealed })]),
      end,
    ];
  }
  return [
    begin({ type: 'tool_use', id: part.call, name: 'weather', input: {} }),
    ...['', ...halves(part.args)].map((json) => piece({ type: 'input_json_delta', partial_json: json })),
    end,
  ];
}

export const failure = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } as const;

export const anthropic: Provider = {
  name: 'anthropic',
  model: (at) => createAnthropic({ apiKey: 'k', ...at })('claude-sonnet-4-5'),
  places: ['calls', 'thought', 'sealed', 'between', 'paused'],
  refusal,
  noArgs: ['', '{}'],
  whole,
  frames: (saying) => events(streamEvents(saying), { named: true }),
  mime: 'text/event-stream',
  failure: events([failure], { named: true })[0] as Uint8Array,
  tooLong: {
    status: 400,
    json: {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
    },
  },
};
