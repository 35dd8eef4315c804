import assert from 'node:assert/strict';
import type { Entry } from '#core';
import type { Claim, RepairRequest } from '#journal';
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
  present,
  sequence,
  startedEntry,
  step,
  stepEntry,
} from './kit.ts';

export const entryCases: readonly JournalCase[] = [
  {
    name: 'J1 entries are read back as they were appended, frozen and without gaps',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      const before = { status: 'pending', wakeAt: 0 };
      assert.deepEqual(claim, { run: 'r1', fence: 1, head: 1, signals: 0, before });
      await journal.append({ ...step(claim, 1), entries: [stepEntry(2), stepEntry(3, 'ä€😀"\\\n')] });
      await journal.append(step(claim, 3));
      const entries: Entry[] = await journal.read('r1');
      assert.deepEqual(entries, [startedEntry(identity('r1')), stepEntry(2), stepEntry(3, 'ä€😀"\\\n'), stepEntry(4)]);
      for (const entry of entries) assert.ok(Object.isFrozen(entry));
      assert.equal((await journal.get('r1'))?.head, 4);
    },
  },
  {
    name: 'a part of the entries can be read',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.append({ ...step(claim, 1), entries: [2, 3, 4, 5].map((seq) => stepEntry(seq)) });
      const part = async (from?: number, limit?: number): Promise<number[]> =>
        (await journal.read('r1', from, limit)).map((entry) => entry.seq);
      assert.deepEqual(await part(3), [3, 4, 5]);
      assert.deepEqual(await part(2, 2), [2, 3]);
      assert.deepEqual(await part(undefined, 1), [1]);
      assert.deepEqual(await part(5, 10), [5]);
      assert.deepEqual(await part(6), []);
      assert.deepEqual(await part(60, 2), []);
      assert.deepEqual(await part(1, 0), []);
    },
  },
  {
    name: 'unknown runs are not found',
    async run({ journal }) {
      await expectCode(journal.read('nobody'), 'run_not_found');
      await expectCode(journal.inbox('nobody'), 'run_not_found');
      await expectCode(journal.append(step({ run: 'nobody', fence: 1 }, 1)), 'run_not_found');
      assert.equal(await journal.get('nobody'), undefined);
      assert.equal(await journal.claim({ ...ana, run: 'nobody' }), undefined);
    },
  },
  {
    name: 'a run is created once',
    async run({ journal }) {
      const [first, second] = await Promise.all([
        journal.create(newRun('r1', { claim: ana, priority: 3 })),
        journal.create(newRun('r1', { claim: ana, priority: 5 })),
      ]);
      present(first);
      assert.equal(second, undefined);
      await journal.append(step(present(first), 1));
      const other = identity('r1', { tenant: 'other' });
      assert.equal(await journal.create(newRun('r1', { identity: other, claim: ana })), undefined);
      const record = present(await journal.get('r1'));
      assert.deepEqual([record.identity, record.priority, record.head], [identity('r1'), 3, 2]);
    },
  },
  {
    name: 'a run that does not begin with its first entry, or belongs to nobody, is refused',
    async run({ journal }) {
      await expectCode(journal.create(newRun('r1', { entries: [] })), 'invalid_config');
      await expectCode(journal.create(newRun('r1', { entries: [stepEntry(1)] })), 'invalid_config');
      const gap = [startedEntry(identity('r1')), stepEntry(3)];
      await expectCode(journal.create(newRun('r1', { entries: gap })), 'invalid_config');
      await expectCode(journal.create(newRun('r1', { priority: 0.5 })), 'invalid_config');
      const nobody = identity('r1', { user: ' ' });
      await expectCode(journal.create(newRun('r1', { identity: nobody })), 'identity_required');
      assert.equal(await journal.get('r1'), undefined);
    },
  },
  {
    name: 'J2 an append that does not follow the last entry is refused whole',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1));
      await expectCode(journal.append(step(claim, 1)), 'journal_conflict');
      await expectCode(journal.append(step(claim, 3)), 'journal_conflict');
      const gap = { ...step(claim, 2), entries: [stepEntry(3), stepEntry(5)] };
      await expectCode(journal.append(gap), 'journal_conflict');
      await expectCode(journal.append({ ...step(claim, 2), entries: [stepEntry(2)] }), 'journal_conflict');
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2]);
      await journal.append(step(claim, 2));
    },
  },
  {
    name: 'J2 of two appends at the same place one lands, and other runs of the same moment are not disturbed',
    async run({ journal }) {
      const [one, two] = [await createClaimed(journal, 'r1'), await createClaimed(journal, 'r2')];
      const results = await Promise.allSettled([
        journal.append(step(one, 1)),
        journal.append({ ...step(one, 1), entries: [stepEntry(2, 'late')] }),
        journal.append(step(two, 1)),
      ]);
      assert.deepEqual(
        results.map((result) => result.status),
        ['fulfilled', 'rejected', 'fulfilled'],
      );
      assert.deepEqual((await journal.read('r1'))[1], stepEntry(2));
      assert.deepEqual(await sequence(journal, 'r2'), [1, 2]);
    },
  },
  {
    name: 'J2 of appends of many runs in one moment those are refused that have lost their lease, their place or have not seen what came',
    async run({ journal, clock }) {
      const claims = new Map<string, Claim>();
      for (const run of ['lost', 'behind', 'told', 'good', 'fine']) claims.set(run, await createClaimed(journal, run));
      const of = (run: string): Claim => present(claims.get(run));
      clock.advance(LEASE_MS);
      present(await journal.claim({ ...ben, run: 'lost' }));
      await journal.append(step(of('behind'), 1));
      await journal.signal('told', control('c1'));
      const appends = [
        step(of('lost'), 1),
        step(of('good'), 1),
        step(of('behind'), 1),
        step(of('told'), 1, { seenSignals: 0 }),
        step(of('fine'), 1, { seenSignals: 0 }),
      ];
      const results = await Promise.allSettled(appends.map(async (append) => journal.append(append)));
      const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'written'));
      assert.deepEqual(codes, ['lease_lost', 'written', 'journal_conflict', 'inbox_changed', 'written']);
      const heads = [...claims.keys()].map(async (run) => (await sequence(journal, run)).length);
      assert.deepEqual(await Promise.all(heads), [1, 2, 1, 2, 2]);
    },
  },
  {
    name: 'appends that are sent without waiting land in their order',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      await Promise.all([1, 2, 3, 4, 5].map((expected) => journal.append(step(claim, expected))));
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2, 3, 4, 5, 6]);
    },
  },
  {
    name: '100 runs at the same time each have their own entries',
    async run({ journal }) {
      const runs = Array.from({ length: 100 }, (_, index) => `r${index}`);
      await Promise.all(
        runs.map(async (run) => {
          const claim = await createClaimed(journal, run);
          for (let head = 1; head <= 10; head += 1) {
            await journal.append({ ...step(claim, head), entries: [stepEntry(head + 1, `${run} ${head + 1}`)] });
          }
        }),
      );
      for (const run of runs) {
        const [first, ...steps] = await journal.read(run);
        assert.deepEqual(first, startedEntry(identity(run)));
        const expected = Array.from({ length: 10 }, (_, index) => stepEntry(index + 2, `${run} ${index + 2}`));
        assert.deepEqual(steps, expected);
      }
    },
  },
  {
    name: 'a record tells status, query, agent, priority, times, head and lease',
    async run({ journal, clock }) {
      const createdAt = clock.now();
      await journal.create(newRun('r1', { priority: 7 }));
      const parts = {
        identity: identity('r1'),
        query: 'query of r1',
        agent: 'finish',
        priority: 7,
        createdAt,
        turn: 1,
      };
      const pending = { ...parts, status: 'pending', updatedAt: createdAt, readAt: createdAt, head: 1 };
      assert.deepEqual(await journal.get('r1'), pending);
      const claim = present(await claimFirst(journal, ana));
      clock.advance(10);
      await journal.append(step(claim, 1, { status: 'paused' }));
      const record = { ...parts, status: 'paused', updatedAt: createdAt + 10, readAt: createdAt + 10, head: 2 };
      assert.deepEqual(await journal.get('r1'), { ...record, lease: { owner: 'ana', until: createdAt + 1_000 } });
      clock.advance(990);
      assert.deepEqual(await journal.get('r1'), { ...record, readAt: createdAt + 1_000 });
    },
  },
  {
    name: 'after close everything is refused',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      const pending = journal.append(step(claim, 1));
      await Promise.all([journal.close(), journal.close()]);
      await pending;
      const scope = identity('r1');
      for (const call of [
        journal.create(newRun('r2')),
        journal.append(step(claim, 2)),
        journal.read('r1'),
        journal.get('r1'),
        journal.list({}),
        claimFirst(journal, ana),
        journal.renew([claim], 1_000),
        journal.release(claim, { seenSignals: 0 }),
        journal.signal('r1', { id: 'c1', type: 'PAUSE' }),
        journal.inbox('r1'),
        journal.artifacts.put(scope, Buffer.from('x'), { mime: 'text/plain' }),
        journal.artifacts.get(scope, 'art_x'),
        journal.artifacts.list(scope, 1),
        journal.sessions.get(scope),
        journal.sessions.list({ tenant: 'acme' }),
        journal.sessions.set(scope, { title: 'x' }),
        journal.sessions.delete(scope),
        journal.send({ scope, known: { run: 'r3', control: 'message_3' }, seen: { live: null, branch: null } }),
      ]) {
        await expectCode(call, 'journal_closed');
      }
      await journal.close();
    },
  },
];

