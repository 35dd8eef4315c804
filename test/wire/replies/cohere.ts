/** Cohere's chat, version 2: https://docs.cohere.com/reference/chat and …/chat-stream */
import { createCohere } from '@ai-sdk/cohere';
import type { Json, JsonObject } from '#core';
import { COUNTS, events, halves, type Provider, type Said, type Saying } from './saying.ts';

const STOPS = {
  end: 'COMPLETE',
  calls: 'TOOL_CALL',
  length: 'MAX_TOKENS',
  refused: 'ERROR_TOXIC',
  paused: 'COMPLETE',
} as const;
const tokens = { input_tokens: COUNTS.input, output_tokens: COUNTS.output };
const usage = { billed_units: tokens, tokens, cached_tokens: COUNTS.cached };

function call(id: string, args: string): JsonObject {
  return { id, type: 'function', function: { name: 'weather', arguments: args } };
}

function whole({ said, stop }: Saying): Json {
  const content = said.flatMap((part): Json[] => {
    if ('text' in part) return [{ type: 'text', text: part.text }];
    return 'thought' in part ? [{ type: 'thinking', thinking: part.thought }] : [];
  });
  const calls = said.flatMap((part) => ('call' in part ? [call(part.call, part.args)] : []));
  return {
    id: 'c1',
    generation_id: 'c1',
    message: {
      role: 'assistant',
      ...(content.length === 0 ? {} : { content }),
      ...(calls.length === 0 ? {} : { tool_plan: 'I look.', tool_calls: calls }),
    },
    finish_reason: STOPS[stop],
    usage,
  };
}

function frames({ said, stop }: Saying): Uint8Array[] {
  const message = (type: string, index: number, inner: JsonObject): JsonObject => ({
    type,
    index,
    delta: { message: inner },
  });
  const pieces = said.flatMap((part, index): JsonObject[] => {
    if ('call' in part) {
      const { call: id, args } = part;
      return [
        message('tool-call-start', index, { tool_calls: call(id, '') }),
        ...halves(args).map((half) =>
          message('tool-call-delta', index, { tool_calls: { function: { arguments: half } } }),
        ),
        { type: 'tool-call-end', index },
      ];
    }
    const key = 'text' in part ? 'text' : 'thinking';
    const text = wordsOf(part);
    return [
      message('content-start', index, { content: { type: key, [key]: '' } }),
      ...halves(text).map((half) => message('content-delta', index, { content: { [key]: half } })),
      { type: 'content-end', index },
    ];
  });
  return events(
    [
      { type: 'message-start', id: 'c1', delta: { message: { role: 'assistant', content: [] } } },
      ...pieces,
      { type: 'message-end', delta: { finish_reason: STOPS[stop], usage } },
    ],
    { named: true },
  );
}

function wordsOf(part: Exclude<Said, { call: string }>): string {
  if ('search' in part) throw new Error('Cohere has no searches.');
  return 'text' in part ? part.text : part.thought;
}

export const cohere: Provider = {
  name: 'cohere',
  model: (at) => createCohere({ apiKey: 'k', ...at })('command-a-reasoning-08-2025'),
  places: ['calls', 'thought'],
  noArgs: ['{}', 'null', ''],
  refusal: { finish: 'ERROR_TOXIC', category: 'ERROR_TOXIC' },
  whole,
  frames,
  mime: 'text/event-stream',
  // Cohere ends a stream that failed with a reason of its own.
  failure: events([{ type: 'message-end', delta: { finish_reason: 'ERROR', error: 'internal server error', usage } }], {
    named: true,
  })[0] as Uint8Array,
  tooLong: {
    status: 400,
    json: {
      message:
        'too many tokens: total number of tokens in the prompt cannot exceed 131072 - received 140000. Try using a shorter prompt, or enable prompt truncating.',
    },
  },
};
