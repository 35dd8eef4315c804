/** What claims and releases do to a run's status, and which runs a claim chooses among. */
import assert from 'node:assert/strict';
import type { Entry, EntryBody } from '#core';
import type { DueRequest, Journal, RunQuery, RunStatus } from '#journal';
import {
  ana,
  ben,
  claimFirst,
  control,
  createClaimed,
  expectCode,
  identity,
  type JournalCase,
  LEASE_MS,
  newRun,
  newTask,
  present,
  startedEntry,
  step,
} from './kit.ts';

async function statusOf(journal: Journal, run: string): Promise<RunStatus> {
  return present(await journal.get(run)).status;
}

/** Claims what is due until nothing is. */
async function claimAll(journal: Journal, request: Omit<DueRequest, 'limit'>): Promise<string[]> {
  const runs: string[] = [];
  for (
    let claim = await claimFirst(journal, request);
    claim !== undefined;
    claim = await claimFirst(journal, request)
  ) {
    runs.push(claim.run);
  }
  return runs;
}

async function createOf(journal: Journal, agent: string, tenant: string): Promise<void> {
  const id = identity(`${agent}.${tenant}`, { tenant });
  await journal.create(newRun(id.run, { identity: id, entries: [startedEntry(id, { agent })] }));
}

export const statusCases: readonly JournalCase[] = [
  {
    name: 'a run that has failed can be claimed to be reopened, whatever became of its lease, and then goes on; none that ended otherwise can',
    async run({ journal }) {
      for (const status of ['failed', 'finished', 'cancelled'] as const) {
        const { fence } = await createClaimed(journal, status);
        const error = { code: 'planner_failed', message: 'm' };
        const ending: EntryBody =
          status === 'failed' ? { kind: 'failed', error } : { kind: 'finished', reason: 'goal' };
        await journal.append({ run: status, fence, expected: 1, entries: [{ ...ending, seq: 2, at: 2 }], status });
        assert.equal(await journal.claim({ ...ben, run: status }), undefined);
        const claim = await journal.claim({ ...ben, run: status, reopens: true });
        if (status !== 'failed') assert.equal(claim, undefined);
        if (status !== 'finished')
          assert.equal(await journal.claim({ ...ben, run: status, reopens: 'undo' }), undefined);
      }
      const undoing = present(await journal.claim({ ...ana, run: 'finished', reopens: 'undo' }));
      const unwinding: Entry = {
        kind: 'unwinding',
        ending: { kind: 'finished', reason: 'cancelled' },
        until: 9,
        seq: 3,
        at: 3,
      };
      await journal.append({
        run: 'finished',
        fence: undoing.fence,
        expected: 2,
        entries: [unwinding],
        status: 'running',
      });
      assert.equal(await statusOf(journal, 'finished'), 'running');
      await journal.release(
        { run: 'finished', fence: undoing.fence },
        { seenSignals: 0, wakeInMs: null, status: 'waiting' },
      );
      const { fence } = present(await journal.claim({ ...ana, run: 'failed', reopens: true }));
      const told = { run: 'failed', message: control('missed') };
      const entries: readonly Entry[] = [{ kind: 'reopened', seq: 3, at: 3 }];
      await journal.append({ run: 'failed', fence, expected: 2, entries, status: 'running', tells: [told] });
      assert.equal(await statusOf(journal, 'failed'), 'running');
      assert.equal((await journal.inbox('failed')).length, 1);
      assert.equal(await journal.claim({ ...ben, run: 'failed', reopens: true }), undefined);
      await journal.release({ run: 'failed', fence }, { seenSignals: 1 });
      assert.equal(present(await claimFirst(journal, ben)).run, 'failed');
    },
  },
  {
    name: 'a run is pending until it is first claimed, and running from then on',
    async run({ journal, clock }) {
      for (const run of ['due', 'named']) await journal.create(newRun(run));
      await createClaimed(journal, 'at once');
      assert.equal(await statusOf(journal, 'at once'), 'running');
      assert.equal(await statusOf(journal, 'named'), 'pending');
      present(await journal.claim({ ...ana, run: 'named' }));
      assert.equal(await statusOf(journal, 'due'), 'pending');
      present(await claimFirst(journal, ana));
      assert.deepEqual([await statusOf(journal, 'due'), await statusOf(journal, 'named')], ['running', 'running']);
      await journal.signal('due', control('c1'));
      clock.advance(LEASE_MS);
      assert.deepEqual([await statusOf(journal, 'due'), await statusOf(journal, 'named')], ['running', 'running']);
    },
  },
  {
    name: 'a release parks a run as waiting or paused; a claim makes a waiting one run again, and no paused one',
    async run({ journal, clock }) {
      for (const [status, claimed] of [
        ['waiting', 'running'],
        ['paused', 'paused'],
      ] as const) {
        const claim = await createClaimed(journal, status);
        const wakeAt = clock.now() + 50;
        assert.equal(await journal.release(claim, { wakeInMs: 50, seenSignals: 0, status }), true);
        const record = present(await journal.get(status));
        assert.deepEqual([record.status, record.wakeAt], [status, wakeAt]);
        assert.equal(await claimFirst(journal, ben), undefined);
        clock.advance(50);
        const again = present(await claimFirst(journal, ben));
        assert.equal(await statusOf(journal, status), claimed);
        await journal.append(step(again, 1, { status: 'running' }));
        assert.equal(await journal.release(again, { wakeInMs: null, seenSignals: 0 }), true);
        assert.equal(await statusOf(journal, status), 'running');
        assert.equal(await journal.release(again, { wakeInMs: null, seenSignals: 0, status }), true);
        assert.equal(await statusOf(journal, status), 'running', 'a lease that was given up has set the status');
      }
    },
  },
  {
    name: 'a claim says how the run stood, and a release leaves it so: due when it was to be due, however often it was claimed',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      assert.deepEqual(claim.before, { status: 'pending', wakeAt: 0 });
      const wakeAt = clock.now() + 500;
      await journal.release(claim, { wakeInMs: 500, seenSignals: 0, status: 'waiting' });
      for (let times = 0; times < 4; times += 1) {
        clock.advance(100);
        const again = present(await journal.claim({ ...ben, run: 'r1' }));
        assert.deepEqual(again.before, { status: 'waiting', wakeAt });
        clock.advance(20);
        assert.equal(await journal.release(again, { asBefore: again.before, seenSignals: 0 }), true);
        const record = present(await journal.get('r1'));
        assert.deepEqual([record.status, record.wakeAt, record.readAt], ['waiting', wakeAt, clock.now()]);
        assert.equal(await claimFirst(journal, ben), undefined);
      }
      clock.advance(20);
      const due = present(await claimFirst(journal, ben));
      assert.deepEqual(due.before, { status: 'waiting', wakeAt });
      await journal.release(due, { asBefore: due.before, seenSignals: 0 });
      const told = present(await claimFirst(journal, ana));
      await journal.signal('r1', control('c1'));
      assert.equal(await journal.release(told, { asBefore: told.before, seenSignals: 0 }), false);
      assert.equal(await statusOf(journal, 'r1'), 'running', 'the signal is for whoever takes the run next');
      const parked = present(await claimFirst(journal, ana));
      assert.deepEqual(parked.before, { status: 'running', wakeAt: 0 });
      await journal.release(parked, { wakeInMs: null, seenSignals: 1, status: 'paused' });
      const paused = present(await journal.claim({ ...ana, run: 'r1' }));
      assert.deepEqual(paused.before, { status: 'paused', wakeAt: null });
      await journal.release(paused, { asBefore: paused.before, seenSignals: 1 });
      assert.equal(await claimFirst(journal, ben), undefined);
      assert.equal(present(await journal.get('r1')).wakeAt, null);
    },
  },
  {
    name: 'a release sets no status when a signal came before it, nor for a zombie',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.signal('r1', control('c1'));
      assert.equal(await journal.release(claim, { wakeInMs: null, seenSignals: 0, status: 'paused' }), false);
      assert.equal(await statusOf(journal, 'r1'), 'running');
      const zombie = present(await claimFirst(journal, ana));
      clock.advance(LEASE_MS);
      present(await claimFirst(journal, ben));
      assert.equal(await journal.release(zombie, { wakeInMs: null, seenSignals: 1, status: 'paused' }), true);
      assert.equal(await statusOf(journal, 'r1'), 'running');
    },
  },
  {
    name: 'a release leaves the status of a run that has ended',
    async run({ journal }) {
      for (const status of ['finished', 'failed', 'cancelled'] as const) {
        const claim = await createClaimed(journal, status);
        await journal.append(step(claim, 1, { status }));
        assert.equal(await journal.release(claim, { wakeInMs: 0, seenSignals: 0, status: 'waiting' }), true);
        assert.equal(await statusOf(journal, status), status);
      }
      assert.equal(await claimFirst(journal, ben), undefined);
    },
  },
  {
    name: 'a signal makes a waiting run due, and leaves it waiting until it is claimed',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.release(claim, { wakeInMs: null, seenSignals: 0, status: 'waiting' });
      assert.equal(await claimFirst(journal, ben), undefined);
      await journal.signal('r1', control('c1'));
      assert.equal(await statusOf(journal, 'r1'), 'waiting');
      assert.equal(present(await claimFirst(journal, ben)).run, 'r1');
      assert.equal(await statusOf(journal, 'r1'), 'running');
    },
  },
  {
    name: 'a claim chooses among the due runs of some agents, and of tenants that are not excepted',
    async run({ journal, clock }) {
      for (const agent of ['x', 'y', 'z'])
        for (const tenant of ['t1', 't2', 't3']) await createOf(journal, agent, tenant);
      assert.equal(await claimFirst(journal, { ...ana, agents: ['nobody'] }), undefined);
      assert.equal(await claimFirst(journal, { ...ana, agents: [] }), undefined);
      assert.equal(await claimFirst(journal, { ...ana, exceptTenants: ['t1', 't2', 't3'] }), undefined);
      assert.deepEqual(await claimAll(journal, { ...ana, agents: ['y'], exceptTenants: ['t2'] }), ['y.t1', 'y.t3']);
      assert.deepEqual(await claimAll(journal, { ...ana, agents: ['y'], exceptTenants: [] }), ['y.t2']);
      assert.deepEqual(await claimAll(journal, { ...ana, exceptTenants: ['t1', 't3', 't"3'] }), ['x.t2', 'z.t2']);
      assert.deepEqual(await claimAll(journal, ana), ['x.t1', 'x.t3', 'z.t1', 'z.t3']);
      clock.advance(LEASE_MS);
      assert.deepEqual(await claimAll(journal, { ...ben, agents: ['z', 'nobody'], exceptTenants: ['t1'] }), [
        'z.t2',
        'z.t3',
      ]);
      assert.equal(present(await journal.claim({ ...ben, run: 'x.t1' })).run, 'x.t1');
    },
  },
  {
    name: 'of the due runs of several agents the one with the highest priority comes first, then the oldest',
    async run({ journal, clock }) {
      for (const tenant of ['t1', 't2']) for (const agent of ['z', 'x', 'y']) await createOf(journal, agent, tenant);
      const urgent = identity('y.urgent');
      const entries = [startedEntry(urgent, { agent: 'y' })];
      await journal.create(newRun('y.urgent', { identity: urgent, entries, priority: 5 }));
      const inOrder = ['y.urgent', 'z.t1', 'y.t1', 'z.t2', 'y.t2'];
      assert.deepEqual(await claimAll(journal, { ...ana, agents: ['y', 'z'] }), inOrder);
      clock.advance(LEASE_MS);
      // Order and repetition in the list say nothing.
      assert.deepEqual(await claimAll(journal, { ...ben, agents: ['z', 'y', 'z', '"', ''] }), inOrder);
      assert.deepEqual(await claimAll(journal, { ...ben, agents: ['x'] }), ['x.t1', 'x.t2']);
    },
  },
  {
    name: 'of runs whose leases are over, too, only those of the agents and of other tenants are taken',
    async run({ journal, clock }) {
      for (const agent of ['x', 'y']) for (const tenant of ['t1', 't2']) await createOf(journal, agent, tenant);
      assert.equal((await claimAll(journal, ana)).length, 4);
      clock.advance(LEASE_MS);
      assert.deepEqual(await claimAll(journal, { ...ben, agents: ['y'], exceptTenants: ['t1'] }), ['y.t2']);
      assert.deepEqual(await claimAll(journal, { ...ben, agents: ['x', 'nobody'] }), ['x.t1', 'x.t2']);
      assert.deepEqual(await claimAll(journal, ben), ['y.t1']);
    },
  },
];

