import type { LanguageModelV4FilePart } from '@ai-sdk/provider';
import { MockLanguageModelV3, MockLanguageModelV4 } from 'ai/test';
import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { asLanguageModel, type LanguageModel, oneCallAtATime } from '#model';

function refusal(model: unknown): string {
  try {
    asLanguageModel(model as LanguageModel);
  } catch (thrown) {
    if (PilotageError.is(thrown, 'invalid_config')) return thrown.message;
    throw thrown;
  }
  return 'accepted';
}

describe('language models', () => {
  it('takes a version 4 object as it is, and makes one of a version 3 object', async () => {
    const v4 = new MockLanguageModelV4();
    expect(asLanguageModel(v4)).toBe(v4);
    const v3 = new MockLanguageModelV3({ provider: 'old.chat', modelId: 'three', supportedUrls: { 'image/*': [/a/] } });
    const made = asLanguageModel(v3);
    expect(made).toMatchObject({ specificationVersion: 'v4', provider: 'old.chat', modelId: 'three' });
    expect(await made.supportedUrls).toEqual({ 'image/*': [/a/] });
    expect(asLanguageModel(made)).toBe(made);
  });

  it('gives version 3 files in its own shape, and everything else as it is', async () => {
    const v3 = new MockLanguageModelV3({
      doGenerate: async () => {
        throw new Error('asked');
      },
      doStream: async () => {
        throw new Error('asked');
      },
    });
    const bytes = new Uint8Array([1, 2]);
    const url = new URL('https://example.com/a.png');
    const file = (data: LanguageModelV4FilePart['data']): LanguageModelV4FilePart => ({
      type: 'file',
      mediaType: 'image/png',
      data,
    });
    const system = { role: 'system' as const, content: 'be brief' };
    const user = {
      role: 'user' as const,
      content: [
        { type: 'text' as const, text: 'what is this?' },
        file({ type: 'data', data: bytes }),
        file({ type: 'url', url }),
        file({ type: 'text', text: 'ab' }),
      ],
    };
    const model = asLanguageModel(v3);
    const options = { prompt: [system, user], temperature: 1 };
    await expect(model.doGenerate(options)).rejects.toThrow('asked');
    await expect(model.doStream(options)).rejects.toThrow('asked');
    for (const call of [v3.doGenerateCalls[0], v3.doStreamCalls[0]]) {
      expect(call?.temperature).toBe(1);
      expect(call?.prompt[0]).toBe(system);
      expect(call?.prompt[1]?.content).toEqual([
        user.content[0],
        { type: 'file', mediaType: 'image/png', data: bytes },
        { type: 'file', mediaType: 'image/png', data: url },
        { type: 'file', mediaType: 'image/png', data: new TextEncoder().encode('ab') },
      ]);
    }
    const plain = { prompt: [system] };
    await expect(model.doGenerate(plain)).rejects.toThrow('asked');
    expect(v3.doGenerateCalls[1]).toBe(plain);
  });

  it('RA-07 says of anything else what it is and what to pass', () => {
    expect(refusal('gpt-5.2')).toMatch(/"gpt-5\.2" is the id of a model.*openaiCompatible/);
    expect(refusal(undefined)).toMatch(/^No model was given/);
    expect(refusal(null)).toMatch(/null/);
    expect(refusal({})).toMatch(/no specificationVersion/);
    expect(refusal({ specificationVersion: 'v2', doGenerate() {}, doStream() {} })).toMatch(/"v2".*newer version/);
    expect(refusal({ specificationVersion: 'v4' })).toMatch(/lacks doGenerate or doStream/);
  });

  it('asks for one call at a time in the words of each provider', () => {
    const of = (provider: string) => oneCallAtATime(new MockLanguageModelV4({ provider }));
    expect(of('openai.responses')).toEqual({ openai: { parallelToolCalls: false } });
    expect(of('anthropic.messages')).toEqual({ anthropic: { disableParallelToolUse: true } });
    expect(of('openaiCompatible.chat')).toEqual({ openaiCompatible: { parallel_tool_calls: false } });
    expect(of('azure.chat')).toEqual({ openai: { parallelToolCalls: false } });
    expect(of('mystery')).toBeUndefined();
  });
});
