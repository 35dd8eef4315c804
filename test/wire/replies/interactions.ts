/** Google's Interactions: https://ai.google.dev/gemini-api/docs/interactions */
import { createGoogle } from '@ai-sdk/google';
import type { Json, JsonObject } from '#core';
import { argsObject, COUNTS, events, halves, type Provider, type Said, type Saying } from './saying.ts';

const STOPS = {
  end: 'completed',
  calls: 'requires_action',
  length: 'incomplete',
  refused: 'failed',
  paused: 'completed',
} as const;
const usage = {
  total_input_tokens: COUNTS.input,
  total_cached_tokens: COUNTS.cached,
  total_output_tokens: COUNTS.output - COUNTS.thought,
  total_thought_tokens: COUNTS.thought,
  total_tokens: COUNTS.input + COUNTS.output,
};
const head = { id: 'int_1', model: 'gemini-3-pro-preview', created: '2026-01-01T00:00:00Z' };

function step(said: Said): JsonObject {
  if ('text' in said) return { type: 'model_output', content: [{ type: 'text', text: said.text }] };
  if ('thought' in said) {
    return {
      type: 'thought',
      summary: [{ type: 'text', text: said.thought }],
      ...(said.sealed === undefined ? {} : { signature: said.sealed }),
    };
  }
  if ('search' in said) throw new Error('Its searches are tried elsewhere.');
  return {
    type: 'function_call',
    id: said.call,
    name: 'weather',
    ...(said.args === '' ? {} : { arguments: argsObject(said.args) }),
    signature: `sealed-${said.call}`,
  };
}

function stepEvents(said: Said, index: number): JsonObject[] {
  const begin = (begun: Json): JsonObject => ({ event_type: 'step.start', index, step: begun });
  const piece = (delta: Json): JsonObject => ({ event_type: 'step.delta', index, delta });
  const end = { event_type: 'step.stop', index };
  if ('text' in said) {
    return [begin({ type: 'model_output' }), ...halves(said.text).map((text) => piece({ type: 'text', text })), end];
  }
  if ('thought' in said) {
    return [
      begin({ type: 'thought' }),
      ...halves(said.thought).map((text) => piece({ type: 'thought_summary', content: { type: 'text', text } })),
      ...(said.sealed === undefined ? [] : [piece({ type: 'thought_signature', signature: said.sealed })]),
      end,
    ];
  }
  if ('search' in said) throw new Error('Its searches are tried elsewhere.');
  return [
    begin({ type: 'function_call', id: said.call, name: 'weather', signature: `sealed-${said.call}` }),
    ...halves(said.args).map((args) => piece({ type: 'arguments_delta', arguments: args })),
    end,
  ];
}

function frames({ said, stop }: Saying): Uint8Array[] {
  return events([
    { event_type: 'interaction.created', interaction: { ...head, status: 'in_progress' } },
    ...said.flatMap(stepEvents),
    { event_type: 'interaction.completed', interaction: { ...head, status: STOPS[stop], usage } },
    '[DONE]',
  ]);
}

export const interactions: Provider = {
  name: 'google, interactions',
  model: (at) => createGoogle({ apiKey: 'k', ...at }).interactions('gemini-3-pro-preview'),
  places: ['calls', 'thought', 'sealed', 'between'],
  noArgs: ['{}', ''],
  whole: ({ said, stop }) => ({ ...head, object: 'interaction', status: STOPS[stop], steps: said.map(step), usage }),
  frames,
  mime: 'text/event-stream',
  failure: events([
    { event_type: 'error', error: { code: 'internal_error', message: 'An internal error has occurred.' } },
  ])[0] as Uint8Array,
  tooLong: {
    status: 400,
    json: {
      error: {
        code: 400,
        message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
        status: 'INVALID_ARGUMENT',
      },
    },
  },
};