async function listed(journal: Journal, query: RunQuery): Promise<string[]> {
  return (await journal.list(query)).map((record) => record.identity.run);
}

export const listingCases: readonly JournalCase[] = [
  {
    name: 'runs are listed newest first, by tenant, user, session, status and time',
    async run({ journal, clock }) {
      const start = clock.now();
      await journal.create(newRun('a', { identity: identity('a') }));
      clock.advance(10);
      await journal.create(newRun('b', { identity: identity('b', { user: 'ben' }) }));
      clock.advance(10);
      await journal.create(newRun('c', { identity: identity('c', { session: 's2' }) }));
      await journal.create(newRun('d', { identity: identity('d', { tenant: 'other' }) }));
      const claim = present(await journal.claim({ ...ana, run: 'b' }));
      await journal.append(step(claim, 1, { status: 'finished' }));
      assert.deepEqual(await listed(journal, {}), ['d', 'c', 'b', 'a']);
      assert.deepEqual(await listed(journal, { tenant: 'acme' }), ['c', 'b', 'a']);
      assert.deepEqual(await listed(journal, { tenant: 'acme', user: 'ana' }), ['c', 'a']);
      assert.deepEqual(await listed(journal, { tenant: 'acme', user: 'ana', session: 's1' }), ['a']);
      assert.deepEqual(await listed(journal, { session: 's1' }), ['d', 'b', 'a']);
      assert.deepEqual(await listed(journal, { status: ['finished'] }), ['b']);
      assert.deepEqual(await listed(journal, { status: ['pending', 'finished'], tenant: 'acme' }), ['c', 'b', 'a']);
      assert.deepEqual(await listed(journal, { status: ['running', 'waiting', 'paused'] }), []);
      assert.deepEqual(await listed(journal, { status: [] }), []);
      assert.deepEqual(await listed(journal, { since: start + 10 }), ['d', 'c', 'b']);
      assert.deepEqual(await listed(journal, { tenant: 'nobody' }), []);
      assert.deepEqual((await journal.list({ limit: 1 }))[0], await journal.get('d'));
    },
  },
  {
    name: 'the tasks of a run are listed newest first, without those below them',
    async run({ journal }) {
      await journal.create(newRun('top'));
      await journal.create(newTask('a', 'top'));
      await journal.create(newTask('a.1', 'a', 'top'));
      await journal.create(newRun('other'));
      await journal.create(newTask('b', 'top'));
      await journal.create(newTask('c', 'other'));
      assert.deepEqual(await listed(journal, { parent: 'top' }), ['b', 'a']);
      assert.deepEqual(await listed(journal, { parent: 'a' }), ['a.1']);
      assert.deepEqual(await listed(journal, { parent: 'b' }), []);
      assert.deepEqual(await listed(journal, { parent: 'top', after: 'b', limit: 1 }), ['a']);
      const claim = present(await journal.claim({ ...ana, run: 'a' }));
      await journal.append(step(claim, 1, { status: 'failed' }));
      assert.deepEqual(await listed(journal, { parent: 'top', status: ['failed'] }), ['a']);
      const { agent, parent, root } = present(await journal.get('a.1'));
      assert.deepEqual([agent, parent, root], ['worker', 'a', 'top']);
      const top = present(await journal.get('top'));
      assert.equal(top.agent, 'finish');
      assert.equal('parent' in top || 'root' in top, false);
    },
  },
  {
    name: 'a list is read in pages',
    async run({ journal }) {
      const runs = Array.from({ length: 60 }, (_, index) => `r${index}`);
      for (const run of runs) await journal.create(newRun(run));
      const newestFirst = runs.toReversed();
      assert.deepEqual(await listed(journal, {}), newestFirst.slice(0, 50));
      assert.deepEqual(await listed(journal, { after: 'r10' }), newestFirst.slice(50));
      assert.deepEqual(await listed(journal, { after: 'r30', limit: 3, tenant: 'acme' }), ['r29', 'r28', 'r27']);
      assert.deepEqual(await listed(journal, { after: 'r0' }), []);
      assert.equal((await listed(journal, { limit: 200 })).length, 60);
      for (const limit of [0, 201, 1.5, Number.NaN]) await expectCode(journal.list({ limit }), 'invalid_config');
      await expectCode(journal.list({ after: 'nobody' }), 'run_not_found');
    },
  },
  {
    name: 'ID-05 two tenants with the same session and user do not meet in a list',
    async run({ journal }) {
      await createClaimed(journal, 'mine');
      await journal.create(newRun('theirs', { identity: identity('theirs', { tenant: 'other' }) }));
      assert.deepEqual(await listed(journal, { tenant: 'acme', user: 'ana', session: 's1' }), ['mine']);
      assert.deepEqual(await listed(journal, { tenant: 'other', user: 'ana', session: 's1' }), ['theirs']);
    },
  },
];
