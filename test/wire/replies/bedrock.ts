/**
 * Amazon Bedrock's Converse, and Anthropic's Messages on Bedrock:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html. Its streams are frames of bytes with lengths
 * and checksums (https://smithy.io/2.0/aws/amazon-eventstream.html).
 */
import { crc32 } from 'node:zlib';
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAmazonBedrockAnthropic } from '@ai-sdk/amazon-bedrock/anthropic';
import type { Json, JsonObject } from '#core';
import { refusal, streamEvents, whole as wholeMessage } from './anthropic.ts';
import { argsObject, bytesOf, COUNTS, halves, type Provider, type Said, type Saying } from './saying.ts';

const STOPS = {
  end: 'end_turn',
  calls: 'tool_use',
  length: 'max_tokens',
  refused: 'guardrail_intervened',
  paused: 'end_turn',
} as const;
const trace = { guardrail: { actionReason: 'Guardrail blocked.' } };
const usage = {
  inputTokens: COUNTS.input - COUNTS.cached,
  cacheReadInputTokens: COUNTS.cached,
  cacheWriteInputTokens: 0,
  outputTokens: COUNTS.output,
  totalTokens: COUNTS.input + COUNTS.output,
};

/** One frame: its length, the length of its headers, a checksum of both, headers, payload, and a checksum of all. */
function frame(headers: Readonly<Record<string, string>>, payload: Json): Uint8Array {
  const written = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const body = bytesOf(JSON.stringify(payload));
  const total = 16 + written.length + body.length;
  const bytes = Buffer.alloc(total);
  bytes.writeUInt32BE(total, 0);
  bytes.writeUInt32BE(written.length, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  bytes.set(written, 12);
  bytes.set(body, 12 + written.length);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, total - 4)), total - 4);
  return new Uint8Array(bytes);
}

/** The length of the name, the name, 7 for a text, the length of the text in two bytes, and the text. */
function header(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}

export function event(type: string, payload: Json): Uint8Array {
  return frame({ ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }, payload);
}

const failure = frame(
  {
    ':exception-type': 'internalServerException',
    ':content-type': 'application/json',
    ':message-type': 'exception',
  },
  { message: 'The system encountered an unexpected error during processing. Try your request again.' },
);

function block(part: Said): JsonObject {
  if ('text' in part) return { text: part.text };
  if ('thought' in part) {
    return part.thought === ''
      ? { reasoningContent: { redactedContent: part.sealed ?? '' } }
      : {
          reasoningContent: {
            reasoningText: { text: part.thought, ...(part.sealed === undefined ? {} : { signature: part.sealed }) },
          },
        };
  }
  if ('search' in part) throw new Error('Converse has no searches.');
  return { toolUse: { toolUseId: part.call, name: 'weather', input: argsObject(part.args) } };
}

function blockFrames(part: Said, contentBlockIndex: number): Uint8Array[] {
  const piece = (delta: Json): Uint8Array => event('contentBlockDelta', { contentBlockIndex, delta });
  const end = event('contentBlockStop', { contentBlockIndex });
  if ('text' in part) return [...halves(part.text).map((text) => piece({ text })), end];
  if ('thought' in part) {
    if (part.thought === '') return [piece({ reasoningContent: { redactedContent: part.sealed ?? '' } }), end];
    const signed = part.sealed === undefined ? [] : [piece({ reasoningContent: { signature: part.sealed } })];
    return [...halves(part.thought).map((text) => piece({ reasoningContent: { text } })), ...signed, end];
  }
  if ('search' in part) throw new Error('Converse has no searches.');
  const start = { toolUse: { toolUseId: part.call, name: 'weather' } };
  return [
    event('contentBlockStart', { contentBlockIndex, start }),
    ...halves(part.args).map((input) => piece({ toolUse: { input } })),
    end,
  ];
}

function frames({ said, stop }: Saying): Uint8Array[] {
  return [
    event('messageStart', { role: 'assistant' }),
    ...said.flatMap(blockFrames),
    event('messageStop', { stopReason: STOPS[stop] }),
    event('metadata', { usage, metrics: { latencyMs: 5 }, ...(stop === 'refused' ? { trace } : {}) }),
  ];
}

const tooLong = { status: 400, json: { message: 'Input is too long for requested model.' } } as const;
const place = { region: 'us-east-1', apiKey: 'k' };

export const bedrocks: readonly Provider[] = [
  {
    name: 'amazon-bedrock',
    model: (at) => createAmazonBedrock({ ...place, ...at })('anthropic.claude-sonnet-4-5-20250929-v1:0'),
    places: ['calls', 'thought', 'sealed', 'between'],
    noArgs: ['{}', ''],
    refusal: { finish: 'guardrail_intervened', category: 'guardrail_intervened', message: 'Guardrail blocked.' },
    whole: ({ said, stop }) => ({
      output: { message: { role: 'assistant', content: said.map(block) } },
      stopReason: STOPS[stop],
      usage,
      metrics: { latencyMs: 5 },
      ...(stop === 'refused' ? { trace } : {}),
    }),
    frames,
    mime: 'application/vnd.amazon.eventstream',
    failure,
    tooLong,
  },
  {
    name: 'amazon-bedrock, anthropic',
    model: (at) => createAmazonBedrockAnthropic({ ...place, ...at })('anthropic.claude-sonnet-4-5-20250929-v1:0'),
    places: ['calls', 'thought', 'sealed', 'between', 'paused'],
    noArgs: ['', '{}'],
    refusal,
    whole: wholeMessage,
    frames: (saying) =>
      streamEvents(saying).map((each) =>
        event('chunk', { bytes: Buffer.from(JSON.stringify(each)).toString('base64'), p: 'abcd' }),
      ),
    mime: 'application/vnd.amazon.eventstream',
    failure,
    tooLong,
  },
];
