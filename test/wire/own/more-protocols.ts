/** The same contents as `protocols.ts` has them, behind other providers; and protocols with contents of their own. */
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAmazonBedrockAnthropic } from '@ai-sdk/amazon-bedrock/anthropic';
import { createAzure } from '@ai-sdk/azure';
import { createGoogle } from '@ai-sdk/google';
import { createGroq } from '@ai-sdk/groq';
import { createMistral } from '@ai-sdk/mistral';
import type { Json, JsonObject } from '#core';
import { type Answer, jsonAnswer } from '../pieces.ts';
import { event } from '../replies/bedrock.ts';
import { halves } from '../replies/saying.ts';
import {
  anthropicEvents,
  anthropicMessage,
  geminiAnswer,
  type OwnProtocol,
  responsesAnswer,
  sse,
} from './protocols.ts';

const apiKey = 'k';
const place = { region: 'us-east-1', apiKey };
const CLAUDE = 'anthropic.claude-sonnet-4-5-20250929-v1:0';
const FRAMES = 'application/vnd.amazon.eventstream';

function framed(frames: readonly Uint8Array[]): Answer {
  return { status: 200, mime: FRAMES, body: Buffer.concat(frames) };
}

export const azure: OwnProtocol = {
  model: (at) => createAzure({ apiKey, ...at }).responses('gpt-5.2'),
  answer: responsesAnswer,
};

/** Anthropic's Messages on Bedrock. */
export const bedrockAnthropic: OwnProtocol = {
  model: (at) => createAmazonBedrockAnthropic({ ...place, ...at })(CLAUDE),
  answer: (blocks, stop, stream) =>
    stream
      ? framed(
          anthropicEvents(blocks, stop).map((each) =>
            event('chunk', { bytes: Buffer.from(JSON.stringify(each)).toString('base64') }),
          ),
        )
      : anthropicMessage(blocks, stop),
};

const converseUsage = { inputTokens: 90, outputTokens: 30, totalTokens: 120 };

/** Bedrock's Converse: contents are texts and calls (`toolUse`). */
export const converse: OwnProtocol = {
  model: (at) => createAmazonBedrock({ ...place, ...at })(CLAUDE),
  answer: (content, stopReason, stream) =>
    stream
      ? framed([
          event('messageStart', { role: 'assistant' }),
          ...content.flatMap(converseFrames),
          event('messageStop', { stopReason }),
          event('metadata', { usage: converseUsage, metrics: { latencyMs: 5 } }),
        ])
      : jsonAnswer({
          output: { message: { role: 'assistant', content } },
          stopReason,
          usage: converseUsage,
          metrics: { latencyMs: 5 },
        }),
};

function converseFrames({ text, toolUse }: JsonObject, contentBlockIndex: number): Uint8Array[] {
  const piece = (delta: Json): Uint8Array => event('contentBlockDelta', { contentBlockIndex, delta });
  const end = event('contentBlockStop', { contentBlockIndex });
  if (typeof text === 'string') return [...halves(text).map((half) => piece({ text: half })), end];
  const { input = {}, ...start } = toolUse as JsonObject;
  return [
    event('contentBlockStart', { contentBlockIndex, start: { toolUse: start } }),
    ...halves(JSON.stringify(input)).map((half) => piece({ toolUse: { input: half } })),
    end,
  ];
}

/** Google's models as the package for Vertex calls them. */
export const vertex: OwnProtocol = {
  model: (at) => createGoogle({ apiKey, name: 'google.vertex.chat', ...at })('gemini-3-pro'),
  answer: geminiAnswer,
};

const interaction = { id: 'int_1', model: 'gemini-3-pro-preview', created: '2026-01-01T00:00:00Z' };
const interactionUsage = { total_input_tokens: 90, total_output_tokens: 30, total_tokens: 120 };