export const repairCases: readonly JournalCase[] = [
  {
    name: 'a run is examined as it is stored, and set right only as it was examined, when nobody has it',
    async run({ journal, clock }) {
      const claim = await createClaimed(journal, 'r1');
      for (const head of [1, 2, 3]) await journal.append(step(claim, head));
      await journal.signal('r1', control('c1'));
      const examined = await journal.examine('r1');
      assert.deepEqual(
        examined.entries.map(({ seq, text }) => [seq, JSON.parse(text).kind]),
        [1, 2, 3, 4].map((seq) => [seq, seq === 1 ? 'started' : 'call_ended']),
      );
      const inbox = examined.inbox.map(({ id, text }) => [id, JSON.parse(text)]);
      assert.deepEqual([examined.head, examined.signals, inbox], [4, 1, [['c1', control('c1')]]]);
      const entries = [3, 4, 5].map((seq) => stepEntry(seq, `other ${seq}`));
      const agent = 'finish';
      const request: RepairRequest = {
        run: 'r1',
        head: 4,
        signals: 1,
        keep: 2,
        entries,
        status: 'paused',
        agent,
        drops: ['c1'],
        waits: [],
      };
      await expectCode(journal.repair(request), 'journal_conflict');
      clock.advance(LEASE_MS);
      await expectCode(journal.repair({ ...request, head: 3 }), 'journal_conflict');
      await expectCode(journal.repair({ ...request, signals: 0 }), 'journal_conflict');
      await expectCode(journal.repair({ ...request, entries: entries.slice(0, 1) }), 'journal_conflict');
      assert.deepEqual(await journal.examine('r1'), examined);
      await journal.repair(request);
      assert.deepEqual((await journal.read('r1')).slice(2), entries);
      assert.deepEqual(await journal.inbox('r1'), []);
      assert.equal((await journal.get('r1'))?.status, 'paused');
      // Whoever had it before writes nothing more; whoever claims it goes on behind what was put there.
      await expectCode(journal.append(step(claim, 5)), 'lease_lost');
      const next = present(await claimFirst(journal, ana));
      assert.equal(next.head, 5);
      await journal.append(step(next, 5));
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2, 3, 4, 5, 6]);
      await expectCode(journal.examine('r9'), 'run_not_found');
    },
  },
];
