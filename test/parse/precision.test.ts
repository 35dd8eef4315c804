/** Few texts that make no call give one, and few that make one give none: on a seeded corpus of many thousand texts. */
import { describe, expect, it } from 'vitest';
import { corpus, rateOf } from '../../scripts/parser-corpus/rates.ts';

const share = ({ calls, texts }: { calls: number; texts: number }): number => (100 * calls) / texts;

describe('false calls', () => {
  it('are at most 0.3 % of at least 2,000 texts that make none, by default', () => {
    expect(corpus.negatives.texts).toBeGreaterThanOrEqual(2000);
    const rate = rateOf('negatives', 'loose');
    expect(share(rate), rate.of.join(', ')).toBeLessThanOrEqual(0.3);
  });

  it('are no more where the templates were not looked at', () => {
    expect(share(rateOf('heldOut', 'loose'))).toBeLessThanOrEqual(2);
  });

  it.each([
    'negatives',
    'heldOut',
    'refusals',
    'heldOutRefusals',
  ] as const)('of the taught form are none: %s', (name) => {
    expect(rateOf(name, 'exact')).toMatchObject({ calls: 0, of: [] });
  });
});

describe('calls that are made', () => {
  it.each(['loose', 'clear'] as const)('are found in all the forms of models: %s', (strictness) => {
    expect(share(rateOf('positives', strictness))).toBeGreaterThanOrEqual(99.5);
  });

  it('are exact in the taught form with the usual words before it', () => {
    expect(share(rateOf('taught', 'exact'))).toBeGreaterThanOrEqual(95);
  });
});
