import assert from 'node:assert/strict';
import type { Claim, Journal, NewStreamRow, StreamAppend } from '#journal';
import {
  ben,
  countWakes,
  createClaimed,
  expectCode,
  identity,
  type JournalCase,
  LEASE_MS,
  present,
  step,
} from './kit.ts';

function rows(name: string, ...values: readonly (string | number)[]): NewStreamRow[] {
  return values.map((value) => ({ name, value }));
}

function append({ run, fence }: Claim, of: readonly NewStreamRow[], more: Partial<StreamAppend> = {}): StreamAppend {
  return { run, fence, step: 0, call: 0, attempt: 1, rows: of, ...more };
}

async function valuesOf(journal: Journal, run: string, name: string, from = 1, limit = 100): Promise<unknown[]> {
  const { rows: found } = await journal.streams.read(run, name, from, limit);
  return found.map(({ index, value }) => [index, value]);
}

export const streamCases: readonly JournalCase[] = [
  {
    name: 'rows of a stream are numbered without gaps, each stream of each run by itself',
    async run({ journal, clock }) {
      const first = await createClaimed(journal, 'r1');
      const second = await createClaimed(journal, 'r2');
      await journal.streams.append(append(first, [...rows('log', 'a', 'b'), ...rows('rows', 1), ...rows('log', 'c')]));
      clock.advance(10);
      await journal.streams.append(append(first, rows('log', 'd'), { step: 2, call: 3, attempt: 4 }));
      await journal.streams.append(append(second, rows('log', 'x')));
      assert.deepEqual(await valuesOf(journal, 'r1', 'log'), [
        [1, 'a'],
        [2, 'b'],
        [3, 'c'],
        [4, 'd'],
      ]);
      assert.deepEqual(await valuesOf(journal, 'r1', 'log', 2, 2), [
        [2, 'b'],
        [3, 'c'],
      ]);
      assert.deepEqual(await valuesOf(journal, 'r1', 'log', 5), []);
      assert.deepEqual(await valuesOf(journal, 'r1', 'rows'), [[1, 1]]);
      assert.deepEqual(await valuesOf(journal, 'r2', 'log'), [[1, 'x']]);
      const { rows: last } = await journal.streams.read('r1', 'log', 4, 1);
      assert.deepEqual(last, [{ index: 4, value: 'd', step: 2, call: 3, attempt: 4, at: Math.floor(clock.now()) }]);
    },
  },
  {
    name: 'a stream is closed until somebody writes to it again',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.streams.append(append(claim, [...rows('log', 'a'), { name: 'log', closes: true }]));
      await journal.streams.append(append(claim, [{ name: 'empty', closes: true }]));
      assert.equal((await journal.streams.read('r1', 'log', 9, 1)).closed, true);
      assert.deepEqual(await journal.streams.read('r1', 'empty', 1, 1), { rows: [], closed: true });
      assert.deepEqual(await journal.streams.read('r1', 'nothing', 1, 1), { rows: [], closed: false });
      await journal.streams.append(append(claim, rows('log', 'b')));
      assert.deepEqual(await journal.streams.list('r1'), [
        { name: 'empty', rows: 0, closed: true },
        { name: 'log', rows: 2, closed: false },
      ]);
    },
  },
  {
    name: 'rows are written only by the owner that had the run last, all of them or none',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      const long = 'x'.repeat(32_768);
      await expectCode(journal.streams.append(append(claim, rows('log', 'a', long))), 'stream_refused');
      await expectCode(
        journal.streams.append(append(claim, [...rows('log', 'a'), ...rows('', 'b')])),
        'stream_refused',
      );
      assert.deepEqual(await valuesOf(journal, 'r1', 'log'), []);
      clock.advance(LEASE_MS);
      const next = present(await journal.claim({ ...ben, run: 'r1' }));
      await expectCode(journal.streams.append(append(claim, rows('log', 'a'))), 'lease_lost');
      await journal.streams.append(append(next, rows('log', 'b')));
      assert.deepEqual(await valuesOf(journal, 'r1', 'log'), [[1, 'b']]);
      await expectCode(journal.streams.append(append({ ...claim, run: 'nobody' }, rows('log', 'a'))), 'run_not_found');
      await expectCode(journal.streams.read('nobody', 'log', 1, 1), 'run_not_found');
      await expectCode(journal.streams.list('nobody'), 'run_not_found');
    },
  },
  {
    name: 'a watcher of the run hears of rows',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await Promise.resolve();
      const counter = countWakes(journal, 'r1');
      await journal.streams.append(append(claim, rows('log', 'a')));
      await Promise.resolve();
      assert.equal(counter.wakes, 1);
    },
  },
  {
    name: 'streams are gone when the content of their run is erased, or its session is deleted, and stay when it is repaired',
    async run({ journal }) {
      const claims = await Promise.all(['r1', 'r2', 'r3'].map((run) => createClaimed(journal, run)));
      for (const claim of claims) {
        await journal.append(step(claim, 1));
        await journal.streams.append(append(claim, rows('log', 'a', 'b')));
        await journal.release(claim, { seenSignals: 0 });
      }
      for (const [run, erases] of [
        ['r1', true],
        ['r2', undefined],
      ] as const) {
        const { head, signals } = await journal.examine(run);
        const entries = await journal.read(run);
        const status = { status: 'paused', agent: 'finish', drops: [], waits: [] } as const;
        const how = erases ? { keep: 0, entries, erases } : { keep: 1, entries: entries.slice(1) };
        await journal.repair({ run, head, signals, ...how, ...status });
      }
      assert.deepEqual(await journal.streams.list('r1'), []);
      assert.equal((await valuesOf(journal, 'r2', 'log')).length, 2);
      const again = present(await journal.claim({ ...ben, run: 'r1' }));
      await journal.streams.append(append(again, rows('log', 'c')));
      assert.deepEqual(await valuesOf(journal, 'r1', 'log'), [[1, 'c']]);
      await journal.release(again, { seenSignals: 0 });
      await journal.sessions.delete(identity('r1'));
      const fresh = await createClaimed(journal, 'r1');
      assert.deepEqual(await journal.streams.list('r1'), []);
      await journal.streams.append(append(fresh, rows('log', 'd')));
      assert.deepEqual(await valuesOf(journal, 'r1', 'log'), [[1, 'd']]);
    },
  },
];
