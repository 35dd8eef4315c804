import type { LanguageModelV4 } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { type ModelEntry, readyModel, readyModels, takesMedia } from '#model';
import { scriptedModel } from '#testing';

const model = scriptedModel([], { modelId: 'small' });
const withUrls = (supportedUrls: LanguageModelV4['supportedUrls']): LanguageModelV4 => ({ ...model, supportedUrls });

describe('what a planner knows of a model', () => {
  it('a model alone gets the defaults', () => {
    expect(readyModel(model)).toEqual({
      model,
      name: 'small',
      toolCalls: 'native',
      structuredOutput: 'json_schema',
      inputs: ['image/*'],
      sendReasoning: true,
    });
  });

  it('an entry keeps what it says, and is ready when it is given again', () => {
    const prices = { input: 1, output: 2 };
    const entry = {
      model,
      name: 'mine',
      toolCalls: 'text',
      structuredOutput: 'text',
      inputs: ['Application/PDF'],
      sendReasoning: false,
      contextTokens: 8000,
    } as const;
    const ready = readyModel(entry, { prices });
    expect(ready).toEqual({ ...entry, inputs: ['application/pdf'], prices });
    expect(readyModel(ready)).toEqual(ready);
    expect(readyModel({ model, prices }, { prices: { input: 9, output: 9 } }).prices).toBe(prices);
  });

  it.each<[string, unknown]>([
    ['No model was given', undefined],
    ['is the id of a model', 'gpt'],
    ['is the id of a model', { model: 'gpt' }],
    ['no specificationVersion', {}],
    ['name of a model is ""', { model, name: '' }],
    ['toolCalls of a model is "both"', { model, toolCalls: 'both' }],
    ['structuredOutput of a model is "xml"', { model, structuredOutput: 'xml' }],
    ['inputs of a model is object', { model, inputs: ['image'] }],
    ['sendReasoning of a model is "no"', { model, sendReasoning: 'no' }],
    ['inputs of a model is "image/*"', { model, inputs: 'image/*' }],
    ['contextTokens of a model is 0', { model, contextTokens: 0 }],
    ['cache of a model is true', { model, cache: true }],
    ['cache.ttl of a model is missing', { model, cache: {} }],
    ['cache.ttl of a model is "10m"', { model, cache: { ttl: '10m' } }],
    ['An entry of a model has', { model, caching: false }],
    ['cache of a model has no option "marks"', { model, cache: { ttl: '5m', marks: 2 } }],
    ['openai.chat takes no marks', { model: { ...model, provider: 'openai.chat' }, cache: { ttl: '1h' } }],
    ['prices.output is missing', { model, prices: { input: 1 } }],
  ])('refuses what is wrong: %s', (message, given) => {
    expect(() => readyModel(given as ModelEntry)).toThrow(message);
    expect(() => readyModel(given as ModelEntry)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
  });

  it('a pool has at least one model, and each name once', () => {
    expect(readyModels([model, { model, name: 'again' }]).map(({ name }) => name)).toEqual(['small', 'again']);
    expect(() => readyModels([model, model])).toThrow('"small"');
    expect(() => readyModels([])).toThrow('at least one');
  });
});

describe('the files that a model takes', () => {
  it('are images and what its supportedUrls name', () => {
    const reader = readyModel(withUrls({ 'image/*': [/./], 'application/pdf': [/./], '*': [/./] }));
    expect(reader.inputs).toEqual(['image/*', 'application/pdf']);
    const later = [Promise.resolve({ 'application/pdf': [/./] }), Promise.reject(new Error('not there'))];
    for (const urls of later) expect(readyModel(withUrls(urls)).inputs).toEqual(['image/*']);
  });

  it('are matched by type and by family, without regard to case and parameters', () => {
    const reader = readyModel({ model, inputs: ['image/*', 'application/pdf'] });
    expect(['image/png', 'IMAGE/PNG', 'application/pdf; v=1'].map((mime) => takesMedia(reader, mime))).toEqual([
      true,
      true,
      true,
    ]);
    expect(['audio/wav', 'application/zip', 'image', '', '/png'].map((mime) => takesMedia(reader, mime))).toEqual(
      new Array(5).fill(false),
    );
  });

  it('are named: a pattern for everything does not count', () => {
    const boaster = readyModel({ model, inputs: ['*/*'] });
    expect(takesMedia(boaster, 'image/png')).toBe(false);
    expect(takesMedia(boaster, '*/*')).toBe(false);
  });
});
