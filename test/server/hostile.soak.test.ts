/** Many more requests that are wrong: the server answers the last one as the first, and has grown by nothing. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { shoot, shots, target } from './hostile-requests.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const MOST_GROWTH = 8 * 2 ** 20;

it('answers 10,000 malformed requests without growing', async () => {
  const made = await target();
  const fired = fc.sample(shots, { seed: 2_027, numRuns: 10_000 });
  const sizes: number[] = [];
  for (const [index, shot] of fired.entries()) {
    // What nobody may start cannot be stored: the journal itself does not grow here.
    expect(await shoot(made, { ...shot, who: shot.who === 'acme/dan' ? 'nobody' : shot.who })).toBeUndefined();
    if (index % 2_000 === 1_999) {
      collect();
      sizes.push(process.memoryUsage().heapUsed);
    }
  }
  expect(made.faults).toEqual([]);
  expect(made.effects()).toBe(0);
  // Runs that eve and mallory have started are kept in memory here; what is left behind by a request would be many times that.
  expect((sizes.at(-1) ?? 0) - (sizes[0] ?? 0)).toBeLessThan(MOST_GROWTH);
});
