import assert from 'node:assert/strict';
import type { Journal, RunQuery } from '../../journal/port.ts';
import { ana, createClaimed, expectCode, identity, type JournalCase, newRun, present, step } from './kit.ts';

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
      assert.deepEqual(await listed(journal, { status: ['running', 'finished'], tenant: 'acme' }), ['c', 'b', 'a']);
      assert.deepEqual(await listed(journal, { status: [] }), []);
      assert.deepEqual(await listed(journal, { since: start + 10 }), ['d', 'c', 'b']);
      assert.deepEqual(await listed(journal, { tenant: 'nobody' }), []);
      assert.deepEqual((await journal.list({ limit: 1 }))[0], await journal.get('d'));
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
  {
    name: 'an artifact is addressed by its content and stored as it was',
    async run({ journal }) {
      const scope = identity('r1');
      const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 251);
      const original = new Uint8Array(bytes);
      const putting = journal.artifacts.put(scope, bytes, 'image/png');
      bytes.fill(0);
      const ref = await putting;
      assert.match(ref.artifactRef, /^art_[0-9a-f]{32}$/);
      assert.deepEqual([ref.mime, ref.sizeBytes], ['image/png', 70_000]);
      const [again, twice] = await Promise.all([
        journal.artifacts.put(scope, original, 'text/plain'),
        journal.artifacts.put(scope, original, 'text/plain'),
      ]);
      assert.deepEqual([again, twice], [ref, ref]);
      const found = present(await journal.artifacts.get(scope, ref.artifactRef));
      assert.deepEqual([new Uint8Array(found.bytes), found.mime], [original, 'image/png']);
      found.bytes.fill(1);
      assert.deepEqual(new Uint8Array(present(await journal.artifacts.get(scope, ref.artifactRef)).bytes), original);
      const empty = await journal.artifacts.put(scope, new Uint8Array(), 'text/plain');
      assert.equal(present(await journal.artifacts.get(scope, empty.artifactRef)).bytes.byteLength, 0);
    },
  },
  {
    name: 'ID-02 an artifact of another tenant, user or session is not found, as an unknown one',
    async run({ journal }) {
      const { artifactRef } = await journal.artifacts.put(identity('r1'), Buffer.from('secret'), 'text/plain');
      assert.notEqual(await journal.artifacts.get(identity('r2'), artifactRef), undefined);
      for (const part of ['tenant', 'user', 'session'] as const) {
        assert.equal(await journal.artifacts.get(identity('r1', { [part]: 'x' }), artifactRef), undefined);
      }
      assert.equal(await journal.artifacts.get(identity('r1'), `art_${'0'.repeat(32)}`), undefined);
      const incomplete = identity('r1', { user: '' });
      await expectCode(journal.artifacts.get(incomplete, artifactRef), 'identity_required');
      await expectCode(journal.artifacts.put(incomplete, Buffer.from('x'), 'text/plain'), 'identity_required');
    },
  },
  {
    name: 'ID-04 scopes of the same letters, split otherwise, do not meet',
    async run({ journal }) {
      const one = { tenant: 'a', user: 'bc', session: 's' };
      const { artifactRef } = await journal.artifacts.put(one, Buffer.from('secret'), 'text/plain');
      for (const scope of [
        { tenant: 'ab', user: 'c', session: 's' },
        { tenant: 'a', user: 'b', session: 'cs' },
        { tenant: 'a/bc', user: 's', session: 's' },
      ]) {
        assert.equal(await journal.artifacts.get(scope, artifactRef), undefined);
      }
      const slashes = { tenant: 'a/b', user: 'c', session: 'd' };
      const put = await journal.artifacts.put(slashes, Buffer.from('other'), 'text/plain');
      const split = { tenant: 'a', user: 'b/c', session: 'd' };
      assert.equal(await journal.artifacts.get(split, put.artifactRef), undefined);
    },
  },
];
