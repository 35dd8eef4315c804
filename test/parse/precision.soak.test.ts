/** The rest of `precision.test.ts`: few texts that make no call give one, and few that make one give none: on a seeded corpus of many thousand texts. */
import { describe, expect, it } from 'vitest';
import type { CallForm } from '#parse';
import { type PartName, rateOf } from '../../scripts/parser-corpus/rates.ts';

/** Of all texts, in percent. */
function share(name: PartName, strictness: CallForm): number {
  const { calls, texts } = rateOf(name, strictness);
  return (100 * calls) / texts;
}

describe('false calls', () => {
  it('are few where the templates were set aside', () => {
    expect(share('heldOut', 'loose')).toBeLessThanOrEqual(0.7);
  });

  it.each(['refusals', 'heldOutRefusals'] as const)('in clear form are few behind words that mean none: %s', (name) => {
    expect(share(name, 'clear')).toBeLessThanOrEqual(1);
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
