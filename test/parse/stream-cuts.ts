/** Ways to cut a text into the pieces in which a stream brings it. */
import fc from 'fast-check';

/** Sizes of the pieces, used over and over. */
export const cuts = (): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 });

export function cut(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = [];
  for (let at = 0, turn = 0; at < text.length; turn += 1) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1);
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces;
}
