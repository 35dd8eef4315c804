import assert from 'node:assert/strict';
import type { Journal, NewRun, Park, ParkedRequest } from '#journal';
import {
  ana,
  assertShared,
  ben,
  control,
  createClaimed,
  expectCode,
  identity,
  type JournalCase,
  LEASE_MS,
  newRun,
  present,
  runsOf,
  sequence,
  startedEntry,
  step,
} from './kit.ts';

const wanted: ParkedRequest = { ...ben, agents: ['finish'], limit: 10 };

async function park(journal: Journal, run: string, how: Partial<Park> = {}, more: Partial<NewRun> = {}): Promise<void> {
  const claim = present(await journal.create(newRun(run, { claim: ana, ...more })));
  await journal.append(step(claim, 1));
  await journal.release(claim, { wakeInMs: 0, seenSignals: 0, status: 'waiting', ...how });
}

export const parkedCases: readonly JournalCase[] = [
  {
    name: 'parked runs that are due are claimed many at once, the one that is due longest first, with what a driver needs',
    async run({ journal, clock }) {
      await park(journal, 'later', { wakeInMs: 5_001 });
      await park(journal, 'second', { wakeInMs: 2_000 }, { identity: identity('second', { tenant: 'umbrella' }) });
      await park(journal, 'first', { wakeInMs: 1_000, status: 'paused' });
      assert.equal(await journal.nextDue(['finish']), 1_000);
      assert.deepEqual(await journal.claimParked(wanted), []);
      clock.advance(5_000);
      assert.equal(await journal.nextDue(['finish']), -4_000);
      const claimed = await journal.claimParked(wanted);
      assert.deepEqual(runsOf(claimed), ['first', 'second']);
      assert.deepEqual(
        claimed.map(({ tenant }) => tenant),
        ['acme', 'umbrella'],
      );
      assert.deepEqual(claimed[0]?.claim.before.status, 'paused');
      for (const { claim, entries } of claimed) {
        assert.equal(claim.fence, 2);
        assert.equal(claim.head, 2);
        if (entries !== undefined) assert.deepEqual(entries, await journal.read(claim.run));
        await journal.append(step(claim, 2));
        assert.deepEqual(await sequence(journal, claim.run), [1, 2, 3]);
      }
      assert.equal(await journal.nextDue(['finish']), 1);
      assert.deepEqual(await journal.claimParked(wanted), []);
    },
  },
  {
    name: 'no more parked runs are claimed than were asked for, and each by one owner',
    async run({ journal }) {
      const runs = ['r1', 'r2', 'r3', 'r4', 'r5'] as const;
      for (const run of runs) await park(journal, run);
      await assertShared(runs, (lease, limit) => journal.claimParked({ ...wanted, ...lease, limit }));
    },
  },
  {
    name: 'J3 a parked run is due when it was told something',
    async run({ journal }) {
      await park(journal, 'r1', { wakeInMs: null, status: 'paused' });
      assert.equal(await journal.nextDue(['finish']), undefined);
      assert.deepEqual(await journal.claimParked(wanted), []);
      await journal.signal('r1', control('c1'));
      const [one] = await journal.claimParked(wanted);
      assert.equal(one?.claim.signals, 1);
    },
  },
  {
    name: 'runs that nobody has begun, that somebody has, that were given back, or that have ended are not parked',
    async run({ journal, clock }) {
      await journal.create(newRun('new'));
      await createClaimed(journal, 'held');
      const back = await createClaimed(journal, 'back');
      await journal.release(back, { seenSignals: 0 });
      const ended = await createClaimed(journal, 'ended');
      await journal.append(step(ended, 1, { status: 'finished' }));
      await journal.release(ended, { wakeInMs: 0, seenSignals: 0 });
      clock.advance(2 * LEASE_MS);
      const runs = ['new', 'held', 'back', 'ended', 'unknown'];
      assert.equal(await journal.nextDue(['finish']), undefined);
      assert.deepEqual(await journal.claimParked(wanted), []);
      assert.deepEqual(await journal.claimParked({ ...wanted, runs }), []);
    },
  },
  {
    name: 'parked runs of other agents, of tenants and of runs that are left out are left to others',
    async run({ journal }) {
      const named = startedEntry(identity('other'), { agent: 'another' });
      await park(journal, 'other', {}, { entries: [named] });
      await park(journal, 'theirs', {}, { identity: identity('theirs', { tenant: 'umbrella' }) });
      await park(journal, 'refused');
      await park(journal, 'mine');
      const left = { exceptTenants: ['umbrella'], exceptRuns: ['refused'] };
      const runs = ['other', 'theirs', 'refused'];
      assert.deepEqual(await journal.claimParked({ ...wanted, ...left, runs }), []);
      assert.deepEqual(runsOf(await journal.claimParked({ ...wanted, ...left })), ['mine']);
      assert.deepEqual(runsOf(await journal.claimParked({ ...wanted, agents: ['another', 'none'] })), ['other']);
    },
  },
  {
    name: 'parked runs that are named are claimed before their time by the clock of the store, and no others',
    async run({ journal }) {
      await park(journal, 'r1', { wakeInMs: 60_000 });
      await park(journal, 'r2', { wakeInMs: 60_000 });
      await park(journal, 'due');
      assert.deepEqual(runsOf(await journal.claimParked({ ...wanted, runs: ['r1', 'unknown'] })), ['r1']);
      assert.deepEqual(await journal.claimParked({ ...wanted, runs: ['r1'] }), []);
      await expectCode(journal.claimParked({ ...wanted, leaseMs: 0 }), 'invalid_config');
    },
  },
];
