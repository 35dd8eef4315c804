/** Google's generateContent: https://ai.google.dev/api/generate-content */
import { createGoogle } from '@ai-sdk/google';
import type { Json, JsonObject } from '#core';
import { argsObject, COUNTS, events, halves, type Provider, type Said } from './saying.ts';

const STOPS = { end: 'STOP', calls: 'STOP', length: 'MAX_TOKENS', refused: 'SAFETY', paused: 'STOP' } as const;
const usageMetadata = {
  promptTokenCount: COUNTS.input,
  cachedContentTokenCount: COUNTS.cached,
  candidatesTokenCount: COUNTS.output - COUNTS.thought,
  thoughtsTokenCount: COUNTS.thought,
  totalTokenCount: COUNTS.input + COUNTS.output,
};

const safetyRatings = [
  { category: 'HARM_CATEGORY_HARASSMENT', probability: 'NEGLIGIBLE' },
  { category: 'HARM_CATEGORY_DANGEROUS_CONTENT', probability: 'HIGH', blocked: true },
];

function response(parts: readonly Json[], finishReason?: string): Json {
  const ended = finishReason === undefined ? {} : { finishReason };
  const rated = finishReason === STOPS.refused ? { safetyRatings } : {};
  return {
    candidates: [{ index: 0, content: { role: 'model', parts }, ...ended, ...rated }],
    usageMetadata,
    modelVersion: 'gemini-3-pro-preview',
    responseId: 'r1',
  };
}

/** A signature stands at the call, and at the last part of a text. */
function part(said: Said): JsonObject {
  if ('text' in said) return { text: said.text };
  if ('thought' in said) {
    return {
      text: said.thought,
      thought: true,
      ...(said.sealed === undefined ? {} : { thoughtSignature: said.sealed }),
    };
  }
  if ('search' in said) throw new Error('Google searches without a call.');
  const functionCall = { name: 'weather', ...(said.args === '' ? {} : { args: argsObject(said.args) }) };
  return { functionCall, thoughtSignature: `sealed-${said.call}` };
}

function pieces(said: Said): JsonObject[] {
  if ('call' in said) return [part(said)];
  const { text, ...more } = part(said);
  const split = halves(String(text));
  return split.map((half, index) => ({
    text: half,
    ...(index === split.length - 1 ? more : { thought: 'thought' in said }),
  }));
}

export const google: Provider = {
  name: 'google',
  model: (at) => createGoogle({ apiKey: 'k', ...at })('gemini-3-pro-preview'),
  places: ['calls', 'thought', 'sealed', 'between'],
  noArgs: ['{}', ''],
  refusal: { finish: 'SAFETY', category: 'HARM_CATEGORY_DANGEROUS_CONTENT' },
  whole: ({ said, stop }) => response(said.map(part), STOPS[stop]),
  frames: ({ said, stop }) =>
    events([
      ...said.flatMap((each) => pieces(each).map((piece) => response([piece]))),
      response([{ text: '' }], STOPS[stop]),
    ]),
  mime: 'text/event-stream',
  failure: events([
    { error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' } },
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
