import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { assertPrices, priced, usageOf } from '#model';

const reported = (input?: number, output?: number, cached?: number) => ({
  inputTokens: { total: input, noCache: undefined, cacheRead: cached, cacheWrite: undefined },
  outputTokens: { total: output, text: undefined, reasoning: undefined },
});

describe('usage', () => {
  it('keeps the parts that the provider told', () => {
    expect(usageOf(reported(100, 20, 60))).toEqual({
      usage: { inputTokens: 100, outputTokens: 20, cachedInputTokens: 60 },
    });
    expect(usageOf(reported(100))).toEqual({ usage: { inputTokens: 100 } });
    expect(usageOf(reported())).toEqual({});
    expect(usageOf({} as never)).toEqual({});
  });

  it('refuses what cannot be, by name, and keeps the rest', () => {
    expect(usageOf(reported(100, -20, 101))).toEqual({
      usage: { inputTokens: 100 },
      refused: 'outputTokens is -20; cachedInputTokens is 101',
    });
  });

  it('costs what the tokens cost, cached ones at their own price', () => {
    const prices = { input: 3, cachedInput: 0.3, output: 15 };
    const usage = { inputTokens: 1000, cachedInputTokens: 600, outputTokens: 10 };
    expect(priced(usage, prices)).toEqual({ ...usage, costMicroUsd: 400 * 3 + 180 + 150 });
  });

  it('counts cached tokens as input without a price of their own, and rounds up', () => {
    expect(priced({ inputTokens: 10, cachedInputTokens: 10 }, { input: 2, output: 0 }).costMicroUsd).toBe(20);
    expect(priced({ outputTokens: 1 }, { input: 0, output: 0.4 }).costMicroUsd).toBe(1);
  });

  it('costs what a cache was written with at its own price, and the sum of floats is no millionth more', () => {
    const prices = { input: 0.1, cacheWriteInput: 0.125, cachedInput: 0.01, output: 0.7 };
    const usage = { inputTokens: 3_000, cachedInputTokens: 1_000, cacheWriteInputTokens: 1_000, outputTokens: 10 };
    expect(priced(usage, prices).costMicroUsd).toBe(100 + 10 + 125 + 7);
  });

  it('reads what was cached, written to the cache, and thought; of a provider that tells parts alone, their sum', () => {
    const inputTokens = { total: 100, noCache: 30, cacheRead: 50, cacheWrite: 20 };
    const outputTokens = { total: 40, text: 10, reasoning: 30 };
    const usage = {
      inputTokens: 100,
      outputTokens: 40,
      cachedInputTokens: 50,
      cacheWriteInputTokens: 20,
      reasoningTokens: 30,
    };
    expect(usageOf({ inputTokens, outputTokens })).toEqual({ usage });
    const parts = {
      inputTokens: { ...inputTokens, total: undefined },
      outputTokens: { ...outputTokens, total: undefined },
    };
    expect(usageOf(parts)).toEqual({ usage });
  });

  it('refuses a price that is no number from 0 up, by name', () => {
    const bad = () => assertPrices({ input: 1, output: -1 });
    expect(bad).toThrow('prices.output is -1');
    expect(bad).toThrow(PilotageError);
    expect(() => assertPrices({ input: Number.NaN, output: 1 })).toThrow('prices.input');
    expect(() => assertPrices({ input: 1, cachedInput: Number.POSITIVE_INFINITY, output: 1 })).toThrow('cachedInput');
    expect(() => assertPrices({ input: 1, output: 0 })).not.toThrow();
  });
});
