/** Runs that an append starts, and what it tells other runs: with its entries, or not at all. */
import assert from 'node:assert/strict';
import type { ErrorCode, TaskMessage } from '#core';
import type { Append, Claim, Journal } from '#journal';
import {
  ana,
  ben,
  claimFirst,
  control,
  countWakes,
  createClaimed,
  expectCode,
  identity,
  type JournalCase,
  LEASE_MS,
  messagesOf,
  newRun,
  newTask,
  present,
  sequence,
  step,
  stepEntry,
  waiting,
  watchMessage,
} from './kit.ts';

const ENDED: TaskMessage = {
  id: 'ended:child',
  type: 'TASK_ENDED',
  end: {
    task: 'child',
    status: 'complete',
    result: { text: 'ä€😀' },
    usage: { steps: 1, inputTokens: 2, outputTokens: 3, costMicroUsd: 4 },
  },
};

/** Everything that a journal tells of these runs. */
async function allOf(journal: Journal, claims: readonly Claim[]): Promise<unknown> {
  return {
    records: await journal.list({ limit: 200 }),
    entries: await Promise.all(claims.map(({ run }) => journal.read(run))),
    inboxes: await Promise.all(claims.map(({ run }) => messagesOf(journal, run))),
    signals: await journal.renew(claims, LEASE_MS),
  };
}

/** A parent with a task, and a run that waits for somebody; all claimed. One control waits for the parent. */
async function family(journal: Journal): Promise<{ parent: Claim; child: Claim; other: Claim }> {
  const parent = await createClaimed(journal, 'parent');
  await journal.create({ ...newTask('child', 'parent'), claim: ana });
  const child = { ...parent, run: 'child' };
  const other = await createClaimed(journal, 'other');
  await journal.signal('parent', control('c1'));
  return { parent, child, other };
}

