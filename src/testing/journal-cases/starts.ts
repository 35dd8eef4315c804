/** Runs that begin later, are started under a key or by a schedule, and are found by their labels. */
import assert from 'node:assert/strict';
import type { Json, Started, StartKey } from '#core';
import type { Journal, NewRun, RunQuery, ScheduleMove, StoredSchedule } from '#journal';
import {
  ana,
  ben,
  claimFirst,
  control,
  expectCode,
  identity,
  type JournalCase,
  newRun,
  present,
  startedEntry,
} from './kit.ts';

const NOT_A_TURN = { conversation: false } as const;

function runWith(run: string, more: Partial<Started> = {}, parts: Partial<NewRun> = {}): NewRun {
  return newRun(run, { entries: [startedEntry(identity(run), { ...NOT_A_TURN, ...more })], ...parts });
}

async function idsOf(journal: Journal, query: RunQuery): Promise<string[]> {
  return (await journal.list(query)).map((record) => record.identity.run);
}

async function put(journal: Journal, more: Partial<StoredSchedule> = {}): Promise<StoredSchedule> {
  const { id = 's', tenant = 'acme', agent = 'finish', definition = { n: 1 }, times = 't', nextAt = 1_000 } = more;
  return journal.schedules.put({ tenant, id, agent, definition, times, nextAt });
}

function moveOf({ tenant, id, mark }: StoredSchedule, nextAt: number | null, run?: string): ScheduleMove {
  return { tenant, id, mark, nextAt, ...(run === undefined ? {} : { run }) };
}

const laterCases: readonly JournalCase[] = [
  {
    name: 'a run that begins later is pending and not due until then',
    async run({ journal, clock }) {
      const startsAt = clock.now() + 1_000;
      assert.equal(await journal.create(runWith('r1', { startsAt }, { claim: ana })), undefined);
      const record = present(await journal.get('r1'));
      assert.deepEqual([record.status, record.wakeAt, record.lease], ['pending', startsAt, undefined]);
      clock.advance(999);
      assert.equal(await claimFirst(journal, ben), undefined);
      clock.advance(1);
      const claim = present(await claimFirst(journal, ben));
      assert.deepEqual([claim.run, claim.startsInMs], ['r1', undefined]);
    },
  },
  {
    name: 'a run that begins later, and was told nothing, is not claimed by its name either',
    async run({ journal, clock }) {
      const key: StartKey = { kind: 'debounce', key: 'k', waitMs: 100 };
      await journal.startByKey(runWith('r1'), key);
      clock.advance(90);
      await journal.startByKey(runWith('r2'), key);
      clock.advance(20);
      // Whoever has read the first time comes too early.
      assert.equal(await journal.claim({ ...ana, run: 'r1' }), undefined);
      assert.equal((await journal.startByKey(runWith('r3'), key)).run, 'r1');
      clock.advance(100);
      assert.equal(present(await journal.claim({ ...ana, run: 'r1' })).run, 'r1');
    },
  },
  {
    name: 'a time that has passed is now',
    async run({ journal, clock }) {
      const claim = await journal.create(runWith('r1', { startsAt: clock.now() }, { claim: ana }));
      assert.equal(present(claim).startsInMs, undefined);
      assert.equal(present(await journal.get('r1')).wakeAt, undefined);
    },
  },
  {
    name: 'a run that is told something before its time is due, and its claim says when it begins',
    async run({ journal, clock }) {
      await journal.create(runWith('r1', { startsAt: clock.now() + 1_000 }));
      clock.advance(400);
      await journal.signal('r1', control('c1'));
      assert.equal(present(await claimFirst(journal, ana)).startsInMs, 600);
    },
  },
];

