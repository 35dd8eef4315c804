import assert from 'node:assert/strict';
import type { Entry } from '#core';
import { artifactDigest } from '#journal';
import { createClaimed, expectCode, identity, type JournalCase, newRun, newTask, present, step } from './kit.ts';

export const artifactCases: readonly JournalCase[] = [
  {
    name: 'an artifact is addressed by its content and stored as it was',
    async run({ journal }) {
      const scope = identity('r1');
      const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 251);
      const original = new Uint8Array(bytes);
      const putting = journal.artifacts.put(scope, bytes, { mime: 'image/png' });
      bytes.fill(0);
      const ref = await putting;
      assert.match(ref.artifactRef, /^art_[0-9a-f]{32}$/);
      assert.deepEqual([ref.mime, ref.sizeBytes], ['image/png', 70_000]);
      const [again, twice] = await Promise.all([
        journal.artifacts.put(scope, original, { mime: 'text/plain' }),
        journal.artifacts.put(scope, original, { mime: 'text/plain' }),
      ]);
      assert.deepEqual([again, twice], [ref, ref]);
      const found = present(await journal.artifacts.get(scope, ref.artifactRef));
      assert.deepEqual([new Uint8Array(found.bytes), found.mime], [original, 'image/png']);
      found.bytes.fill(1);
      assert.deepEqual(new Uint8Array(present(await journal.artifacts.get(scope, ref.artifactRef)).bytes), original);
      const empty = await journal.artifacts.put(scope, new Uint8Array(), { mime: 'text/plain' });
      assert.equal(present(await journal.artifacts.get(scope, empty.artifactRef)).bytes.byteLength, 0);
    },
  },
  {
    name: 'ID-02 an artifact of another tenant, user or session is not found, as an unknown one',
    async run({ journal }) {
      const { artifactRef } = await journal.artifacts.put(identity('r1'), Buffer.from('secret'), {
        mime: 'text/plain',
      });
      assert.notEqual(await journal.artifacts.get(identity('r2'), artifactRef), undefined);
      for (const part of ['tenant', 'user', 'session'] as const) {
        assert.equal(await journal.artifacts.get(identity('r1', { [part]: 'x' }), artifactRef), undefined);
      }
      assert.equal(await journal.artifacts.get(identity('r1'), `art_${'0'.repeat(32)}`), undefined);
      const incomplete = identity('r1', { user: '' });
      await expectCode(journal.artifacts.get(incomplete, artifactRef), 'identity_required');
      await expectCode(
        journal.artifacts.put(incomplete, Buffer.from('x'), { mime: 'text/plain' }),
        'identity_required',
      );
    },
  },
  {
    name: 'ID-04 scopes of the same letters, split otherwise, do not meet',
    async run({ journal }) {
      const one = { tenant: 'a', user: 'bc', session: 's' };
      const { artifactRef } = await journal.artifacts.put(one, Buffer.from('secret'), { mime: 'text/plain' });
      for (const scope of [
        { tenant: 'ab', user: 'c', session: 's' },
        { tenant: 'a', user: 'b', session: 'cs' },
        { tenant: 'a/bc', user: 's', session: 's' },
      ]) {
        assert.equal(await journal.artifacts.get(scope, artifactRef), undefined);
      }
      const slashes = { tenant: 'a/b', user: 'c', session: 'd' };
      const put = await journal.artifacts.put(slashes, Buffer.from('other'), { mime: 'text/plain' });
      const split = { tenant: 'a', user: 'b/c', session: 'd' };
      assert.equal(await journal.artifacts.get(split, put.artifactRef), undefined);
    },
  },
  {
    name: 'the artifacts of a session are listed newest first, with what is known of them',
    async run({ journal, clock }) {
      const scope = identity('r1');
      assert.deepEqual(await journal.artifacts.list(scope, 5), { rows: [], total: 0 });
      const before = clock.now();
      const put = async (text: string, about: { fileName?: string; source?: string } = {}): Promise<string> =>
        (await journal.artifacts.put(scope, Buffer.from(text), { mime: 'text/plain', ...about })).artifactRef;
      const oldest = await put('oldest', { fileName: 'ä "b".txt', source: 'tool: read' });
      clock.advance(10);
      const sameTime = [await put('x'), await put('y'), await put('z')].sort();
      clock.advance(10);
      const newest = await put('newest!', { source: 'user' });
      // Known already: it keeps its time, name and source.
      assert.equal(await put('oldest', { fileName: 'other.txt', source: 'user' }), oldest);

      const { rows, total } = await journal.artifacts.list(identity('r2'), 10);
      assert.equal(total, 5);
      assert.deepEqual(
        rows.map((row) => row.artifactRef),
        [newest, ...sameTime, oldest],
      );
      const plain = { mime: 'text/plain', sizeBytes: 1, source: 'unknown', createdAt: before + 10 };
      assert.deepEqual(rows[0], {
        artifactRef: newest,
        mime: 'text/plain',
        sizeBytes: 7,
        source: 'user',
        createdAt: before + 20,
      });
      assert.deepEqual(rows[1], { artifactRef: sameTime[0], ...plain });
      assert.deepEqual(rows[4], {
        artifactRef: artifactDigest(Buffer.from('oldest')).artifactRef,
        mime: 'text/plain',
        sizeBytes: 6,
        fileName: 'ä "b".txt',
        source: 'tool: read',
        createdAt: before,
      });
      assert.deepEqual(await journal.artifacts.list(scope, 2), { rows: rows.slice(0, 2), total: 5 });
      assert.deepEqual(await journal.artifacts.list(scope, 0), { rows: [], total: 5 });
      await expectCode(journal.artifacts.list(scope, -1), 'invalid_config');
    },
  },
  {
    name: 'the artifacts of a session are counted up to 1,000, since each run is told of them as it starts',
    async run({ journal }) {
      const scope = identity('r1');
      const texts = Array.from({ length: 1_003 }, (_, number) => Buffer.from(`artifact ${number}`));
      await Promise.all(texts.map((bytes) => journal.artifacts.put(scope, bytes, { mime: 'text/plain' })));
      assert.equal((await journal.artifacts.list(scope, 20)).total, 1_000);
      const { rows, total } = await journal.artifacts.list(scope, 1_002);
      assert.deepEqual([rows.length, total], [1_002, 1_002]);
    },
  },
  {
    name: 'ID-02 no artifact of another tenant, user or session is listed or counted',
    async run({ journal }) {
      await journal.artifacts.put(identity('r1'), Buffer.from('secret'), { mime: 'text/plain' });
      for (const part of ['tenant', 'user', 'session'] as const) {
        assert.deepEqual(await journal.artifacts.list(identity('r1', { [part]: 'x' }), 10), { rows: [], total: 0 });
      }
      const theirs = identity('r1', { tenant: 'other' });
      const about = { mime: 'text/csv', source: 'tool: theirs' };
      const { artifactRef } = await journal.artifacts.put(theirs, Buffer.from('secret'), about);
      const { rows } = await journal.artifacts.list(theirs, 10);
      assert.deepEqual(
        rows.map((row) => [row.artifactRef, row.mime, row.source]),
        [[artifactRef, 'text/csv', 'tool: theirs']],
      );
      assert.equal((await journal.artifacts.list(identity('r1'), 10)).total, 1);
      await expectCode(journal.artifacts.list(identity('r1', { session: '' }), 10), 'identity_required');
    },
  },
  {
    name: 'what is stored in the sessions of a user is erased, and nothing of anybody else',
    async run({ journal }) {
      const theirs = [identity('r1'), identity('r2', { session: 's/2' })];
      const others = [
        identity('r3', { user: 'an' }),
        identity('r4', { user: 'ana0' }),
        identity('r5', { tenant: 'acm' }),
        identity('r6', { tenant: 'acme/ana', user: 's1' }),
        identity('r7', { user: 'ana/s1' }),
      ];
      const [mine] = await Promise.all(
        [...theirs, ...others].map((scope) => journal.artifacts.put(scope, Buffer.from('x'), { mime: 'text/plain' })),
      );
      const { tenant, user } = identity('any');
      assert.equal(await journal.artifacts.erase({ tenant, user }), 2);
      for (const scope of theirs) {
        assert.deepEqual(await journal.artifacts.list(scope, 10), { rows: [], total: 0 });
        assert.equal(await journal.artifacts.get(scope, mine?.artifactRef ?? ''), undefined);
      }
      for (const scope of others) {
        assert.equal((await journal.artifacts.list(scope, 10)).total, 1, scope.user);
      }
      assert.equal(await journal.artifacts.erase({ tenant, user }), 0);
      await expectCode(journal.artifacts.erase({ tenant, user: ' ' }), 'identity_required');
    },
  },
  {
    name: 'the content of a run is erased from its first entry on, and from its inbox, when it is as it was examined',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1, { status: 'finished' }));
      const { signals } = await journal.examine('r1');
      const entries = (await journal.read('r1')).map((entry) =>
        entry.kind === 'started' ? { ...entry, query: '', erased: 5 } : entry,
      );
      const request = { run: 'r1', head: 2, signals, keep: 0, entries, agent: 'finish', drops: [], waits: [] } as const;
      await expectCode(journal.repair({ ...request, status: 'finished' }), 'journal_conflict');
      await expectCode(journal.repair({ ...request, status: 'finished', head: 1, erases: true }), 'journal_conflict');
      await journal.repair({ ...request, status: 'finished', erases: true });
      assert.deepEqual(await journal.read('r1'), entries);
      const record = present(await journal.get('r1'));
      assert.deepEqual([record.query, record.erased, record.head, record.status], ['', 5, 2, 'finished']);
      assert.deepEqual(
        (await journal.list({})).map(({ query }) => query),
        [''],
      );
    },
  },
];

export const sessionMemoryCases: readonly JournalCase[] = [
  {
    name: 'the runs of a session are listed newest first, without its tasks, and say what is not a turn of it',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'first');
      await journal.append(step(claim, 1, { starts: [newTask('first.0', 'first')] }));
      const apart: Entry[] = newRun('apart').entries.map((entry) =>
        entry.kind === 'started' ? { ...entry, conversation: false } : entry,
      );
      await journal.create(newRun('apart', { entries: apart }));
      await createClaimed(journal, 'last');
      const { tenant, user, session } = identity('any');
      const listed = await journal.list({ tenant, user, session, parent: null });
      assert.deepEqual(
        listed.map((record) => [record.identity.run, record.conversation]),
        [
          ['last', undefined],
          ['apart', false],
          ['first', undefined],
        ],
      );
      const unended = await journal.list({ tenant, user, session, parent: null, status: ['running'], limit: 1 });
      assert.deepEqual(
        unended.map((record) => record.identity.run),
        ['last'],
      );
    },
  },
];
