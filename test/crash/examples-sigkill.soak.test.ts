/** The processes of the examples are killed before and after each kind of write, and the examples started again. */
import { describe, expect, it } from 'vitest';
import { examples, play } from './examples.ts';

const AT_ONCE = 2;

/** Numbers of moments, from 1 up. Where there are several of a kind, another example takes another one: `turn` says which. */
function oneOfEachKind(moments: readonly string[], turn: number): number[] {
  const kinds = Map.groupBy(moments.keys(), (at) => moments[at]);
  return [...kinds.values()].flatMap((places) => places.slice(turn % places.length).slice(0, 1)).map((at) => at + 1);
}

describe.each(examples)('%s', (example) => {
  it('comes to the same when it is killed at any moment and started again, and does nothing twice', async () => {
    const clean = await play(example);
    expect(clean.problems).toEqual([]);
    expect(clean.moments.length).toBeGreaterThan(10);
    const moments = oneOfEachKind(clean.moments, examples.indexOf(example));
    const kill = async (): Promise<void> => {
      for (let at = moments.shift(); at !== undefined; at = moments.shift()) {
        // Of some the process that goes on is killed too.
        const kills = at % 4 === 0 ? [at, at / 2] : [at];
        const { runs, problems } = await play(example, ...kills);
        expect({ runs, problems }, `killed at ${kills.join(' and ')} of ${clean.moments.length}`).toEqual({
          runs: clean.runs,
          problems: [],
        });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, kill));
  }, 600_000);
});
