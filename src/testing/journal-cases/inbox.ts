import assert from 'node:assert/strict';
import { INBOX_CAP } from '#core';
import {
  ana,
  claimFirst,
  control,
  createClaimed,
  expectCode,
  type JournalCase,
  messagesOf,
  newRun,
  present,
  step,
  stepEntry,
  waiting,
  watchMessage,
} from './kit.ts';

export const inboxCases: readonly JournalCase[] = [
  {
    name: 'J3 controls wait in the order in which they came, as they were sent, once per id',
    async run({ journal }) {
      await journal.create(newRun('r1'));
      const sent = await Promise.all(['c3', 'c1', 'c2', 'c1'].map((id) => journal.signal('r1', control(id))));
      assert.deepEqual(sent, [true, true, true, false]);
      assert.deepEqual(await messagesOf(journal, 'r1'), [control('c3'), control('c1'), control('c2')]);
      assert.equal(await journal.signal('r1', { id: 'c4', type: 'PAUSE' }), true);
      assert.deepEqual((await messagesOf(journal, 'r1'))[3], { id: 'c4', type: 'PAUSE' });
    },
  },
  {
    name: 'J6 what waits has the time at which the store took it, by the store’s clock',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.create(newRun('r2'));
      const first = clock.now();
      await journal.signal('r1', control('c1'));
      clock.advance(500);
      await journal.signal('r1', control('c2'));
      clock.advance(500);
      await journal.signal('r1', control('c1'));
      await journal.append(step(claim, 1, { tells: [{ run: 'r2', message: watchMessage('w1') }] }));
      const times = async (run: string): Promise<number[]> =>
        (await journal.inbox(run)).map(({ storedAt }) => storedAt - first);
      assert.deepEqual([await times('r1'), await times('r2')], [[0, 500], [1_000]]);
    },
  },
  {
    name: 'J6 what comes too late by the store’s clock is not stored, and what was stored before is known',
    async run({ journal, clock }) {
      await journal.create(newRun('r1'));
      const before = clock.now() + 100;
      clock.advance(99);
      assert.equal(await journal.signal('r1', control('c1'), { before }), true);
      clock.advance(1);
      await expectCode(journal.signal('r1', control('c2'), { before }), 'pause_expired');
      assert.equal(await journal.signal('r1', control('c1'), { before }), false);
      assert.deepEqual(await waiting(journal, 'r1'), ['c1']);
      assert.equal(await journal.signal('r1', control('c2')), true);
    },
  },
  {
    name: 'an append takes controls out of the inbox in the same commit, or none when it is refused',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      for (const id of ['c1', 'c2', 'c3']) await journal.signal('r1', control(id));
      await expectCode(journal.append(step(claim, 5, { takes: ['c1'] })), 'journal_conflict');
      assert.deepEqual(await waiting(journal, 'r1'), ['c1', 'c2', 'c3']);
      await journal.append(step(claim, 1, { takes: ['c2', 'c1', 'unknown'] }));
      assert.deepEqual(await waiting(journal, 'r1'), ['c3']);
    },
  },
  {
    name: 'a control that was taken is known for ever',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.signal('r1', control('c1'));
      await journal.append(step(claim, 1, { takes: ['c1'] }));
      assert.equal(await journal.signal('r1', control('c1')), false);
      assert.deepEqual(await waiting(journal, 'r1'), []);
      assert.deepEqual(await journal.renew([claim], 1_000), [1]);
    },
  },
  {
    name: 'the same control id in two runs is two controls',
    async run({ journal }) {
      await journal.create(newRun('r1'));
      await journal.create(newRun('r2'));
      assert.equal(await journal.signal('r1', control('c1')), true);
      assert.equal(await journal.signal('r2', control('c1')), true);
      assert.deepEqual([await waiting(journal, 'r1'), await waiting(journal, 'r2')], [['c1'], ['c1']]);
    },
  },
  {
    name: 'an inbox holds 256 controls and refuses the next, but no answer, new goal or cancel',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      const ids = Array.from({ length: INBOX_CAP }, (_, index) => `c${index}`);
      await Promise.all(ids.map((id) => journal.signal('r1', control(id))));
      await expectCode(journal.signal('r1', control('more')), 'inbox_full');
      assert.equal(await journal.signal('r1', control('c7')), false);
      assert.deepEqual(await waiting(journal, 'r1'), ids);
      assert.deepEqual(await journal.renew([claim], 1_000), [INBOX_CAP]);
      const decisions = ['APPROVE', 'REJECT', 'ANSWER', 'RESUME', 'SETTLE', 'REDIRECT', 'CANCEL'] as const;
      for (const type of decisions) assert.equal(await journal.signal('r1', { id: type, type }), true);
      assert.deepEqual(await waiting(journal, 'r1'), [...ids, ...decisions]);
      await expectCode(journal.signal('r1', control('more')), 'inbox_full');
      await journal.append(step(claim, 1, { takes: ['c0'] }));
      assert.equal(await journal.signal('r1', control('more')), true);
    },
  },
  {
    name: 'what runs tell each other waits in order with the controls, and beside the cap',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      const ids = Array.from({ length: INBOX_CAP }, (_, index) => `c${index}`);
      assert.equal(await journal.signal('r1', watchMessage('w0')), true);
      await Promise.all(ids.map((id) => journal.signal('r1', control(id))));
      assert.equal(await journal.signal('r1', watchMessage('w1')), true);
      assert.equal(await journal.signal('r1', watchMessage('w1')), false);
      await journal.append(step(claim, 1, { tells: [{ run: 'r1', message: watchMessage('w2') }] }));
      await expectCode(journal.signal('r1', control('more')), 'inbox_full');
      assert.deepEqual(await waiting(journal, 'r1'), ['w0', ...ids, 'w1', 'w2']);
      assert.deepEqual((await messagesOf(journal, 'r1'))[0], watchMessage('w0'));
      await journal.append(step(claim, 2, { takes: ['w0', 'w1', 'w2'] }));
      await expectCode(journal.signal('r1', control('more')), 'inbox_full');
      await journal.append(step(claim, 3, { takes: ['c0'] }));
      assert.equal(await journal.signal('r1', control('more')), true);
      assert.deepEqual(await journal.renew([claim], 1_000), [INBOX_CAP + 4]);
    },
  },
  {
    name: 'a signal sets the priority of its run in the same commit, and one that is not stored does not',
    async run({ journal }) {
      for (const run of ['r1', 'r2', 'r3']) await journal.create(newRun(run));
      assert.equal(await journal.signal('r3', control('c1'), { priority: 7 }), true);
      assert.equal(await journal.signal('r3', control('c1'), { priority: -7 }), false);
      assert.equal(await journal.signal('r2', control('c1'), { priority: 3 }), true);
      assert.equal(await journal.signal('r2', control('c2')), true);
      await expectCode(journal.signal('r1', control('c1'), { priority: 0.5 }), 'invalid_config');
      const priorities = (await journal.list({})).map((record) => record.priority);
      assert.deepEqual(priorities, [7, 3, 0]);
      const order: string[] = [];
      for (let claim = await claimFirst(journal, ana); claim !== undefined; claim = await claimFirst(journal, ana)) {
        order.push(claim.run);
      }
      assert.deepEqual(order, ['r3', 'r2', 'r1']);
      const claim = present(await journal.claim({ ...ana, run: 'r1', from: 'ana' }));
      await journal.append(step(claim, 1, { status: 'finished' }));
      await expectCode(journal.signal('r1', control('c9'), { priority: 9 }), 'run_ended');
      assert.equal((await journal.get('r1'))?.priority, 0);
    },
  },
  {
    name: 'a run that is not there or has ended takes no control',
    async run({ journal }) {
      await expectCode(journal.signal('nobody', control('c1')), 'run_not_found');
      const claim = await createClaimed(journal, 'r1');
      await journal.signal('r1', control('c1'));
      await journal.append({ ...step(claim, 1), entries: [stepEntry(2)], status: 'finished' });
      await expectCode(journal.signal('r1', control('c2')), 'run_ended');
      await expectCode(journal.signal('r1', watchMessage('w1')), 'run_ended');
      assert.equal(await journal.signal('r1', control('c1')), false);
      assert.deepEqual(await waiting(journal, 'r1'), ['c1']);
    },
  },
  {
    name: 'a watcher is woken by entries and by signals of its run, until it stops',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      const other = await createClaimed(journal, 'r2');
      let wakes = 0;
      const stop = journal.watch('r1', () => {
        wakes += 1;
      });
      const stopSecond = journal.watch('r1', () => undefined);
      await journal.append(step(claim, 1));
      await Promise.resolve();
      assert.ok(wakes >= 1, 'no wake for an entry');
      const before = wakes;
      await journal.signal('r1', control('c1'));
      await Promise.resolve();
      assert.ok(wakes > before, 'no wake for a signal');
      stopSecond();
      stop();
      stop();
      const after = wakes;
      await journal.append(step(claim, 2));
      await journal.append(step(other, 1));
      await Promise.resolve();
      assert.equal(wakes, after);
    },
  },
];
