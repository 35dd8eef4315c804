import type { LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { MockLanguageModelV4 } from 'ai/test';
import { describe, expect, it } from 'vitest';
import type { SpokenDelta } from '#core';
import { type Reply, streamReply } from '#model';
import { restoreParts } from '#prompt';
import { type ScriptedReply, scriptedModel } from '#testing';
import { generateReply } from '../kit/model.ts';

const request: LanguageModelV4CallOptions = { prompt: [] };

async function drain(stream: AsyncGenerator<SpokenDelta, Reply>): Promise<{ deltas: SpokenDelta[]; reply: Reply }> {
  const deltas: SpokenDelta[] = [];
  for (;;) {
    const next = await stream.next();
    if (next.done) return { deltas, reply: next.value };
    deltas.push(next.value);
  }
}

const said = (deltas: SpokenDelta[], type: 'text' | 'reasoning') =>
  deltas.map((delta) => (delta.type === type ? delta.text : '')).join('');

function streamed(parts: LanguageModelV4StreamPart[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    modelId: 'asked',
    doStream: async () => ({
      stream: new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.close();
        },
      }),
    }),
  });
}

const usage = {
  inputTokens: { total: 7, noCache: 7, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 3, text: 3, reasoning: 0 },
};
const finish = (unified: Exclude<Reply['finish'], 'pause'>, raw?: string): LanguageModelV4StreamPart => ({
  type: 'finish',
  usage,
  finishReason: { unified, raw },
});

const SAMPLES: Record<string, ScriptedReply> = {
  text: { text: 'Fjord und Föhn 🌬️ and more than twelve characters', usage: { inputTokens: 5, outputTokens: 2 } },
  empty: {},
  'text and calls': {
    reasoning: 'Thinking about weather in two cities.',
    text: 'I look it up.',
    calls: [
      { id: 'a', tool: 'weather', args: { city: 'Oslo', note: 'a longer argument' } },
      { id: 'b', tool: 'weather', args: {} },
    ],
  },
  'two calls with one id': {
    calls: [
      { id: 'a', tool: 'x', args: { n: 1 } },
      { id: 'a', tool: 'x', args: { n: 2 } },
    ],
  },
  'cut off call': { finish: 'length', calls: [{ id: 'a', tool: 'x', input: '{"city": "Os' }] },
  'signed thinking': {
    content: [
      { type: 'reasoning', text: 'signed thought', providerMetadata: { anthropic: { signature: 'c2ln' } } },
      { type: 'reasoning', text: '', providerMetadata: { anthropic: { redactedData: 'xxx' } } },
      { type: 'custom', kind: 'openai.compaction', providerMetadata: { openai: { id: 'c1' } } },
      { type: 'text', text: 'well' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'x', input: '{}', providerMetadata: { google: { sig: 's' } } },
    ],
  },
};