/** Google's Interactions: contents are steps. */
export const interactions: OwnProtocol = {
  model: (at) => createGoogle({ apiKey, ...at }).interactions('gemini-3-pro-preview'),
  answer: (steps, status, stream) =>
    stream
      ? sse(
          [
            { event_type: 'interaction.created', interaction: { ...interaction, status: 'in_progress' } },
            ...steps.flatMap(stepEvents),
            { event_type: 'interaction.completed', interaction: { ...interaction, status, usage: interactionUsage } },
          ],
          false,
        )
      : jsonAnswer({ ...interaction, object: 'interaction', status, steps, usage: interactionUsage }),
};

function stepEvents(step: JsonObject, index: number): JsonObject[] {
  const piece = (delta: JsonObject): JsonObject => ({ event_type: 'step.delta', index, delta });
  const begin = (begun: JsonObject): JsonObject => ({ event_type: 'step.start', index, step: begun });
  const end = { event_type: 'step.stop', index };
  if (step['type'] === 'model_output') {
    const [{ text } = { text: '' }] = step['content'] as readonly { text: string }[];
    return [begin({ type: 'model_output' }), ...halves(text).map((half) => piece({ type: 'text', text: half })), end];
  }
  if (step['type'] === 'function_call') {
    const { arguments: given = {}, ...begun } = step;
    return [
      begin(begun),
      ...halves(JSON.stringify(given)).map((half) => piece({ type: 'arguments_delta', arguments: half })),
      end,
    ];
  }
  return [begin(step), end];
}

const chatUsage = { prompt_tokens: 90, completion_tokens: 30, total_tokens: 120 };
const chat = { id: 'chat_1', created: 1_700_000_000, model: 'openai/gpt-oss-120b' };

/** Groq's chat: one content, a text. What its search did it tells in `executed_tools`, which the package leaves out. */
export const groq: OwnProtocol = {
  model: (at) => createGroq({ apiKey, ...at })('openai/gpt-oss-120b'),
  answer: ([{ content = '' } = {}], finish_reason, stream) =>
    stream
      ? sse(
          [
            ...halves(String(content)).map((half) => ({
              ...{ ...chat, object: 'chat.completion.chunk' },
              choices: [{ index: 0, delta: { content: half }, finish_reason: null }],
            })),
            {
              ...{ ...chat, object: 'chat.completion.chunk' },
              choices: [{ index: 0, delta: {}, finish_reason }],
              x_groq: { id: 'req_1', usage: chatUsage },
            },
          ],
          false,
        )
      : jsonAnswer({
          ...chat,
          object: 'chat.completion',
          choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason }],
          usage: chatUsage,
        }),
};

/** Mistral's Conversations: contents are outputs. */
export const conversations: OwnProtocol = {
  model: (at) => createMistral({ apiKey, ...at }).conversation('mistral-large-latest'),
  answer: (outputs, _stop, stream) =>
    stream
      ? sse(
          [
            { type: 'conversation.response.started', conversation_id: 'conv_1' },
            ...outputs.flatMap(outputEvents),
            { type: 'conversation.response.done', usage: chatUsage },
          ],
          true,
        )
      : jsonAnswer({ conversation_id: 'conv_1', object: 'conversation.response', outputs, usage: chatUsage }),
};

function outputEvents(output: JsonObject, output_index: number): JsonObject[] {
  const { type, id = `out_${output_index}`, arguments: given = '', info, ...rest } = output;
  switch (type) {
    case 'message.output':
      return halves(String(output['content'])).map((content) => ({ type: 'message.output.delta', id, content }));
    case 'tool.execution': {
      const [first = '', second = ''] = halves(String(given));
      return [
        { ...rest, type: 'tool.execution.started', id, arguments: first },
        { ...rest, type: 'tool.execution.delta', id, arguments: second },
        { type: 'tool.execution.done', id, name: String(rest['name']), ...(info === undefined ? {} : { info }) },
      ];
    }
    default:
      return halves(String(given)).map((half) => ({
        ...{ ...rest, type: 'function.call.delta', id, output_index },
        arguments: half,
      }));
  }
}