const labelCases: readonly JournalCase[] = [
  {
    name: 'runs are found by their labels, their agent, their schedule and the text of their query, page by page',
    async run({ journal }) {
      for (let n = 1; n <= 6; n += 1) {
        const labels = { order: n % 2 === 0 ? '17' : '18', kind: n > 3 ? 'late' : 'early' };
        const more = { labels, query: `Send parcel ${n} to ÖSTERSUND`, agent: n > 4 ? 'b' : 'a' };
        await journal.create(runWith(`r${n}`, { ...more, ...(n === 2 ? { schedule: { id: 's', at: 5 } } : {}) }));
      }
      await journal.create(runWith('other', { query: 'nothing' }));
      const labels = { order: '17' };
      assert.deepEqual(await idsOf(journal, { labels }), ['r6', 'r4', 'r2']);
      assert.deepEqual(await idsOf(journal, { labels, limit: 2 }), ['r6', 'r4']);
      assert.deepEqual(await idsOf(journal, { labels, limit: 2, after: 'r4' }), ['r2']);
      assert.deepEqual(await idsOf(journal, { labels: { order: '17', kind: 'late' } }), ['r6', 'r4']);
      assert.deepEqual(await idsOf(journal, { labels: { order: '19' } }), []);
      assert.deepEqual(await idsOf(journal, { labels: { kind: '17' } }), []);
      assert.deepEqual(await idsOf(journal, { agent: 'b' }), ['r6', 'r5']);
      assert.deepEqual(await idsOf(journal, { labels, agent: 'a' }), ['r4', 'r2']);
      assert.deepEqual(await idsOf(journal, { schedule: 's' }), ['r2']);
      assert.deepEqual(await idsOf(journal, { schedule: 's', labels: { order: '18' } }), []);
      assert.deepEqual(await idsOf(journal, { text: 'östersund', limit: 2 }), ['r6', 'r5']);
      assert.deepEqual(await idsOf(journal, { text: 'parcel', labels, after: 'r6' }), ['r4', 'r2']);
      assert.deepEqual(await idsOf(journal, { text: '%' }), []);
      assert.deepEqual(await idsOf(journal, { text: 'parcel', tenant: 'other' }), []);
      const record = present(await journal.get('r2'));
      assert.deepEqual(
        [record.labels, record.schedule],
        [
          { order: '17', kind: 'early' },
          { id: 's', at: 5 },
        ],
      );
    },
  },
  {
    name: 'a repaired first entry has its own labels, and a deleted session has none',
    async run({ journal }) {
      await journal.create(runWith('r1', { labels: { a: '1' } }));
      const entries = [startedEntry(identity('r1'), { ...NOT_A_TURN, erased: 1, query: '' })];
      const asked = {
        run: 'r1',
        head: 1,
        signals: 0,
        keep: 0,
        status: 'cancelled',
        agent: 'finish',
        drops: [],
        waits: [],
      } as const;
      await journal.repair({ ...asked, entries, erases: true });
      assert.deepEqual(await idsOf(journal, { labels: { a: '1' } }), []);
      await journal.create(runWith('r2', { labels: { a: '2' } }));
      const { tenant, user, session } = identity('r2');
      await journal.sessions.delete({ tenant, user, session });
      assert.deepEqual(await idsOf(journal, { labels: { a: '2' } }), []);
    },
  },
];

const SINGLETON: StartKey = { kind: 'singleton', key: 'k' };

