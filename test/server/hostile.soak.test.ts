/** Many more requests that are wrong: the server answers the last one as the first, and has grown by nothing. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { shoot, shots, target } from './hostile-requests.ts';

it('answers 10,000 malformed requests without growing', async () => {
  const made = await target();
  const fired = fc.sample(shots, { seed: 2_027, numRuns: 10_000 });
  const sizes: number[] = [];
  for (const [index, shot] of fired.entries()) {
    // What nobody may start cannot be stored: the journal itself does not grow here.
    expect(await shoot(made, { ...shot, who: shot.who === 'acme/dan' ? 'nobody' : shot.who })).toBeUndefined();
    if (index % 2_500 === 0) {
      (globalThis as { gc?: () => void }).gc?.();
      sizes.push(process.memoryUsage().heapUsed);
    }
  }
  expect(made.faults).toEqual([]);
  expect(made.effects()).toBe(0);
  expect(sizes).toHaveLength(4);
});
