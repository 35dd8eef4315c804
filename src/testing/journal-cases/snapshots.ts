import assert from 'node:assert/strict';
import type { NewSnapshot } from '#journal';
import { ben, createClaimed, expectCode, type JournalCase, LEASE_MS, present, step } from './kit.ts';

/** Bytes that are told apart by one letter each. */
function bytes(letters: string): Uint8Array[] {
  return [...letters].map((letter) => Uint8Array.of(letter.charCodeAt(0)));
}

function snapshot(run: string, fence: number, head: number, more: Partial<NewSnapshot> = {}): NewSnapshot {
  return { run, fence, version: 1, head, body: Uint8Array.of(head), from: 0, blocks: [], ...more };
}

function lettersOf(blocks: readonly Uint8Array[]): string {
  return blocks.map((block) => String.fromCharCode(...block)).join('');
}

export const snapshotCases: readonly JournalCase[] = [
  {
    name: 'the newest snapshot of a run is kept, with the blocks of those before it',
    async run({ journal }) {
      const { fence } = await createClaimed(journal, 'r1');
      await createClaimed(journal, 'r2');
      assert.equal(await journal.snapshots.newest('r1', 1), undefined);
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 1, { blocks: bytes('ab') })), true);
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 2, { from: 2, blocks: bytes('c') })), true);
      const newest = present(await journal.snapshots.newest('r1', 1));
      assert.deepEqual([newest.head, [...newest.body], lettersOf(newest.blocks)], [2, [2], 'abc']);
      await journal.snapshots.keep(snapshot('r1', fence, 3, { from: 3 }));
      await journal.snapshots.forget('r1');
      await journal.snapshots.forget('r1');
      assert.equal(await journal.snapshots.newest('r1', 1), undefined);
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 4, { from: 3 })), false);
      await expectCode(journal.snapshots.forget('nobody'), 'run_not_found');
      assert.equal(await journal.snapshots.newest('r2', 1), undefined);
      await expectCode(journal.snapshots.newest('nobody', 1), 'run_not_found');
      await expectCode(journal.snapshots.keep(snapshot('nobody', 1, 1)), 'run_not_found');
    },
  },
  {
    name: 'a snapshot is not kept that is not newer, or has blocks behind some that are not there',
    async run({ journal }) {
      const { fence } = await createClaimed(journal, 'r1');
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 1, { from: 1, blocks: bytes('b') })), false);
      await journal.snapshots.keep(snapshot('r1', fence, 3, { blocks: bytes('a') }));
      for (const head of [2, 3]) {
        assert.equal(await journal.snapshots.keep(snapshot('r1', fence, head, { blocks: bytes('x') })), false);
      }
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 4, { from: 2, blocks: bytes('c') })), false);
      assert.equal(lettersOf(present(await journal.snapshots.newest('r1', 1)).blocks), 'a');
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 4, { blocks: bytes('yz') })), true);
      assert.equal(lettersOf(present(await journal.snapshots.newest('r1', 1)).blocks), 'yz');
    },
  },
  {
    name: 'a snapshot of other code is not given, and is replaced whole',
    async run({ journal }) {
      const { fence } = await createClaimed(journal, 'r1');
      await journal.snapshots.keep(snapshot('r1', fence, 5, { blocks: bytes('ab') }));
      assert.equal(await journal.snapshots.newest('r1', 2), undefined);
      const other = { version: 2, from: 1, blocks: bytes('y') };
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 6, other)), false);
      const whole = { version: 2, blocks: bytes('x') };
      assert.equal(await journal.snapshots.keep(snapshot('r1', fence, 4, whole)), true);
      assert.equal(await journal.snapshots.newest('r1', 1), undefined);
      const newest = present(await journal.snapshots.newest('r1', 2));
      assert.deepEqual([newest.head, lettersOf(newest.blocks)], [4, 'x']);
    },
  },
  {
    name: 'a snapshot is kept only for the owner that had the run last',
    async run({ journal, clock }) {
      const first = await createClaimed(journal, 'r1');
      await journal.append(step(first, 1));
      await journal.release(first, { seenSignals: 0 });
      assert.equal(await journal.snapshots.keep(snapshot('r1', first.fence, 2)), true);
      clock.advance(LEASE_MS);
      const second = present(await journal.claim({ ...ben, run: 'r1' }));
      assert.equal(await journal.snapshots.keep(snapshot('r1', first.fence, 3)), false);
      assert.equal(await journal.snapshots.keep(snapshot('r1', second.fence, 3)), true);
    },
  },
  {
    name: 'a repair forgets the snapshot, and none of before comes back',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1));
      await journal.release(claim, { seenSignals: 0 });
      await journal.snapshots.keep(snapshot('r1', claim.fence, 2, { blocks: bytes('a') }));
      const { head, signals } = await journal.examine('r1');
      const entries = (await journal.read('r1')).slice(1);
      const status = { status: 'paused', agent: 'finish', drops: [], waits: [] } as const;
      await journal.repair({ run: 'r1', head, signals, keep: 1, entries, ...status });
      assert.equal(await journal.snapshots.newest('r1', 1), undefined);
      assert.equal(await journal.snapshots.keep(snapshot('r1', claim.fence, 3)), false);
      assert.equal(await journal.snapshots.newest('r1', 1), undefined);
    },
  },
];
