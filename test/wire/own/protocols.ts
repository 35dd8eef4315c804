/** Replies with what providers do beside texts and calls of functions: their contents as the protocols have them, in one piece and as a stream. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { createXai } from '@ai-sdk/xai';
import type { Json, JsonObject } from '#core';
import { type Answer, jsonAnswer } from '../pieces.ts';
import { type At, events, halves } from '../replies/saying.ts';

export interface OwnProtocol {
  readonly model: (at: At) => LanguageModelV4;
  /** A reply of these contents: blocks of Anthropic, items of OpenAI, parts of Google. */
  readonly answer: (contents: readonly JsonObject[], stop: string, stream: boolean) => Answer;
}

const apiKey = 'k';
const MESSAGE = { type: 'message', id: 'msg_1', role: 'assistant', model: 'claude-sonnet-4-5', stop_sequence: null };
const USAGE = { input_tokens: 90, output_tokens: 30 };

export function sse(data: readonly JsonObject[], named: boolean): Answer {
  return { status: 200, mime: 'text/event-stream', body: Buffer.concat(events(data, { named })) };
}

function anthropicAnswer(blocks: readonly JsonObject[], stop_reason: string, stream: boolean): Answer {
  return stream ? sse(anthropicEvents(blocks, stop_reason), true) : anthropicMessage(blocks, stop_reason);
}

export function anthropicMessage(content: readonly JsonObject[], stop_reason: string): Answer {
  return jsonAnswer({ ...MESSAGE, content, stop_reason, usage: USAGE });
}

export function anthropicEvents(blocks: readonly JsonObject[], stop_reason: string): JsonObject[] {
  return [
    {
      type: 'message_start',
      message: { ...MESSAGE, content: [], stop_reason: null, usage: { ...USAGE, output_tokens: 1 } },
    },
    ...blocks.flatMap(blockEvents),
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 30 } },
    { type: 'message_stop' },
  ];
}

function blockEvents(block: JsonObject, index: number): JsonObject[] {
  const { type, input, text } = block;
  const piece = (delta: JsonObject): JsonObject => ({ type: 'content_block_delta', index, delta });
  const pieces =
    type === 'text'
      ? halves(String(text)).map((half) => piece({ type: 'text_delta', text: half }))
      : // What a remote server is asked comes whole.
        input === undefined || type === 'mcp_tool_use'
        ? []
        : ['', ...halves(JSON.stringify(input))].map((half) => piece({ type: 'input_json_delta', partial_json: half }));
  const begun = {
    ...block,
    ...(type === 'text' ? { text: '' } : {}),
    ...(pieces.length === 0 || type === 'text' ? {} : { input: {} }),
  };
  return [
    { type: 'content_block_start', index, content_block: begun },
    ...pieces,
    { type: 'content_block_stop', index },
  ];
}

const RESPONSE = { id: 'resp_1', object: 'response', created_at: 1_700_000_000, model: 'gpt-x' };

export function responsesAnswer(output: readonly JsonObject[], _stop: string, stream: boolean): Answer {
  const usage = {
    ...USAGE,
    total_tokens: 120,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const whole = { ...RESPONSE, status: 'completed', incomplete_details: null, error: null, output, usage };
  if (!stream) return jsonAnswer(whole);
  const begun = { ...RESPONSE, status: 'in_progress', output: [] };
  const data: JsonObject[] = [
    { type: 'response.created', response: begun },
    ...output.flatMap(itemEvents),
    { type: 'response.completed', response: whole },
  ];
  return sse(
    data.map((event, sequence_number) => ({ ...event, sequence_number })),
    true,
  );
}

function itemEvents(item: JsonObject, output_index: number): JsonObject[] {
  const at = { item_id: String(item['id']), output_index };
  const whole: JsonObject = { type: 'response.output_item.done', output_index, item };
  const begin = (more: JsonObject): JsonObject => ({
    type: 'response.output_item.added',
    output_index,
    item: { ...item, status: 'in_progress', ...more },
  });
  const pieces = (type: string, text: Json | undefined): JsonObject[] =>
    halves(String(text)).map((delta) => ({ type, ...at, delta }));
  switch (item['type']) {
    case 'message': {
      const [{ text } = { text: '' }] = item['content'] as readonly { text: string }[];
      const where = { content_index: 0, logprobs: [] };
      return [
        begin({ content: [] }),
        ...pieces('response.output_text.delta', text).map((piece) => ({ ...piece, ...where })),
        whole,
      ];
    }
    case 'function_call':
      return [begin({ arguments: '' }), ...pieces('response.function_call_arguments.delta', item['arguments']), whole];
    case 'custom_tool_call':
      return [begin({ input: '' }), ...pieces('response.custom_tool_call_input.delta', item['input']), whole];
    case 'program_output':
      return [begin({ status: 'incomplete' }), whole];
    default:
      return [begin({}), whole];
  }
}

export function geminiAnswer(parts: readonly JsonObject[], finishReason: string, stream: boolean): Answer {
  const usageMetadata = { promptTokenCount: 90, candidatesTokenCount: 30, totalTokenCount: 120 };
  const chunk = (some: readonly JsonObject[], more: JsonObject): JsonObject => ({
    candidates: [{ index: 0, content: { role: 'model', parts: some }, ...more }],
    usageMetadata,
    modelVersion: 'gemini-x',
  });
  if (!stream) return jsonAnswer(chunk(parts, { finishReason }));
  const chunks = parts.map((part, at) => chunk([part], at === parts.length - 1 ? { finishReason } : {}));
  return sse(chunks, false);
}

export const anthropic: OwnProtocol = {
  model: (at) => createAnthropic({ apiKey, ...at })('claude-sonnet-4-5'),
  answer: anthropicAnswer,
};
export const openai: OwnProtocol = {
  model: (at) => createOpenAI({ apiKey, ...at }).responses('gpt-5.2'),
  answer: responsesAnswer,
};
export const xai: OwnProtocol = {
  model: (at) => createXai({ apiKey, ...at }).responses('grok-4'),
  answer: responsesAnswer,
};
export const google: OwnProtocol = {
  model: (at) => createGoogle({ apiKey, ...at })('gemini-3-pro'),
  answer: geminiAnswer,
};

/** A text as the protocol has it. */
export const says = {
  anthropic: (text: string): JsonObject => ({ type: 'text', text }),
  openai: (text: string): JsonObject => ({
    ...{ type: 'message', id: `msg_${text.length}`, role: 'assistant', status: 'completed' },
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  }),
  google: (text: string): JsonObject => ({ text }),
};
