import assert from 'node:assert/strict';
import type { RunStatus } from '#journal';
import {
  ana,
  ben,
  claimFirst,
  control,
  createClaimed,
  expectCode,
  type JournalCase,
  LEASE_MS,
  newRun,
  present,
  sequence,
  step,
} from './kit.ts';

export const leaseCases: readonly JournalCase[] = [
  {
    name: 'J4 a leased run is nobody else’s, and each claim raises the fence',
    async run({ journal, clock }) {
      const first = await createClaimed(journal, 'r1');
      assert.equal(await claimFirst(journal, ben), undefined);
      assert.equal(await journal.claim({ ...ben, run: 'r1' }), undefined);
      assert.equal(await journal.claim({ ...ana, run: 'r1' }), undefined);
      clock.advance(LEASE_MS);
      const second = present(await claimFirst(journal, ben));
      const before = { status: 'running', wakeAt: 0 };
      assert.deepEqual(second, { run: 'r1', fence: first.fence + 1, head: 1, signals: 0, workLeftMsAgo: 0, before });
      assert.equal(await claimFirst(journal, ana), undefined);
    },
  },
  {
    name: 'J4 a lease and a wait are as long as was asked for, also by a clock with fractions of a millisecond',
    async run({ journal, clock }) {
      clock.advance(0.6);
      const first = await createClaimed(journal, 'r1');
      clock.advance(LEASE_MS - 0.4);
      assert.equal(await claimFirst(journal, ben), undefined);
      await journal.renew([{ run: 'r1', fence: first.fence }], LEASE_MS);
      clock.advance(LEASE_MS - 0.4);
      assert.equal(await claimFirst(journal, ben), undefined);
      clock.advance(1.4);
      const second = present(await claimFirst(journal, ben));
      await journal.release({ run: 'r1', fence: second.fence }, { wakeInMs: 10, seenSignals: second.signals });
      clock.advance(9.8);
      assert.equal(await claimFirst(journal, ana), undefined);
      clock.advance(1.2);
      present(await claimFirst(journal, ana));
    },
  },
  {
    name: 'J4 of many who claim at the same time one gets the run',
    async run({ journal }) {
      await journal.create(newRun('r1'));
      const claims = await Promise.all(Array.from({ length: 20 }, () => claimFirst(journal, ana)));
      assert.equal(claims.filter((claim) => claim !== undefined).length, 1);
    },
  },
  {
    name: 'J2 a zombie’s late append is refused after a takeover',
    async run({ journal, clock }) {
      const zombie = await createClaimed(journal, 'r1');
      clock.advance(LEASE_MS);
      const heir = present(await claimFirst(journal, ben));
      await expectCode(journal.append(step(zombie, 1)), 'lease_lost');
      await journal.append(step(heir, 1));
      await expectCode(journal.append(step(zombie, 1)), 'lease_lost');
      await expectCode(journal.append(step(zombie, 2)), 'lease_lost');
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2]);
    },
  },
  {
    name: 'J4 an old fence is told before a head that moved, also when what was appended is there',
    async run({ journal, clock }) {
      const zombie = await createClaimed(journal, 'r1');
      await journal.append(step(zombie, 1));
      await expectCode(journal.append(step(zombie, 1)), 'journal_conflict');
      clock.advance(LEASE_MS);
      present(await claimFirst(journal, ben));
      await expectCode(journal.append(step(zombie, 1)), 'lease_lost');
      await expectCode(journal.append({ ...step(zombie, 1), seenSignals: 0 }), 'lease_lost');
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2]);
    },
  },
  {
    name: 'J5 a claim says how long ago the run was taken from an owner that may live still',
    async run({ journal, clock }) {
      const first = await createClaimed(journal, 'r1');
      assert.equal('workLeftMsAgo' in first, false);
      clock.advance(LEASE_MS + 5);
      const asked: string[] = [];
      const isDead = (owner: string): boolean => asked.push(owner) > 9;
      assert.equal(present(await claimFirst(journal, { ...ben, isDead })).workLeftMsAgo, 0);
      assert.deepEqual(asked, ['ana']);
      // Neither a death nor a release after it makes the first owner dead.
      clock.advance(100);
      assert.equal(present(await journal.claim({ ...ana, run: 'r1', from: 'ben' })).workLeftMsAgo, 100);
      clock.advance(LEASE_MS);
      const third = present(await claimFirst(journal, { ...ben, isDead: (owner) => owner === 'ana' }));
      assert.equal(third.workLeftMsAgo, 100 + LEASE_MS);
      assert.equal(await journal.release(third, { seenSignals: 0 }), true);
      clock.advance(1);
      assert.equal(present(await claimFirst(journal, ana)).workLeftMsAgo, 101 + LEASE_MS);
      clock.advance(LEASE_MS);
      assert.equal(present(await journal.claim({ ...ben, run: 'r1' })).workLeftMsAgo, 0);
    },
  },
  {
    name: 'J5 an owner may say that it leaves work when it gives the run back',
    async run({ journal, clock }) {
      const first = await createClaimed(journal, 'r1');
      await journal.release(first, { seenSignals: 0, leavesWork: true });
      clock.advance(7);
      const second = present(await claimFirst(journal, ben));
      assert.equal(second.workLeftMsAgo, 7);
      await journal.release(second, { seenSignals: 0 });
      clock.advance(1);
      assert.equal(present(await claimFirst(journal, ana)).workLeftMsAgo, 8);
    },
  },
  {
    name: 'J5 no owner is left in doubt that gave the run back or is known to be dead',
    async run({ journal, clock }) {
      const [released, dead] = [await createClaimed(journal, 'r1'), await createClaimed(journal, 'r2')];
      assert.equal(await journal.release(released, { seenSignals: 0 }), true);
      clock.advance(LEASE_MS);
      for (const run of ['r1', 'r2']) {
        const claim = present(await journal.claim({ ...ben, run, isDead: (owner) => owner === 'ana' }));
        assert.equal('workLeftMsAgo' in claim, false);
      }
      assert.deepEqual(await journal.renew([dead], LEASE_MS), [undefined]);
    },
  },
  {
    name: 'a claim passes over the runs that it is not to have; one that is named is had all the same',
    async run({ journal }) {
      for (const run of ['r1', 'r2']) await journal.create(newRun(run));
      const claim = present(await claimFirst(journal, { ...ana, exceptRuns: ['r1', 'other'] }));
      assert.equal(claim.run, 'r2');
      assert.equal(await claimFirst(journal, { ...ana, exceptRuns: ['r1'] }), undefined);
      assert.equal(present(await journal.claim({ ...ana, run: 'r1' })).run, 'r1');
    },
  },
  {
    name: 'claims at once pass over their own runs, and a run that is not passed over any more is had again',
    async run({ journal, clock }) {
      const runs = ['r1', 'r2', 'r3', 'r4'];
      const except = (exceptRuns: readonly string[]) => claimFirst(journal, { ...ana, exceptRuns });
      // A run that does not exist yet is skipped when it comes.
      assert.equal(await except(runs), undefined);
      for (const run of runs) await journal.create(newRun(run));
      assert.equal(await except(runs), undefined);
      const claims = await Promise.all([except(['r1', 'r2']), except(['r1', 'r3']), except(['r3', 'r2', 'r1'])]);
      assert.deepEqual(
        claims.map((claim) => claim?.run),
        ['r3', 'r2', 'r4'],
      );
      clock.advance(LEASE_MS);
      assert.equal(present(await except(['r1', 'r3', 'r4'])).run, 'r2');
      assert.equal(present(await except(['r1'])).run, 'r3');
      assert.equal(present(await except([])).run, 'r1');
      assert.equal(present(await except(['r1'])).run, 'r4');
    },
  },
  {
    name: 'a problem stands in the record until somebody claims the run',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      const problem = { code: 'run_changed', message: 'It was started with other code.' };
      assert.equal(await journal.release(claim, { seenSignals: 0, problem }), true);
      assert.deepEqual((await journal.get('r1'))?.problem, problem);
      assert.deepEqual((await journal.list({}))[0]?.problem, problem);
      present(await claimFirst(journal, ben));
      assert.equal('problem' in present(await journal.get('r1')), false);
    },
  },
  {
    name: 'the owner of a lease that is over still appends when nobody took over',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      clock.advance(LEASE_MS * 2);
      await journal.append(step(claim, 1));
      assert.deepEqual(await journal.renew([claim], LEASE_MS), [0]);
      assert.equal(await claimFirst(journal, ben), undefined);
    },
  },
  {
    name: 'a lease of an owner known to be dead is taken before it is over where the run is asked for, and else when it is over',
    async run({ journal, clock }) {
      const isDead = (owner: string): boolean => owner === 'ana';
      await createClaimed(journal, 'r1');
      await createClaimed(journal, 'r2');
      assert.equal(await journal.claim({ ...ben, run: 'r2', from: 'carl' }), undefined);
      assert.equal(await journal.claim({ ...ben, run: 'r2', isDead }), undefined);
      assert.equal(present(await journal.claim({ ...ben, run: 'r2', from: 'ana' })).fence, 2);
      assert.equal(await journal.claim({ ...ben, run: 'r2', from: 'ana' }), undefined);
      assert.equal(await claimFirst(journal, { ...ben, isDead }), undefined);
      clock.advance(LEASE_MS);
      const { run, fence, workLeftMsAgo } = present(await claimFirst(journal, { ...ben, isDead }));
      assert.deepEqual([run, fence, workLeftMsAgo], ['r1', 2, undefined]);
    },
  },
  {
    name: 'the highest priority is claimed first, then the oldest',
    async run({ journal, clock }) {
      for (const [run, priority] of [
        ['low', -5],
        ['old', 1],
        ['young', 1],
        ['high', 9],
        ['timed', 5],
      ] as const) {
        await journal.create(newRun(run, { priority }));
        clock.advance(1);
      }
      const timed = present(await journal.claim({ ...ana, run: 'timed' }));
      await journal.release(timed, { wakeInMs: 5, seenSignals: 0 });
      clock.advance(5);
      const order: string[] = [];
      for (let claim = await claimFirst(journal, ana); claim !== undefined; claim = await claimFirst(journal, ana)) {
        order.push(claim.run);
      }
      assert.deepEqual(order, ['high', 'timed', 'old', 'young', 'low']);
    },
  },
  {
    name: 'a renewal keeps the lease, counts signals, and tells of a lost lease',
    async run({ journal, clock }) {
      const [kept, lost] = [await createClaimed(journal, 'r1'), await createClaimed(journal, 'r2')];
      clock.advance(LEASE_MS - 1);
      assert.deepEqual(await journal.renew([kept], LEASE_MS), [0]);
      clock.advance(LEASE_MS - 1);
      assert.equal(present(await claimFirst(journal, ben)).run, 'r2');
      await journal.signal('r1', control('c1'));
      await journal.signal('r1', control('c2'));
      const unknown = { run: 'nobody', fence: 1 };
      assert.deepEqual(await journal.renew([lost, kept, unknown], LEASE_MS), [undefined, 2, undefined]);
      assert.deepEqual(await journal.renew([], LEASE_MS), []);
      assert.equal(await claimFirst(journal, ben), undefined);
      // Whoever has lost the run makes the lease of the new owner no longer.
      assert.deepEqual(await journal.renew([lost], 10 * LEASE_MS), [undefined]);
      clock.advance(LEASE_MS);
      assert.equal(present(await journal.claim({ ...ana, run: 'r2' })).fence, 3);
    },
  },
  {
    name: 'J4 an append renews the lease in the same commit when it says so, also one that is over and that nobody has claimed',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      clock.advance(LEASE_MS - 1);
      await journal.append(step(claim, 1));
      clock.advance(1);
      assert.equal('lease' in present(await journal.get('r1')), false);
      await journal.append(step(claim, 2, { leaseMs: LEASE_MS }));
      const { lease, readAt } = present(await journal.get('r1'));
      assert.deepEqual(lease, { owner: 'ana', until: readAt + LEASE_MS });
      clock.advance(LEASE_MS - 1);
      assert.equal(await claimFirst(journal, ben), undefined);
      clock.advance(1);
      const heir = present(await claimFirst(journal, ben));
      await expectCode(journal.append(step(claim, 3, { leaseMs: 9 * LEASE_MS })), 'lease_lost');
      await expectCode(journal.append(step(heir, 2, { leaseMs: 9 * LEASE_MS })), 'journal_conflict');
      await expectCode(journal.append(step(heir, 3, { leaseMs: 0 })), 'invalid_config');
      assert.equal(present(await journal.get('r1')).lease?.until, clock.now() + LEASE_MS);
      await journal.release(heir, { seenSignals: 0 });
      await expectCode(journal.append(step(heir, 3, { leaseMs: LEASE_MS })), 'lease_lost');
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2, 3]);
      assert.equal(present(await claimFirst(journal, ana)).fence, 3);
    },
  },
  {
    name: 'a length that is not a positive number is refused',
    async run({ journal }) {
      await journal.create(newRun('r1'));
      await expectCode(claimFirst(journal, { owner: 'ana', leaseMs: 0 }), 'invalid_config');
      await expectCode(claimFirst(journal, { owner: 'ana', leaseMs: Number.NaN }), 'invalid_config');
      await expectCode(journal.create(newRun('r2', { claim: { owner: 'ana', leaseMs: -1 } })), 'invalid_config');
      await expectCode(journal.renew([], Number.POSITIVE_INFINITY), 'invalid_config');
      const claim = present(await claimFirst(journal, ana));
      await expectCode(journal.release(claim, { wakeInMs: Number.NaN, seenSignals: 0 }), 'invalid_config');
    },
  },
  {
    name: 'a released run is due at once, unless it is parked',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      assert.equal(await journal.release(claim, { seenSignals: 0 }), true);
      assert.equal('wakeAt' in present(await journal.get('r1')), false);
      assert.deepEqual(await journal.renew([claim], LEASE_MS), [undefined]);
      assert.equal(present(await claimFirst(journal, ben)).fence, 2);
    },
  },
  {
    name: 'a run parked until a time is due then, and can be claimed by its id before',
    async run({ journal, clock }) {
      const wakeAt = clock.now() + 5_000;
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1, { status: 'paused' }));
      assert.equal(await journal.release(claim, { wakeInMs: 5_000, seenSignals: 0 }), true);
      assert.equal((await journal.get('r1'))?.wakeAt, wakeAt);
      clock.advance(4_999);
      assert.equal(await claimFirst(journal, ben), undefined);
      const early = present(await journal.claim({ ...ben, run: 'r1' }));
      assert.equal(await journal.release(early, { wakeInMs: wakeAt - clock.now(), seenSignals: 0 }), true);
      clock.advance(1);
      assert.equal(present(await claimFirst(journal, ben)).run, 'r1');
    },
  },
  {
    name: 'J3 a run parked until a signal is due with the next signal',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1, { status: 'paused' }));
      await journal.release(claim, { wakeInMs: null, seenSignals: 0 });
      assert.equal((await journal.get('r1'))?.wakeAt, null);
      clock.advance(1_000_000);
      assert.equal(await claimFirst(journal, ben), undefined);
      await journal.signal('r1', control('c1'));
      assert.equal(present(await claimFirst(journal, ben)).signals, 1);
    },
  },
  {
    name: 'J3 a signal that came before the release keeps the run due',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.signal('r1', control('c1'));
      assert.equal(await journal.release(claim, { wakeInMs: null, seenSignals: 0 }), false);
      const again = present(await claimFirst(journal, ben));
      assert.equal(await journal.release(again, { wakeInMs: null, seenSignals: again.signals }), true);
      assert.equal(await claimFirst(journal, ben), undefined);
    },
  },
  {
    name: 'the run of a worker that died is due when its lease is over, however it was parked before',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.release(claim, { wakeInMs: null, seenSignals: 0 });
      present(await journal.claim({ ...ana, run: 'r1' }));
      assert.equal('wakeAt' in present(await journal.get('r1')), false);
      clock.advance(LEASE_MS);
      assert.equal(present(await claimFirst(journal, ben)).run, 'r1');
    },
  },
  {
    name: 'a lost lease releases nothing',
    async run({ journal, clock }) {
      const zombie = await createClaimed(journal, 'r1');
      clock.advance(LEASE_MS);
      const heir = present(await claimFirst(journal, ben));
      assert.equal(await journal.release(zombie, { wakeInMs: null, seenSignals: 0 }), true);
      assert.equal((await journal.get('r1'))?.lease?.owner, 'ben');
      assert.deepEqual(await journal.renew([heir], LEASE_MS), [0]);
      assert.equal(await journal.release({ run: 'nobody', fence: 1 }, { seenSignals: 0 }), true);
    },
  },
  {
    name: 'a run that has ended is never due and cannot be claimed',
    async run({ journal, clock }) {
      const ends: readonly RunStatus[] = ['finished', 'failed', 'cancelled'];
      for (const status of ends) {
        const claim = await createClaimed(journal, status);
        await journal.append(step(claim, 1, { status }));
        if (status !== 'failed') assert.equal(await journal.release(claim, { seenSignals: 0 }), true);
        const record = present(await journal.get(status));
        assert.deepEqual([record.status, record.wakeAt], [status, null]);
      }
      clock.advance(LEASE_MS * 2);
      assert.equal(await claimFirst(journal, ben), undefined);
      for (const run of ends) assert.equal(await journal.claim({ ...ben, run, from: 'ana' }), undefined);
    },
  },
];
