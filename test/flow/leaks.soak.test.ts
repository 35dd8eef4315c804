/** What runs of a flow leave behind. 10,000 in sequence are measured by `npm run bench -- --only flow-soak`. */
import { expect, it } from 'vitest';
import { leftARun, soak } from '../../bench/flow-soak.ts';

/** The first thousand are for V8 to compile what it will. */
const EVERY = 1_000;
const ALL = 3_000;
const AT_ONCE = 1_000;
/** A handle of each run weighs 700, a state or a listener several times as much. */
const MOST_BYTES_A_RUN = 300;

it('RT-24 RT-25 RT-33 W84 W89 W91 3,000 runs in sequence leave no heap, handle or listener, and 1,000 at once keep apart', async () => {
  // Of them some fail, some are cancelled and some are read; each must give its own output, to its own user and readers.
  const { before, holds, after } = await soak({ every: EVERY, all: ALL, atOnce: AT_ONCE });
  expect(holds).toHaveLength(ALL / EVERY);
  expect(leftARun(holds, EVERY)).toBeLessThan(MOST_BYTES_A_RUN);
  expect([...holds, after].map(({ resources }) => resources)).toEqual([...holds, after].map(() => before));
  // What a thousand runs at once needed is given back.
  const last = holds.at(-1)?.heapBytes ?? Number.NaN;
  expect(after.heapBytes - last).toBeLessThan(AT_ONCE * MOST_BYTES_A_RUN * 10);
}, 300_000);