export const taskCases: readonly JournalCase[] = [
  {
    name: 'J2 an append starts runs, tells others and takes messages in one commit',
    async run({ journal, clock }) {
      const { parent, child, other } = await family(journal);
      await journal.append(
        step(parent, 1, {
          takes: ['c1'],
          starts: [newTask('k1', 'parent'), { ...newTask('k2', 'parent'), priority: 5 }],
          treeLimit: 3,
          tells: [
            { run: 'other', message: ENDED },
            { run: 'k1', message: watchMessage('w1') },
          ],
          seenSignals: 1,
        }),
      );
      assert.deepEqual(await sequence(journal, 'parent'), [1, 2]);
      assert.deepEqual(await waiting(journal, 'parent'), []);
      assert.deepEqual(await messagesOf(journal, 'other'), [ENDED]);
      assert.deepEqual(await journal.renew([parent, child, other], LEASE_MS), [1, 0, 1]);
      assert.deepEqual(await journal.get('k2'), {
        identity: identity('k2'),
        status: 'pending',
        conversation: false,
        query: 'query of k2',
        agent: 'worker',
        parent: 'parent',
        root: 'parent',
        priority: 5,
        createdAt: clock.now(),
        updatedAt: clock.now(),
        readAt: clock.now(),
        head: 1,
      });
      assert.deepEqual(await journal.read('k2'), newTask('k2', 'parent').entries);
      const before = { status: 'pending', wakeAt: 0 };
      assert.deepEqual(await claimFirst(journal, ben), { run: 'k2', fence: 1, head: 1, signals: 0, before });
      assert.deepEqual(await claimFirst(journal, ben), { run: 'k1', fence: 1, head: 1, signals: 1, before });
      assert.deepEqual(await waiting(journal, 'k1'), ['w1']);
    },
  },
  {
    name: 'J2 an append that is refused starts no run, tells nobody and takes nothing, whatever refuses it',
    async run({ journal }) {
      const { parent, child, other } = await family(journal);
      const whole: Append = step(parent, 1, {
        takes: ['c1'],
        status: 'finished',
        starts: [newTask('k1', 'parent'), newTask('k2', 'parent')],
        treeLimit: 3,
        tells: [
          { run: 'other', message: ENDED },
          { run: 'child', message: watchMessage('w1') },
        ],
        seenSignals: 1,
      });
      const refused: readonly (readonly [ErrorCode, Partial<Append>])[] = [
        ['task_limit', { treeLimit: 2 }],
        ['inbox_changed', { seenSignals: 0 }],
        ['lease_lost', { fence: 0 }],
        ['journal_conflict', { expected: 2, entries: [stepEntry(3)] }],
        ['journal_conflict', { entries: [stepEntry(2), stepEntry(4)] }],
        ['run_not_found', { run: 'nobody' }],
        ['invalid_config', { starts: [newTask('k1', 'parent'), newRun('k2', { entries: [] })] }],
        ['invalid_config', { starts: [newTask('k1', 'parent'), { ...newTask('k2', 'parent'), priority: 0.5 }] }],
        [
          'identity_required',
          { starts: [newTask('k1', 'parent'), newRun('k2', { identity: identity('k2', { user: '' }) })] },
        ],
      ];
      const before = await allOf(journal, [parent, child, other]);
      for (const [code, part] of refused) {
        await expectCode(journal.append({ ...whole, ...part }), code);
        assert.deepEqual(await allOf(journal, [parent, child, other]), before, `after ${code}`);
        assert.equal(await journal.get('k1'), undefined);
      }
      await journal.append(whole);
      assert.equal(present(await journal.get('k1')).status, 'pending');
      assert.deepEqual([await waiting(journal, 'other'), await waiting(journal, 'child')], [['ended:child'], ['w1']]);
    },
  },
  {
    name: 'J2 an append without entries starts and tells, and is refused under an old fence all the same',
    async run({ journal }) {
      const { parent } = await family(journal);
      const tells = [{ run: 'other', message: ENDED }];
      const append: Append = { ...step(parent, 1), entries: [], starts: [newTask('k1', 'parent')], tells };
      await expectCode(journal.append({ ...append, fence: 0 }), 'lease_lost');
      await expectCode(journal.append({ ...append, expected: 0 }), 'journal_conflict');
      assert.deepEqual([await journal.get('k1'), await messagesOf(journal, 'other')], [undefined, []]);
      await journal.append(append);
      assert.equal((await journal.get('k1'))?.status, 'pending');
      assert.deepEqual(await sequence(journal, 'parent'), [1]);
      assert.deepEqual(await waiting(journal, 'other'), ['ended:child']);
    },
  },
  {
    name: 'a task that is there is not started again',
    async run({ journal }) {
      const { parent, child } = await family(journal);
      await journal.append({ ...step(child, 1), status: 'finished' });
      const before = [await journal.get('child'), await journal.read('child')];
      const starts = [newTask('child', 'parent'), newTask('k1', 'parent')];
      await journal.append(step(parent, 1, { starts: [...starts, { ...newTask('k1', 'parent'), priority: 9 }] }));
      assert.deepEqual([await journal.get('child'), await journal.read('child')], before);
      assert.equal((await journal.get('k1'))?.priority, 0);
      assert.equal((await journal.list({ parent: 'parent' })).length, 2);
      assert.deepEqual(await sequence(journal, 'parent'), [1, 2]);
    },
  },
  {
    name: 'J2 an append cannot start a run under the id of a run that is not a task of its parent, and starts nothing then',
    async run({ journal }) {
      const { parent, child } = await family(journal);
      const foreign = { tenant: 'globex', user: 'eve', session: 's1' };
      await journal.create(newRun('parent.1.0', { identity: { ...foreign, run: 'parent.1.0' } }));
      await journal.create(newRun('parent.2.0'));
      await journal.create(newTask('parent.3.0', 'other'));
      const theirs = newTask('parent.4.0', 'parent').entries;
      const stranger = { ...foreign, run: 'parent.4.0' };
      await journal.create({ identity: stranger, priority: 0, entries: theirs });
      const before = await allOf(journal, [parent, child]);
      for (const taken of ['parent', 'parent.1.0', 'parent.2.0', 'parent.3.0', 'parent.4.0']) {
        const starts = [newTask('k1', 'parent'), newTask(taken, 'parent')];
        const error = await expectCode(journal.append(step(parent, 1, { starts, treeLimit: 50 })), 'task_id_taken');
        assert.deepEqual(error.data, { run: 'parent', task: taken });
        assert.deepEqual(await allOf(journal, [parent, child]), before);
      }
      // Nothing of it is left behind: the next append is as if it had not been tried.
      await journal.append(step(parent, 1, { starts: [newTask('k1', 'parent')] }));
      assert.deepEqual(await sequence(journal, 'k1'), [1]);
    },
  },
  {
    name: 'a tree of runs grows to its limit, without runs that have ended and those that are there',
    async run({ journal }) {
      const { parent, child, other } = await family(journal);
      const start = async (expected: number, runs: readonly string[], treeLimit: number): Promise<void> =>
        journal.append(step(parent, expected, { starts: runs.map((run) => newTask(run, 'parent')), treeLimit }));
      await journal.append(step(other, 1, { starts: [newTask('o1', 'other'), newTask('o2', 'other')], treeLimit: 2 }));
      await expectCode(start(1, ['k1', 'k2'], 2), 'task_limit');
      await start(1, ['k1', 'child', 'k1'], 2);
      const error = await expectCode(start(2, ['k2'], 2), 'task_limit');
      assert.equal(error.data?.['limit'], 2);
      // Below the tasks of the root they count as well.
      await journal.append(step(parent, 2, { starts: [newTask('k1.1', 'k1', 'parent')], treeLimit: 3 }));
      await expectCode(start(3, ['k2'], 3), 'task_limit');
      await start(3, ['k1', 'child'], 1);
      await start(4, [], 0);
      await journal.append(step(parent, 5, { starts: [newTask('k2', 'parent')] }));
      await journal.append(step(parent, 6, { starts: [newRun('alone')], treeLimit: 0 }));
      // One ends, and leaves its place; the one that failed may be tried again, and has it again.
      await expectCode(start(7, ['k3'], 4), 'task_limit');
      await journal.append({ ...step(child, 1), status: 'failed' });
      await start(7, ['k3'], 4);
      await expectCode(start(8, ['k4'], 4), 'task_limit');
      const again = present(await journal.claim({ ...ana, run: 'child', reopens: true }));
      await journal.append({ ...step(again, 2), status: 'running' });
      await expectCode(start(8, ['k4'], 5), 'task_limit');
      await start(8, ['k4'], 6);
      assert.deepEqual(await sequence(journal, 'parent'), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
      for (const run of ['k1', 'k1.1', 'k2', 'k3', 'k4', 'alone']) present(await journal.get(run));
    },
  },
  {
    name: 'of two appends at the same moment that fill a tree one starts its run',
    async run({ journal }) {
      const { parent, child } = await family(journal);
      const results = await Promise.allSettled([
        journal.append(step(parent, 1, { starts: [newTask('k1', 'parent')], treeLimit: 2 })),
        journal.append({ ...step(child, 1), starts: [newTask('k2', 'child', 'parent')], treeLimit: 2 }),
      ]);
      assert.deepEqual(
        results.map((result) => result.status),
        ['fulfilled', 'rejected'],
      );
      assert.equal(await journal.get('k2'), undefined);
      assert.deepEqual([await sequence(journal, 'parent'), await sequence(journal, 'child')], [[1, 2], [1]]);
    },
  },
  {
    name: 'J3 what a run is told it is told once per id, also when it has taken it',
    async run({ journal }) {
      const { parent, other } = await family(journal);
      const tells = [{ run: 'other', message: ENDED }];
      await journal.append(step(parent, 1, { tells: [...tells, ...tells] }));
      await journal.append(step(parent, 2, { tells }));
      assert.equal(await journal.signal('other', ENDED), false);
      assert.deepEqual(await messagesOf(journal, 'other'), [ENDED]);
      await journal.append(step(other, 1, { takes: [ENDED.id] }));
      await journal.append(step(parent, 3, { tells: [...tells, { run: 'parent', message: ENDED }] }));
      assert.deepEqual([await waiting(journal, 'other'), await waiting(journal, 'parent')], [[], ['c1', ENDED.id]]);
      assert.deepEqual(await journal.renew([other, parent], LEASE_MS), [1, 2]);
    },
  },
  {
    name: 'J3 a run that is told something is due, and its release hears of it',
    async run({ journal }) {
      const { parent, child, other } = await family(journal);
      assert.equal(await journal.release(child, { wakeInMs: null, seenSignals: 0, status: 'waiting' }), true);
      assert.equal(await claimFirst(journal, ben), undefined);
      const tells = ['child', 'other'].map((run) => ({ run, message: watchMessage('w1') }));
      await journal.append(step(parent, 1, { tells }));
      const record = present(await journal.get('child'));
      assert.deepEqual([record.status, 'wakeAt' in record], ['waiting', false]);
      const before = { status: 'waiting', wakeAt: 0 };
      assert.deepEqual(await claimFirst(journal, ben), { run: 'child', fence: 2, head: 1, signals: 1, before });
      assert.equal(await journal.release(other, { wakeInMs: null, seenSignals: 0, status: 'paused' }), false);
      assert.equal(present(await claimFirst(journal, ben)).run, 'other');
    },
  },
  {
    name: 'runs that have ended, or are not there, are told nothing; the others are',
    async run({ journal }) {
      const { parent, child } = await family(journal);
      await journal.append({ ...step(child, 1), status: 'failed' });
      const before = await journal.get('child');
      const tells = ['nobody', 'child', 'parent', 'other'].map((run) => ({ run, message: watchMessage('w1') }));
      await journal.append(step(parent, 1, { status: 'finished', tells }));
      assert.deepEqual([await messagesOf(journal, 'child'), await journal.get('child')], [[], before]);
      assert.deepEqual(await waiting(journal, 'parent'), ['c1'], 'a run was told something by its own ending');
      assert.deepEqual(await waiting(journal, 'other'), ['w1']);
      assert.equal(await journal.get('nobody'), undefined);
    },
  },
  {
    name: 'watchers are woken of runs that are told something or are started',
    async run({ journal }) {
      const { parent } = await family(journal);
      const [other, started, child] = ['other', 'k1', 'child'].map((run) => countWakes(journal, run));
      const tells = [{ run: 'other', message: watchMessage('w1') }];
      await expectCode(
        journal.append(step(parent, 7, { starts: [newTask('k1', 'parent')], tells })),
        'journal_conflict',
      );
      await Promise.resolve();
      assert.deepEqual([other?.wakes, started?.wakes], [0, 0]);
      await journal.append(step(parent, 1, { starts: [newTask('k1', 'parent')], tells }));
      await Promise.resolve();
      assert.ok(present(other).wakes >= 1, 'no wake for what a run was told');
      assert.ok(present(started).wakes >= 1, 'no wake for a run that was started');
      assert.equal(child?.wakes, 0);
    },
  },
  {
    name: 'an append that must know every signal is refused when there was another',
    async run({ journal }) {
      const { parent } = await family(journal);
      const error = await expectCode(journal.append(step(parent, 1, { seenSignals: 0 })), 'inbox_changed');
      assert.equal(error.data?.['signals'], 1);
      await journal.append(step(parent, 1, { seenSignals: 1, takes: ['c1'] }));
      await journal.signal('parent', watchMessage('w1'));
      await expectCode(journal.append(step(parent, 2, { seenSignals: 1 })), 'inbox_changed');
      assert.deepEqual(await sequence(journal, 'parent'), [1, 2]);
      await journal.append(step(parent, 2, { seenSignals: 9, status: 'finished' }));
    },
  },
  {
    name: 'of a signal and an ending at the same moment the first one wins',
    async run({ journal }) {
      const { parent, other } = await family(journal);
      const [signal, ending] = await Promise.allSettled([
        journal.signal('parent', control('cancel')),
        journal.append(step(parent, 1, { status: 'finished', seenSignals: 1 })),
      ]);
      assert.deepEqual([signal?.status, ending?.status], ['fulfilled', 'rejected']);
      const [first, late] = await Promise.allSettled([
        journal.append(step(other, 1, { status: 'finished', seenSignals: 0 })),
        journal.signal('other', control('cancel')),
      ]);
      assert.deepEqual([first?.status, late?.status], ['fulfilled', 'rejected']);
      assert.deepEqual(await waiting(journal, 'other'), []);
    },
  },
];
