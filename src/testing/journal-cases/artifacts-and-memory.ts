import assert from 'node:assert/strict';
import {
  type Append,
  artifactDigest,
  type Claim,
  type SessionMemory,
  type SessionSummary,
  type SessionTurn,
} from '#journal';
import {
  ana,
  ben,
  createClaimed,
  expectCode,
  identity,
  type JournalBench,
  type JournalCase,
  LEASE_MS,
  newRun,
  present,
  step,
} from './kit.ts';

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
];

const NOTHING: SessionMemory = { count: 0, turns: [] };

function turn(run: string, assistant: string | null = `answer of ${run}`): SessionTurn {
  return { run, user: `query of ${run}`, assistant, at: 7 };
}

function summary(updatedAt: number, more: Partial<SessionSummary> = {}): SessionSummary {
  return { text: `text ${updatedAt}`, covers: 2, health: 'healthy', failures: 0, updatedAt, ...more };
}

/** What ends the run that was claimed. */
function ending(claim: Claim, more: Partial<Append> = {}): Append {
  return step(claim, claim.head, { status: 'finished', turn: turn(claim.run), ...more });
}

async function endedRuns(journal: JournalBench['journal'], count: number): Promise<SessionTurn[]> {
  const runs = Array.from({ length: count }, (_, index) => `run${index}`);
  for (const run of runs) await journal.append(ending(await createClaimed(journal, run)));
  return runs.map((run) => turn(run));
}

export const sessionMemoryCases: readonly JournalCase[] = [
  {
    name: 'a turn is written with the ending of its run, once',
    async run({ journal }) {
      const scope = identity('r1');
      assert.deepEqual(await journal.memory.read(scope, 10), NOTHING);
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1));
      assert.deepEqual(await journal.memory.read(scope, 10), NOTHING);
      const odd: SessionTurn = { run: 'r1', user: 'Ünï €😀 "\\\n', assistant: null, at: 7 };
      await journal.append(step(claim, 2, { status: 'failed', turn: odd }));
      await journal.append(step(claim, 3, { turn: turn('r1') }));
      assert.deepEqual(await journal.memory.read(scope, 10), { count: 1, turns: [odd] });
    },
  },
  {
    name: 'an append that is refused writes no turn',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await expectCode(journal.append(ending(claim, { expected: 4, entries: [] })), 'journal_conflict');
      await expectCode(journal.append(ending(claim, { turn: turn('r2') })), 'invalid_config');
      await expectCode(journal.append(ending(claim, { turn: { ...turn('r1'), at: 0.5 } })), 'invalid_config');
      clock.advance(LEASE_MS);
      const heir = present(await journal.claim({ ...ben, run: 'r1' }));
      await expectCode(journal.append(ending(claim)), 'lease_lost');
      assert.deepEqual(await journal.memory.read(identity('r1'), 10), NOTHING);
      assert.equal((await journal.get('r1'))?.head, 1);
      await journal.append(ending(heir));
      assert.equal((await journal.memory.read(identity('r1'), 10)).count, 1);
    },
  },
  {
    name: 'the newest turns are read, oldest first, and from an index on',
    async run({ journal }) {
      const turns = await endedRuns(journal, 5);
      const read = async (limit: number, from?: number): Promise<readonly SessionTurn[]> => {
        const memory = await journal.memory.read(identity('any'), limit, from);
        assert.equal(memory.count, 5);
        return memory.turns;
      };
      assert.deepEqual(await read(10), turns);
      assert.deepEqual(await read(5), turns);
      assert.deepEqual(await read(2), turns.slice(3));
      assert.deepEqual(await read(0), []);
      assert.deepEqual(await read(10, 3), turns.slice(3));
      assert.deepEqual(await read(1, 3), turns.slice(4));
      assert.deepEqual(await read(10, 5), []);
      assert.deepEqual(await read(10, 50), []);
      for (const [limit, from] of [
        [-1, 0],
        [0.5, 0],
        [1, -1],
      ] as const) {
        await expectCode(journal.memory.read(identity('any'), limit, from), 'invalid_config');
      }
    },
  },
  {
    name: 'turns that are written at the same time are all kept',
    async run({ journal }) {
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, index) => createClaimed(journal, `run${index}`, ana)),
      );
      await Promise.all(claims.map((claim) => journal.append(ending(claim))));
      const { count, turns } = await journal.memory.read(identity('any'), 100);
      assert.equal(count, 20);
      assert.deepEqual(new Set(turns.map(({ run }) => run)), new Set(claims.map(({ run }) => run)));
    },
  },
  {
    name: 'MS-08 a session remembers nothing of another tenant, user or session',
    async run({ journal }) {
      const others = (['tenant', 'user', 'session'] as const).map((part) => identity(`of_${part}`, { [part]: 'x' }));
      const split = identity('split', { tenant: 'acme/ana', user: 's1' });
      for (const owner of [identity('mine'), ...others, split]) {
        const claim = await journal.create(newRun(owner.run, { identity: owner, claim: ana }));
        await journal.append(ending(present(claim)));
        assert.equal(await journal.memory.summarise(owner, undefined, summary(1, { text: owner.run })), true);
      }
      for (const owner of [identity('mine'), ...others, split]) {
        const { count, turns, summary: read } = await journal.memory.read(owner, 10);
        assert.deepEqual([count, turns, read?.text], [1, [turn(owner.run)], owner.run]);
      }
      assert.deepEqual(await journal.memory.read(identity('mine', { session: 's2' }), 10), NOTHING);
      const nobody = identity('mine', { user: ' ' });
      await expectCode(journal.memory.read(nobody, 1), 'identity_required');
      await expectCode(journal.memory.summarise(nobody, undefined, summary(1)), 'identity_required');
    },
  },
  {
    name: 'a summary is replaced only by who has seen it',
    async run({ journal }) {
      const scope = identity('r1');
      const stored = async (): Promise<SessionSummary | undefined> => (await journal.memory.read(scope, 0)).summary;
      assert.equal(await journal.memory.summarise(scope, 5, summary(6)), false);
      assert.equal(await stored(), undefined);
      assert.equal(await journal.memory.summarise(scope, undefined, summary(10)), true);
      assert.equal(await journal.memory.summarise(scope, undefined, summary(11)), false);
      assert.deepEqual(await stored(), summary(10));
      const both = await Promise.all([
        journal.memory.summarise(scope, 10, summary(20, { health: 'retrying', failures: 1 })),
        journal.memory.summarise(scope, 10, summary(21)),
      ]);
      assert.deepEqual(both.toSorted(), [false, true]);
      assert.deepEqual(await stored(), both[0] ? summary(20, { health: 'retrying', failures: 1 }) : summary(21));
      await expectCode(journal.memory.summarise(scope, 20, summary(30, { covers: -1 })), 'invalid_config');
      await expectCode(journal.memory.summarise(scope, 20, summary(30.5)), 'invalid_config');
    },
  },
  {
    name: 'turns that were read stay as they are',
    async run({ journal }) {
      const [first] = await endedRuns(journal, 1);
      const { turns } = await journal.memory.read(identity('any'), 10);
      assert.ok(Object.isFrozen(turns[0]));
      await journal.append(ending(await createClaimed(journal, 'later')));
      assert.deepEqual(turns, [first]);
    },
  },
];
