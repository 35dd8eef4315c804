import assert from 'node:assert/strict';
import type { RepairRequest } from '#journal';
import {
  ana,
  control,
  createClaimed,
  expectCode,
  type JournalCase,
  LEASE_MS,
  present,
  sequence,
  step,
  stepEntry,
} from './kit.ts';

export const repairCases: readonly JournalCase[] = [
  {
    name: 'a run is examined as it is stored, and set right only as it was examined, when nobody has it',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      for (const head of [1, 2, 3]) await journal.append(step(claim, head));
      await journal.signal('r1', control('c1'));
      const examined = await journal.examine('r1');
      assert.deepEqual(
        examined.entries.map(({ seq, text }) => [seq, JSON.parse(text).kind]),
        [1, 2, 3, 4].map((seq) => [seq, seq === 1 ? 'started' : 'call_ended']),
      );
      assert.deepEqual([examined.head, examined.signals, examined.inbox.map(({ id }) => id)], [4, 1, ['c1']]);
      const entries = [3, 4, 5].map((seq) => stepEntry(seq, `other ${seq}`));
      const agent = 'finish';
      const request: RepairRequest = {
        run: 'r1',
        head: 4,
        signals: 1,
        keep: 2,
        entries,
        status: 'paused',
        agent,
        drops: ['c1'],
      };
      await expectCode(journal.repair(request), 'journal_conflict');
      clock.advance(LEASE_MS);
      await expectCode(journal.repair({ ...request, head: 3 }), 'journal_conflict');
      await expectCode(journal.repair({ ...request, signals: 0 }), 'journal_conflict');
      await expectCode(journal.repair({ ...request, entries: entries.slice(0, 1) }), 'journal_conflict');
      assert.deepEqual(await journal.examine('r1'), examined);
      await journal.repair(request);
      assert.deepEqual((await journal.read('r1')).slice(2), entries);
      assert.deepEqual(await journal.inbox('r1'), []);
      assert.equal((await journal.get('r1'))?.status, 'paused');
      // Whoever had it before writes nothing more; whoever claims it goes on behind what was put there.
      await expectCode(journal.append(step(claim, 5)), 'lease_lost');
      const next = present(await journal.claim(ana));
      assert.equal(next.head, 5);
      await journal.append(step(next, 5));
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2, 3, 4, 5, 6]);
      await expectCode(journal.examine('r9'), 'run_not_found');
    },
  },
];
