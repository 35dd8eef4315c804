/** The traceparent of W3C Trace Context. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTraceparent, traceparentOf } from '#core';

const id = (digits: number): fc.Arbitrary<string> =>
  fc
    .array(fc.integer({ min: 0, max: 15 }), { minLength: digits, maxLength: digits })
    .map((values) => values.map((value) => value.toString(16)).join(''))
    .filter((text) => !/^0+$/.test(text));

describe('a traceparent', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(id(32), id(16), fc.boolean(), (traceId, spanId, isSampled) => {
        const place = { traceId, spanId, isSampled };
        expect(readTraceparent(traceparentOf(place))).toEqual(place);
      }),
    );
  });

  const [trace, span] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];

  it('of a later version may say more', () => {
    expect(readTraceparent(`01-${trace}-${span}-03-more`)).toEqual({ traceId: trace, spanId: span, isSampled: true });
  });

  it.each([
    ['has a version that there cannot be', `ff-${trace}-${span}-01`],
    ['says more than its version allows', `00-${trace}-${span}-01-more`],
    ['has no trace', `00-${'0'.repeat(32)}-${span}-01`],
    ['has no span', `00-${trace}-${'0'.repeat(16)}-01`],
    ['is in capitals', `00-${trace.toUpperCase()}-${span}-01`],
    ['is too short', `00-${trace}-${span.slice(1)}-01`],
    ['has a line break in it', `00-${trace}-${span}-01\n-x`],
    ['is empty', ''],
  ])('is none when it %s', (_, text) => {
    expect(readTraceparent(text)).toBeUndefined();
  });
});