const keyCases: readonly JournalCase[] = [
  {
    name: 'singleton: the run under way is given, and the next one starts when it has ended',
    async run({ journal }) {
      const first = await journal.startByKey(runWith('r1', {}, { claim: ana }), SINGLETON);
      const claim = present(first.claim);
      assert.deepEqual(await journal.startByKey(runWith('r2', {}, { claim: ben }), SINGLETON), { run: 'r1' });
      assert.equal(await journal.get('r2'), undefined);
      const other = runWith('r3', {}, { identity: identity('r3', { tenant: 'other' }) });
      assert.equal((await journal.startByKey(other, SINGLETON)).run, 'r3');
      const rate: StartKey = { kind: 'rate', key: 'k', limit: 1, perMs: 10 };
      assert.equal((await journal.startByKey(runWith('r4'), rate)).run, 'r4');
      const ending = { kind: 'finished', reason: 'goal', seq: 2, at: 2 } as const;
      await journal.append({ run: 'r1', fence: claim.fence, expected: 1, entries: [ending], status: 'finished' });
      assert.equal((await journal.startByKey(runWith('r2'), SINGLETON)).run, 'r2');
      // The same start again.
      assert.deepEqual(await journal.startByKey(runWith('r1'), SINGLETON), { run: 'r1' });
    },
  },
  {
    name: 'debounce: the last start of a burst is the run that begins, once its time is over',
    async run({ journal, clock }) {
      const key: StartKey = { kind: 'debounce', key: 'k', waitMs: 100, maxWaitMs: 250 };
      const from = clock.now();
      const start = async (run: string): Promise<string> => {
        const labels = { from: run };
        return (await journal.startByKey(runWith(run, { labels, agent: `agent ${run}` }, { priority: 2 }), key)).run;
      };
      assert.equal(await start('r1'), 'r1');
      const [before] = await journal.read('r1');
      assert.equal(present(await journal.get('r1')).wakeAt, from + 100);
      clock.advance(90);
      assert.equal(await start('r2'), 'r1');
      assert.equal(present(await journal.get('r1')).wakeAt, from + 190);
      clock.advance(90);
      assert.equal(await start('r3'), 'r1');
      const record = present(await journal.get('r1'));
      assert.deepEqual([record.wakeAt, record.query, record.agent], [from + 250, 'query of r3', 'agent r3']);
      assert.deepEqual(
        [await idsOf(journal, { labels: { from: 'r3' } }), await idsOf(journal, { labels: { from: 'r1' } })],
        [['r1'], []],
      );
      const [first, ...others] = await journal.read('r1');
      assert.ok(first?.kind === 'started' && others.length === 0);
      assert.deepEqual([first.identity.run, first.startsAt, first.seq], ['r1', from + 250, 1]);
      assert.ok(first.at > present(before).at);
      clock.advance(70);
      // Its time has come: the next burst has another run.
      assert.equal(await start('r4'), 'r4');
      assert.equal(present(await claimFirst(journal, ana)).run, 'r1');
    },
  },
  {
    name: 'debounce: a run that was told something, or belongs to another session, is not replaced',
    async run({ journal }) {
      const key: StartKey = { kind: 'debounce', key: 'k', waitMs: 100 };
      await journal.startByKey(runWith('r1'), key);
      const theirs = identity('r2', { user: 'ben' });
      const other = newRun('r2', { identity: theirs, entries: [startedEntry(theirs, NOT_A_TURN)] });
      await expectCode(journal.startByKey(other, key), 'scope_mismatch');
      await journal.signal('r1', { id: 'c', type: 'CANCEL' });
      assert.equal((await journal.startByKey(runWith('r3'), key)).run, 'r3');
    },
  },
  {
    name: 'throttle: what is too much begins later, in order, and its deadline moves with it',
    async run({ journal, clock }) {
      const key: StartKey = { kind: 'throttle', key: 'k', limit: 2, perMs: 100 };
      const from = clock.now();
      const begins: (number | undefined)[] = [];
      for (let n = 1; n <= 5; n += 1) {
        const run = runWith(`r${n}`, { limits: { deadlineAt: 1 } }, { deadline: { ms: 50, at: from + 240 } });
        assert.equal((await journal.startByKey(run, key)).run, `r${n}`);
        begins.push(present(await journal.get(`r${n}`)).wakeAt ?? undefined);
        await journal.startByKey(run, key);
      }
      assert.deepEqual(begins, [undefined, undefined, from + 100, from + 100, from + 200]);
      const [first] = await journal.read('r5');
      assert.ok(first?.kind === 'started');
      assert.deepEqual([first.startsAt, first.limits.deadlineAt], [from + 200, from + 240]);
      const [third] = await journal.read('r3');
      assert.deepEqual(third?.kind === 'started' && third.limits.deadlineAt, from + 150);
      clock.advance(1_000);
      await journal.startByKey(runWith('r6'), key);
      assert.equal(present(await journal.get('r6')).wakeAt, undefined);
    },
  },
  {
    name: 'rate: what is too much is refused, and told when it would not be',
    async run({ journal, clock }) {
      const key: StartKey = { kind: 'rate', key: 'k', limit: 2, perMs: 100 };
      const from = clock.now();
      await journal.startByKey(runWith('r1'), key);
      clock.advance(60);
      await journal.startByKey(runWith('r2'), key);
      const error = await expectCode(journal.startByKey(runWith('r3'), key), 'rate_limited');
      assert.equal(error.data?.['allowedAt'], from + 100);
      assert.equal(await journal.get('r3'), undefined);
      clock.advance(39);
      await expectCode(journal.startByKey(runWith('r3'), key), 'rate_limited');
      clock.advance(1);
      assert.equal((await journal.startByKey(runWith('r3'), key)).run, 'r3');
      await expectCode(journal.startByKey(runWith('r4'), key), 'rate_limited');
      clock.advance(60);
      await journal.startByKey(runWith('r4'), key);
    },
  },
];

