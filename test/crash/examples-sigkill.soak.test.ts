/** The processes of the examples are killed before and after each write, and the examples started again. */
import { describe, expect, it } from 'vitest';
import { examples, play } from './examples.ts';

const AT_ONCE = 2;

describe.each(examples)('%s', (example) => {
  it('comes to the same when it is killed at any moment and started again, and does nothing twice', async () => {
    const clean = await play(example);
    expect(clean.problems).toEqual([]);
    expect(clean.moments).toBeGreaterThan(10);
    const moments = Array.from({ length: clean.moments }, (_, index) => index + 1);
    const kill = async (): Promise<void> => {
      for (let at = moments.shift(); at !== undefined; at = moments.shift()) {
        // Of some the process that goes on is killed too.
        const kills = at % 4 === 0 ? [at, at / 2] : [at];
        const { runs, problems } = await play(example, ...kills);
        expect({ runs, problems }, `killed at ${kills.join(' and ')} of ${clean.moments}`).toEqual({
          runs: clean.runs,
          problems: [],
        });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, kill));
  }, 600_000);
});
