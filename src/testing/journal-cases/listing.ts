import assert from 'node:assert/strict';
import type { Journal, RunQuery } from '#journal';
import { ana, createClaimed, expectCode, identity, type JournalCase, newRun, newTask, present, step } from './kit.ts';

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
