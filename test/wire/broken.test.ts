/** Words for a reply that its server has not brought to its end: half of a text is no answer, though the provider's package knows nothing of the word. */
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createCohere } from '@ai-sdk/cohere';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { expect, it } from 'vitest';
import type { Json } from '#core';
import { react } from '#planners/react';
import { start, world } from '../kit/world.ts';
import { jsonAnswer, type Wire, whole, wire } from './pieces.ts';

type Fetch = Wire['fetch'];
const baseURL = 'http://provider.test';

/** A provider's model, and its reply of a text that ends with a word. */
interface Server {
  readonly model: (fetch: Fetch) => LanguageModelV4;
  readonly says: (text: string, finish: string) => Json;
}

const COHERE: Server = {
  model: (fetch) => createCohere({ apiKey: 'k', baseURL, fetch })('command'),
  says: (text, finish_reason) => ({
    ...{ id: 'c', finish_reason, message: { role: 'assistant', content: [{ type: 'text', text }] } },
    usage: { tokens: { input_tokens: 9, output_tokens: 3 } },
  }),
};
const BEDROCK: Server = {
  model: (fetch) => createAmazonBedrock({ apiKey: 'k', region: 'eu-west-1', baseURL, fetch })('amazon.nova'),
  says: (text, stopReason) => ({
    ...{ output: { message: { role: 'assistant', content: [{ text }] } }, stopReason, metrics: { latencyMs: 1 } },
    usage: { inputTokens: 9, outputTokens: 3, totalTokens: 12 },
  }),
};
const GOOGLE: Server = {
  model: (fetch) => createGoogle({ apiKey: 'k', baseURL, fetch })('gemini-3'),
  says: (text, finishReason) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason }],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 },
  }),
};
const GATEWAY: Server = {
  model: (fetch) => createOpenAICompatible({ name: 'gateway', baseURL, fetch }).chatModel('m'),
  says: (content, finish_reason) => ({
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason }],
    usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
  }),
};

async function answerOf({ model, says }: Server, word: string, end: string): Promise<unknown> {
  const sent = wire([jsonAnswer(says('One, ', word)), jsonAnswer(says('two.', end))], whole);
  const run = await start(world({ planner: react({ model: model(sent.fetch) }) }));
  const result = await run.result();
  return result.status === 'finished' ? result.answer : result;
}

it.each([
  ['Cohere', 'TIMEOUT', COHERE, 'COMPLETE'],
  ['Bedrock', 'malformed_model_output', BEDROCK, 'end_turn'],
  ['Google', 'TOO_MANY_TOOL_CALLS', GOOGLE, 'STOP'],
  ['a gateway', 'error', GATEWAY, 'stop'],
  ['vLLM', 'abort', GATEWAY, 'stop'],
  ['Zhipu', 'network_error', GATEWAY, 'stop'],
] as const)('%s says %s: the model is asked again', async (_, word, server, end) => {
  expect(await answerOf(server, word, end)).toBe('two.');
});

it('Cohere says ERROR_LIMIT: the answer goes on', async () => {
  expect(await answerOf(COHERE, 'ERROR_LIMIT', 'COMPLETE')).toBe('One, two.');
});
