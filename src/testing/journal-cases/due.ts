/** Runs that are due, which are claimed many at once. */
import assert from 'node:assert/strict';
import type { DueRequest, NewRun } from '#journal';
import {
  ana,
  assertShared,
  ben,
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

const wanted: DueRequest = { ...ben, agents: ['finish'], limit: 10 };

function runOf(run: string, tenant: string, priority = 0, agent = 'finish'): NewRun {
  const id = identity(run, { tenant });
  return newRun(run, { identity: id, priority, entries: [startedEntry(id, { agent })] });
}

export const dueCases: readonly JournalCase[] = [
  {
    name: 'due runs are claimed many at once, the one with the highest priority first, then the oldest, with what a driver needs',
    async run({ journal, clock }) {
      await createClaimed(journal, 'left');
      for (const run of [runOf('first', 'acme'), runOf('urgent', 'umbrella', 5), runOf('last', 'acme')])
        await journal.create(run);
      assert.deepEqual(runsOf(await journal.claimDue({ ...wanted, limit: 1 })), ['urgent']);
      clock.advance(LEASE_MS);
      const claimed = await journal.claimDue({ ...wanted, isDead: (owner) => owner === 'ben' });
      assert.deepEqual(runsOf(claimed), ['urgent', 'left', 'first', 'last']);
      assert.deepEqual(
        claimed.map(({ tenant }) => tenant),
        ['umbrella', 'acme', 'acme', 'acme'],
      );
      assert.deepEqual(
        claimed.map(({ claim }) => claim.workLeftMsAgo),
        [undefined, 0, undefined, undefined],
      );
      for (const { claim, entries } of claimed) {
        assert.equal(claim.head, 1);
        if (entries !== undefined) assert.deepEqual(entries, await journal.read(claim.run));
        await journal.append(step(claim, 1));
        assert.deepEqual(await sequence(journal, claim.run), [1, 2]);
      }
      assert.deepEqual(await journal.claimDue(wanted), []);
    },
  },
  {
    name: 'a backlog of runs whose time has come is claimed whole, in parts, each run once and one of a higher priority first',
    async run({ journal, clock }) {
      const runs = Array.from({ length: 300 }, (_, index) => `r${index}`);
      for (const [index, run] of runs.entries()) {
        const claim = present(await journal.create({ ...runOf(run, 'acme', index === 200 ? 5 : 0), claim: ana }));
        await journal.release(claim, { wakeInMs: 1 + index, seenSignals: 0, status: 'waiting' });
      }
      clock.advance(runs.length);
      const parts: (readonly string[])[] = [];
      for (let part = runsOf(await journal.claimDue(wanted)); part.length > 0; ) {
        parts.push(part);
        part = runsOf(await journal.claimDue(wanted));
      }
      assert.equal(parts[0]?.[0], 'r200');
      assert.deepEqual(parts.flat().sort(), runs.toSorted());
    },
  },
  {
    name: 'an agent that is asked for twice is asked for once',
    async run({ journal, clock }) {
      const twice = { ...ben, agents: ['finish', 'finish'], limit: 10 };
      for (const run of ['r1', 'r2']) await journal.create(newRun(run));
      const claimed = await journal.claimDue(twice);
      assert.deepEqual(runsOf(claimed), ['r1', 'r2']);
      for (const { claim } of claimed) await journal.release(claim, { wakeInMs: 1, seenSignals: 0, status: 'waiting' });
      clock.advance(1);
      assert.deepEqual(runsOf(await journal.claimParked(twice)).sort(), ['r1', 'r2']);
    },
  },
  {
    name: 'nothing is due for a process that asks for no agent',
    async run({ journal, clock }) {
      await journal.create(newRun('r1'));
      const parked = await createClaimed(journal, 'r2');
      await journal.release(parked, { wakeInMs: 1, seenSignals: 0, status: 'waiting' });
      clock.advance(1);
      const none = { ...ben, agents: [], limit: 10 };
      assert.deepEqual(await journal.claimDue(none), []);
      assert.deepEqual(await journal.claimDue({ ...none, exceptTenants: ['acme'] }), []);
      assert.deepEqual(await journal.claimParked(none), []);
      assert.equal(await journal.nextDue([]), undefined);
    },
  },
  {
    name: 'no more due runs are claimed than were asked for, and each by one owner',
    async run({ journal }) {
      const runs = ['r1', 'r2', 'r3', 'r4', 'r5'] as const;
      for (const run of runs) await journal.create(newRun(run));
      await assertShared(runs, (lease, limit) => journal.claimDue({ ...wanted, ...lease, limit }));
      await expectCode(journal.claimDue({ ...wanted, leaseMs: 0 }), 'invalid_config');
    },
  },
  {
    name: 'of the tenants that are not left out, as many due runs are claimed as they have, of whichever agent was asked for',
    async run({ journal }) {
      const tenants = ['busy', 'busy', 'busy', 'calm', 'calm', 'quiet'];
      for (const [index, tenant] of tenants.entries()) {
        await journal.create(runOf(`r${index}`, tenant, 0, index % 2 === 0 ? 'finish' : 'other'));
      }
      const others = { ...wanted, agents: ['finish', 'other'], exceptTenants: ['busy'] };
      const claimed = [
        ...(await journal.claimDue({ ...others, limit: 2 })),
        ...(await journal.claimDue({ ...others, limit: 2 })),
      ];
      assert.deepEqual(runsOf(claimed).sort(), ['r3', 'r4', 'r5']);
      assert.deepEqual(await journal.claimDue(others), []);
      assert.deepEqual(runsOf(await journal.claimDue({ ...wanted, exceptRuns: ['r0'] })), ['r2']);
      assert.deepEqual(runsOf(await journal.claimDue({ ...ben, limit: 10 })), ['r0', 'r1']);
    },
  },
];
