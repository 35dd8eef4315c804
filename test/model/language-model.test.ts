import { MockLanguageModelV3, MockLanguageModelV4 } from 'ai/test';
import { describe, expect, it } from 'vitest';
import { PilotageError } from '../../src/core/errors.ts';
import { asLanguageModel, type LanguageModel } from '../../src/model/language-model.ts';
import { oneCallAtATime } from '../../src/model/parallel-tool-calls.ts';

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
  it('takes version 4 and version 3 objects as they are', () => {
    const v4 = new MockLanguageModelV4();
    const v3 = new MockLanguageModelV3();
    expect(asLanguageModel(v4)).toBe(v4);
    expect(asLanguageModel(v3)).toBe(v3);
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
    expect(of('azure.chat')).toMatchObject({ azure: { parallelToolCalls: false } });
    expect(of('mystery')).toBeUndefined();
  });
});
