/** Few texts that make no call give one, and few that make one give none: on a seeded corpus of many thousand texts. */
import { describe, expect, it } from 'vitest';
import type { CallForm } from '#parse';
import { corpus, type PartName, rateOf } from '../../scripts/parser-corpus/rates.ts';

/** Of all texts, in percent. */
function share(name: PartName, strictness: CallForm): number {
  const { calls, texts } = rateOf(name, strictness);
  return (100 * calls) / texts;
}

describe('false calls', () => {
  it('are at most 0.3 % of at least 2,000 texts that make none, by default', () => {
    expect(corpus.negatives.texts).toBeGreaterThanOrEqual(2000);
    expect(share('negatives', 'loose'), rateOf('negatives', 'loose').of.join(', ')).toBeLessThanOrEqual(0.3);
  });
});

describe('calls that are made', () => {
  it('are found in all the forms of models', () => {
    expect(share('positives', 'loose')).toBeGreaterThanOrEqual(99.5);
    expect(share('positives', 'clear')).toBeGreaterThanOrEqual(95);
  });

  it('are exact in the taught form with the usual words before it', () => {
    expect(share('taught', 'exact')).toBeGreaterThanOrEqual(95);
  });
});