describe('a model call', () => {
  it.each(Object.entries(SAMPLES))('gives the same reply plain and streamed: %s', async (_, sample) => {
    const plain = await generateReply(scriptedModel([sample]), request);
    const { deltas, reply } = await drain(streamReply(scriptedModel([sample]), request));
    expect(reply).toEqual(plain);
    expect(said(deltas, 'text')).toBe(plain.text);
    expect(said(deltas, 'reasoning')).toBe(plain.reasoning);
    // A call begins before anything is said of its arguments.
    expect(deltas.every((delta) => delta.type === 'input' || (delta.type !== 'reset' && delta.text !== ''))).toBe(true);
  });

  it('gives text, reasoning, calls, reason, usage and the model that answered', async () => {
    const model = new MockLanguageModelV4({
      modelId: 'asked',
      doGenerate: async () => ({
        content: [
          { type: 'reasoning', text: 'hm' },
          { type: 'text', text: 'a' },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'search', input: '{"q":"x"}' },
          { type: 'tool-call', toolCallId: 'p1', toolName: 'web', input: '{}', providerExecuted: true },
          { type: 'text', text: 'b' },
        ],
        finishReason: { unified: 'tool-calls', raw: 'tool_use' },
        usage,
        warnings: [],
        response: { modelId: 'answered' },
      }),
    });
    expect(await generateReply(model, request)).toEqual({
      text: 'ab',
      reasoning: 'hm',
      calls: [{ callId: 'c1', tool: 'search', input: '{"q":"x"}' }],
      finish: 'tool-calls',
      providerFinish: 'tool_use',
      modelId: 'answered',
      usage: { inputTokens: 7, outputTokens: 3 },
      providerState: {
        provider: 'mock-provider',
        parts: [
          { type: 'reasoning' },
          { type: 'text', text: 'a' },
          { type: 'call', call: 0 },
          { type: 'tool-call', toolCallId: 'p1', toolName: 'web', input: {}, providerExecuted: true },
          { type: 'text', text: 'b' },
        ],
      },
    });
  });

  it('RA-18 takes a refusal that a gateway passes through as a content filter', async () => {
    const { reply } = await drain(streamReply(streamed([finish('other', 'refusal')]), request));
    expect(reply.finish).toBe('content-filter');
  });

  it('puts blocks together in the order in which they began, also when they interleave or use an id again', async () => {
    const { reply } = await drain(
      streamReply(
        streamed([
          { type: 'stream-start', warnings: [] },
          { type: 'response-metadata', modelId: 'answered' },
          { type: 'text-start', id: '0' },
          { type: 'reasoning-start', id: '0' },
          { type: 'text-delta', id: '0', delta: 'one ' },
          { type: 'reasoning-delta', id: '0', delta: 'thought' },
          { type: 'text-end', id: '0' },
          { type: 'text-start', id: '0' },
          { type: 'text-delta', id: '0', delta: 'two' },
          { type: 'ping' },
          finish('stop'),
        ]),
        request,
      ),
    );
    expect(reply).toMatchObject({ text: 'one two', reasoning: 'thought', modelId: 'answered', finish: 'stop' });
  });

  it('a stream that ends without a finish part is interrupted, and its last call stays in pieces', async () => {
    const { reply } = await drain(
      streamReply(
        streamed([
          { type: 'tool-input-start', id: 'c', toolName: 'search' },
          { type: 'tool-input-delta', id: 'c', delta: '{"q":' },
        ]),
        request,
      ),
    );
    expect(reply).toEqual({
      text: '',
      reasoning: '',
      calls: [{ callId: 'c', tool: 'search', input: '{"q":' }],
      finish: 'interrupted',
      modelId: 'asked',
    });
  });

  it('throws the very error of an error part, and cancels the stream', async () => {
    const error = new Error('overloaded');
    let cancelled = false;
    const model = new MockLanguageModelV4({
      doStream: async () => ({
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          start(controller) {
            controller.enqueue({ type: 'text-delta', id: '0', delta: 'half' });
            controller.enqueue({ type: 'error', error });
          },
          cancel() {
            cancelled = true;
          },
        }),
      }),
    });
    const stream = streamReply(model, request);
    expect(await stream.next()).toEqual({ done: false, value: { type: 'text', text: 'half' } });
    await expect(stream.next()).rejects.toBe(error);
    expect(cancelled).toBe(true);
  });

  it('cancels the stream when the consumer stops', async () => {
    let cancelled = false;
    const model = new MockLanguageModelV4({
      doStream: async () => ({
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          pull: (controller) => controller.enqueue({ type: 'text-delta', id: '0', delta: 'on and ' }),
          cancel() {
            cancelled = true;
          },
        }),
      }),
    });
    for await (const delta of streamReply(model, request)) {
      expect(delta).toEqual({ type: 'text', text: 'on and ' });
      break;
    }
    expect(cancelled).toBe(true);
  });
});

describe('provider state', () => {
  const TO = { replay: 'never' } as const;
  const callPart = (id: string) => ({ type: 'tool-call' as const, toolCallId: id, toolName: 'x', input: {} });

  it('is absent when one text and the calls after it make the same message', async () => {
    const plain = await generateReply(scriptedModel([{ text: 't', calls: [{ tool: 'x' }] }]), request);
    expect('providerState' in plain).toBe(false);
    const thought = await generateReply(
      scriptedModel([{ reasoning: 'r', text: 't', calls: [{ tool: 'x' }] }]),
      request,
    );
    // The only reasoning of a reply is that of the step, and is not recorded twice.
    expect(thought.providerState).toMatchObject({
      parts: [{ type: 'reasoning' }, { type: 'text', text: 't' }, { type: 'call', call: 0 }],
    });
  });

  it('RA-39 restores exactly the parts of the provider, the calls under their ids of the run', async () => {
    const content = SAMPLES['signed thinking']?.content as LanguageModelV4Content[];
    const { providerState } = await generateReply(scriptedModel([{ content }]), request);
    const stored = JSON.parse(JSON.stringify(providerState));
    expect(restoreParts({ providerState: stored }, [callPart('react.callid.4')], TO)).toEqual([
      { type: 'reasoning', text: 'signed thought', providerOptions: { anthropic: { signature: 'c2ln' } } },
      { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'xxx' } } },
      { type: 'custom', kind: 'openai.compaction', providerOptions: { openai: { id: 'c1' } } },
      { type: 'text', text: 'well' },
      { ...callPart('react.callid.4'), providerOptions: { google: { sig: 's' } } },
    ]);
  });

  it('is not used when it was made elsewhere or does not hold all calls', () => {
    expect(restoreParts({}, [], TO)).toBeUndefined();
    expect(restoreParts({ providerState: ['x'] }, [], TO)).toBeUndefined();
    expect(restoreParts({ providerState: { other: 1 } }, [], TO)).toBeUndefined();
    const words = { parts: [{ type: 'text', text: 'a' }] };
    expect(restoreParts({ providerState: words }, [callPart('c')], TO)).toBeUndefined();
  });
});