const scheduleCases: readonly JournalCase[] = [
  {
    name: 'a schedule is stored once: another definition is another revision, paused as before, with its next time unless the times differ',
    async run({ journal }) {
      const { schedules } = journal;
      const first = await put(journal);
      assert.deepEqual([first.revision, first.isPaused, first.nextAt], [1, false, 1_000]);
      assert.deepEqual(await put(journal, { nextAt: 2_000 }), first);
      assert.equal(await schedules.move({ ...moveOf(first, 1_000), isPaused: true }), true);
      const second = await put(journal, { nextAt: 2_000, definition: { n: 2 } });
      assert.deepEqual([second.revision, second.isPaused, second.nextAt], [2, true, 1_000]);
      const third = await put(journal, { nextAt: 2_000, definition: { n: 2 }, times: 'others' });
      assert.deepEqual([third.revision, third.isPaused, third.nextAt], [3, true, 2_000]);
      assert.deepEqual(await schedules.get('acme', 's'), third);
      assert.equal(await schedules.get('other', 's'), undefined);
      assert.equal(await schedules.delete('other', 's'), false);
      assert.equal(await schedules.delete('acme', 's'), true);
      assert.equal(await schedules.move(moveOf(third, 3_000)), false);
      const again = await put(journal);
      assert.deepEqual([again.revision, again.isPaused, again.mark === first.mark], [1, false, false]);
    },
  },
  {
    name: 'other times for a schedule are refused when it has changed since its next time was worked out',
    async run({ journal }) {
      const { schedules } = journal;
      const of = { tenant: 'acme', id: 's', agent: 'finish', definition: { n: 1 }, times: 't', nextAt: 1_000 } as const;
      const seen = await schedules.put({ ...of, mark: null });
      await schedules.move(moveOf(seen, 2_000));
      const others = { ...of, times: 'u', nextAt: 500 } as const;
      for (const mark of [seen.mark, null]) await expectCode(schedules.put({ ...others, mark }), 'schedule_changed');
      const renamed = await schedules.put({ ...of, definition: { n: 2 }, mark: seen.mark });
      assert.deepEqual([renamed.revision, renamed.nextAt], [2, 2_000]);
      const moved = await schedules.put({ ...others, nextAt: 2_500, mark: renamed.mark });
      assert.deepEqual([moved.revision, moved.times, moved.nextAt], [3, 'u', 2_500]);
      assert.deepEqual(await schedules.put({ ...others, nextAt: 9_000, mark: null }), moved);
      await schedules.delete('acme', 's');
      await expectCode(schedules.put({ ...others, mark: moved.mark }), 'schedule_changed');
    },
  },
  {
    name: 'schedules are listed by tenant and id, page by page',
    async run({ journal }) {
      for (const id of ['b', 'a', 'c']) await put(journal, { id });
      await put(journal, { id: 'a', tenant: 'other' });
      const ids = async (query: { limit?: number; after?: string }): Promise<string[]> =>
        (await journal.schedules.list({ tenant: 'acme', ...query })).map(({ id }) => id);
      assert.deepEqual(await ids({}), ['a', 'b', 'c']);
      assert.deepEqual(await ids({ limit: 2 }), ['a', 'b']);
      assert.deepEqual(await ids({ limit: 2, after: 'b' }), ['c']);
      await expectCode(journal.schedules.list({ tenant: 'acme', limit: 0 }), 'invalid_config');
    },
  },
  {
    name: 'due are those of the agents whose time has come and that are not paused; the first time of the others is told',
    async run({ journal, clock }) {
      const now = clock.now();
      const due = async (limit = 10): Promise<Json> => {
        const found = await journal.schedules.due(['finish', 'more'], limit);
        assert.equal(found.readAt, clock.now());
        return [found.due.map(({ id }) => id), found.nextAt];
      };
      assert.deepEqual(await due(), [[], null]);
      await put(journal, { id: 'b', nextAt: now });
      await put(journal, { id: 'a', nextAt: now - 5, agent: 'more' });
      await put(journal, { id: 'c', nextAt: now + 50 });
      await put(journal, { id: 'd', nextAt: now + 20, agent: 'nobody' });
      await put(journal, { id: 'e', nextAt: null });
      const paused = await put(journal, { id: 'f', nextAt: now - 9 });
      await journal.schedules.move({ ...moveOf(paused, now - 9), isPaused: true });
      assert.deepEqual(await due(), [['a', 'b'], now + 50]);
      assert.deepEqual(await due(1), [['a'], now + 50]);
      const rest = await journal.schedules.due(['finish', 'more'], 10, { tenant: 'acme', id: 'a' });
      assert.deepEqual(
        rest.due.map(({ id }) => id),
        ['b'],
      );
      clock.advance(50);
      assert.deepEqual(await due(), [['a', 'b', 'c'], null]);
    },
  },
  {
    name: 'unfired are those of other agents whose time came so long ago, and that are not paused',
    async run({ journal, clock }) {
      const now = clock.now();
      const unfired = async (agents: readonly string[], limit = 10): Promise<Json> =>
        (await journal.schedules.unfired(agents, 50, limit)).map(({ id }) => id);
      await put(journal, { id: 'b', nextAt: now - 50 });
      await put(journal, { id: 'a', nextAt: now - 90, agent: 'more' });
      await put(journal, { id: 'c', nextAt: now - 40 });
      await put(journal, { id: 'd', nextAt: null });
      const paused = await put(journal, { id: 'e', nextAt: now - 99 });
      await journal.schedules.move({ ...moveOf(paused, now - 99), isPaused: true });
      assert.deepEqual(await unfired([]), ['a', 'b']);
      assert.deepEqual(await unfired([], 1), ['a']);
      assert.deepEqual(await unfired(['more', 'nobody']), ['b']);
      assert.deepEqual(await unfired(['more', 'finish']), []);
      clock.advance(10);
      assert.deepEqual(await unfired([]), ['a', 'b', 'c']);
    },
  },
  {
    name: 'a fire and the next time of its schedule are one commit, which of two processes one makes',
    async run({ journal }) {
      const seen = await put(journal);
      const claim = await journal.create(runWith('f1', {}, { claim: ana, fires: moveOf(seen, 2_000, 'f1') }));
      assert.equal(present(claim).run, 'f1');
      const moved = present(await journal.schedules.get('acme', 's'));
      assert.deepEqual([moved.nextAt, moved.lastRun, moved.revision], [2_000, 'f1', 1]);
      // Another process has read it before.
      await expectCode(journal.create(runWith('f2', {}, { fires: moveOf(seen, 2_000, 'f2') })), 'schedule_changed');
      assert.equal(await journal.get('f2'), undefined);
      assert.equal(await journal.schedules.move(moveOf(seen, 9_000)), false);
      // A run that is there already: the schedule was made anew, and moves on.
      assert.equal(await journal.create(runWith('f1', {}, { fires: moveOf(moved, 3_000, 'f1') })), undefined);
      assert.equal(present(await journal.schedules.get('acme', 's')).nextAt, 3_000);
    },
  },
  {
    name: 'a message of a schedule is sent in the commit that moves the schedule on',
    async run({ journal }) {
      const seen = await put(journal);
      const { tenant, user, session } = identity('m1');
      const scope = { tenant, user, session };
      const send = (run: string, fires: ScheduleMove) =>
        journal.send({
          scope,
          known: { run, control: `message_${run}` },
          seen: { live: null, branch: null },
          starts: newRun(run, { waits: 'last' }),
          fires,
        });
      await send('m1', moveOf(seen, 2_000, 'm1'));
      const moved = present(await journal.schedules.get('acme', 's'));
      assert.deepEqual([moved.nextAt, moved.lastRun], [2_000, 'm1']);
      await journal.sessions.delete(scope);
      await expectCode(send('m2', moveOf(seen, 2_000, 'm2')), 'schedule_changed');
      assert.equal(await journal.get('m2'), undefined);
    },
  },
];

export const startCases: readonly JournalCase[] = [...laterCases, ...labelCases, ...keyCases, ...scheduleCases];
