import assert from 'node:assert/strict';
import type { Claim, Journal, NewPassing } from '#journal';
import { ben, createClaimed, identity, type JournalCase, LEASE_MS, present, step } from './kit.ts';

const FOR_MS = 15_000;
/** As long as a store knows that a run was read. */
const LATELY_MS = 600_000;

function row({ run, fence }: Claim, value?: string, more: Partial<NewPassing> = {}): NewPassing {
  return { run, fence, ...(value === undefined ? {} : { value }), ...more };
}

async function valuesOf(journal: Journal, run: string, after = 0): Promise<unknown[]> {
  return (await journal.passing.read(run, after)).map(({ value }) => value);
}

async function readNow(journal: Journal): Promise<string[]> {
  const runs = await journal.passing.wanted();
  return runs
    .filter(({ leftMs }) => leftMs > 0)
    .map(({ run }) => run)
    .sort();
}

export const passingCases: readonly JournalCase[] = [
  {
    name: 'what passes in a run is read in the order in which it was put, from any row on',
    async run({ journal }) {
      const first = await createClaimed(journal, 'r1');
      const second = await createClaimed(journal, 'r2');
      await journal.passing.put([row(first, 'a'), row(second, 'x'), row(first, 'b')]);
      await journal.passing.put([row(first, 'c')]);
      const rows = await journal.passing.read('r1', 0);
      assert.deepEqual(
        rows.map(({ value, fence }) => [value, fence]),
        [
          ['a', first.fence],
          ['b', first.fence],
          ['c', first.fence],
        ],
      );
      assert.ok(rows.every(({ number }, index) => number > (rows[index - 1]?.number ?? 0)));
      assert.deepEqual(await valuesOf(journal, 'r1', rows[1]?.number), ['c']);
      assert.deepEqual(await valuesOf(journal, 'r2'), ['x']);
      assert.deepEqual(await valuesOf(journal, 'nobody'), []);
    },
  },
  {
    name: 'what was put before goes with a row that clears, and numbers go on',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.passing.put([row(claim, 'a'), row(claim, 'b')]);
      const before = (await journal.passing.read('r1', 0)).at(-1)?.number ?? 0;
      await journal.passing.put([row(claim, 'c', { clears: true })]);
      assert.deepEqual(await valuesOf(journal, 'r1'), ['c']);
      await journal.passing.put([row(claim, undefined, { clears: true })]);
      assert.deepEqual(await valuesOf(journal, 'r1'), []);
      await journal.passing.put([row(claim, 'd')]);
      assert.deepEqual(await valuesOf(journal, 'r1', before), ['d']);
    },
  },
  {
    name: 'only the owner that had the run last puts something, and nobody hears of what is not put',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      const other = await createClaimed(journal, 'r2');
      clock.advance(LEASE_MS);
      const next = present(await journal.claim({ ...ben, run: 'r1' }));
      await journal.passing.put([row(claim, 'old'), row({ ...claim, run: 'nobody' }, 'x'), row(other, 'y')]);
      await journal.passing.put([row(next, 'new')]);
      assert.deepEqual(await valuesOf(journal, 'r1'), ['new']);
      assert.deepEqual(await valuesOf(journal, 'r2'), ['y']);
    },
  },
  {
    name: 'runs are read for as long as somebody says so, and it is known for a while that they were',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await createClaimed(journal, 'r2');
      assert.deepEqual(await journal.passing.wanted(), []);
      await journal.passing.want(['r1', 'r2', 'nobody'], FOR_MS);
      await journal.passing.put([row(claim, 'a')]);
      assert.deepEqual(await readNow(journal), ['r1', 'r2']);
      clock.advance(FOR_MS - 1_000);
      await journal.passing.want(['r1'], FOR_MS);
      // For less than was said before: that stands.
      await journal.passing.want(['r1'], 1);
      clock.advance(2_000);
      assert.deepEqual(await readNow(journal), ['r1']);
      assert.equal((await journal.passing.wanted()).length, 2);
      clock.advance(LATELY_MS + FOR_MS);
      await journal.passing.want(['r2'], FOR_MS);
      assert.deepEqual(
        (await journal.passing.wanted()).map(({ run }) => run),
        ['r2'],
      );
      assert.deepEqual(await valuesOf(journal, 'r1'), []);
    },
  },
  {
    name: 'watchers hear of what passes in their run, and of runs that are read',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      const wakes = { rows: 0, readers: 0 };
      const stops = [
        journal.passing.watch('r1', () => {
          wakes.rows += 1;
        }),
        journal.passing.watchWanted(() => {
          wakes.readers += 1;
        }),
      ];
      await journal.passing.put([row(claim, 'a')]);
      await journal.passing.want(['r1'], FOR_MS);
      await Promise.resolve();
      assert.deepEqual(wakes, { rows: 1, readers: 1 });
      for (const stop of stops) stop();
      await journal.passing.put([row(claim, 'b')]);
      await Promise.resolve();
      assert.equal(wakes.rows, 1);
    },
  },
  {
    name: 'what passes is gone when the content of its run is erased, or its session is deleted',
    async run({ journal }) {
      const claims = await Promise.all(['r1', 'r2'].map((run) => createClaimed(journal, run)));
      await journal.passing.want(['r1', 'r2'], FOR_MS);
      for (const claim of claims) {
        await journal.append(step(claim, 1));
        await journal.passing.put([row(claim, 'a')]);
        await journal.release(claim, { seenSignals: 0 });
      }
      const { head, signals } = await journal.examine('r1');
      const how = { keep: 0, entries: await journal.read('r1'), erases: true } as const;
      const repair = { run: 'r1', head, signals, status: 'paused', agent: 'finish', drops: [], waits: [] } as const;
      await journal.repair({ ...repair, ...how });
      assert.deepEqual(await valuesOf(journal, 'r1'), []);
      assert.deepEqual(await valuesOf(journal, 'r2'), ['a']);
      await journal.sessions.delete(identity('r2'));
      assert.deepEqual(await journal.passing.wanted().then((runs) => runs.filter(({ run }) => run === 'r2')), []);
      await createClaimed(journal, 'r2');
      assert.deepEqual(await valuesOf(journal, 'r2'), []);
    },
  },
];
