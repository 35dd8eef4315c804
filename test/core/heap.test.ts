import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Heap } from '#core';

describe('a heap', () => {
  it('gives its items in order, whatever is put in and taken out meanwhile', () => {
    const moves = fc.array(fc.option(fc.integer(), { nil: undefined, freq: 3 }), { maxLength: 60 });
    fc.assert(
      fc.property(moves, fc.integer({ min: 1, max: 4 }), (given, share) => {
        const heap = new Heap<number>((one, other) => one < other);
        let items: number[] = [];
        for (const move of given) {
          expect(heap.size).toBe(items.length);
          expect(heap.first).toBe(items[0]);
          if (move === undefined) expect(heap.pop()).toBe(items.shift());
          else {
            heap.push(move);
            items = [...items, move].sort((one, other) => one - other);
          }
        }
        const isKept = (item: number): boolean => item % share === 0;
        heap.keep(isKept);
        for (const item of items.filter(isKept)) expect(heap.pop()).toBe(item);
        expect(heap.pop()).toBeUndefined();
      }),
    );
  });

  it('looks at few of its items for each that it takes or gives', () => {
    let looks = 0;
    const heap = new Heap<number>((one, other) => {
      looks += 1;
      return one < other;
    });
    const count = 4_096;
    for (let item = 0; item < count; item += 1) heap.push((item * 2_897) % count);
    for (let item = 0; item < count; item += 1) expect(heap.pop()).toBe(item);
    expect(looks).toBeLessThanOrEqual(count * 3 * Math.log2(count));
  });
});
