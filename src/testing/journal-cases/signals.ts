import assert from 'node:assert/strict';
import type { ReturnedSignal } from '#core';
import type { Journal } from '#journal';
import {
  claimFirst,
  createClaimed,
  createWaiting,
  delivered,
  eventWait,
  expectCode,
  identity,
  indexed,
  type JournalCase,
  newRun,
  newSignal,
  present,
  step,
  takeAll,
  waiting,
} from './kit.ts';

const MINUTE = 60_000;
const back = (key: string, signal: string): ReturnedSignal => ({ key, signal, payload: { said: signal } });

async function kept(journal: Journal, tenant = 'acme'): Promise<string[]> {
  return (await journal.events.list({ tenant })).map(({ key, id }) => `${key} ${id}`);
}

export const signalCases: readonly JournalCase[] = [
  {
    name: 'J8 a signal goes to the inbox of who waits, makes the run due, and its wait leaves the index',
    async run({ journal, clock }) {
      const claim = await createWaiting(journal, 'r1', eventWait(1, 'a'), eventWait(2, 'b'));
      await journal.release(claim, { seenSignals: 0, wakeInMs: null, status: 'waiting' });
      const signalled = await journal.events.signal(newSignal('a', 's1', { payload: [null, 17] }));
      assert.deepEqual(signalled, { isNew: true, runs: ['r1'], kept: false, until: clock.now() + MINUTE });
      const [received] = await journal.inbox('r1');
      const { id, ...message } = present(received).message;
      const at = { step: 1, call: 0, wait: 1 };
      assert.deepEqual(message, { type: 'EVENT', at, key: 'a', payload: [null, 17], signal: 's1' });
      assert.ok(id.startsWith('event:1.0.1:'));
      assert.deepEqual([await indexed(journal), await kept(journal)], [['r1 1.0.2'], []]);
      assert.equal((await journal.get('r1'))?.wakeAt, undefined);
      assert.equal((await claimFirst(journal, { owner: 'ben', leaseMs: 1_000 }))?.run, 'r1');
    },
  },
  {
    name: 'J8 a signal before anybody waits is kept, and goes to who waits first, in the commit in which it begins to',
    async run({ journal, clock }) {
      const until = clock.now() + MINUTE;
      assert.deepEqual(await journal.events.signal(newSignal('a', 's1')), { isNew: true, runs: [], kept: true, until });
      const [row] = await journal.events.list({ tenant: 'acme', key: 'a' });
      const { number, ...rest } = present(row);
      assert.ok(number > 0);
      assert.deepEqual(rest, { key: 'a', id: 's1', payload: { said: 's1' }, storedAt: clock.now(), until });
      const claim = await createWaiting(journal, 'r1', eventWait(1, 'a'));
      assert.deepEqual([await delivered(journal, 'r1'), await kept(journal)], [['1.0.1 s1'], []]);
      // The driver hears of it when it lets go.
      assert.equal(await journal.release(claim, { seenSignals: 0, wakeInMs: null, status: 'waiting' }), false);
      await createWaiting(journal, 'r2', eventWait(1, 'a'));
      assert.deepEqual([await delivered(journal, 'r2'), await indexed(journal)], [[], ['r2 1.0.1']]);
    },
  },
  {
    name: 'J8 the same id of a key comes once, delivered or kept, until its time is over',
    async run({ journal, clock }) {
      await journal.events.signal(newSignal('a', 's1'));
      const again = await journal.events.signal(newSignal('a', 's1', { payload: 'other' }));
      assert.deepEqual([again.isNew, again.runs, again.kept], [false, [], true]);
      const claim = await createWaiting(journal, 'r1', eventWait(1, 'a'));
      await takeAll(journal, claim, 2, { waits: { adds: [eventWait(2, 'a')] } });
      const third = await journal.events.signal(newSignal('a', 's1'));
      assert.deepEqual([third.isNew, third.runs, third.kept], [false, [], false]);
      assert.deepEqual((await journal.events.signal(newSignal('b', 's1'))).isNew, true);
      clock.advance(MINUTE);
      assert.deepEqual((await journal.events.signal(newSignal('a', 's1'))).runs, ['r1']);
      assert.deepEqual(await delivered(journal, 'r1'), ['1.0.2 s1']);
    },
  },
  {
    name: 'J8 a signal goes to all that wait, and tenants hear nothing of each other',
    async run({ journal }) {
      for (const run of ['r1', 'r2']) await createWaiting(journal, run, eventWait(1, 'a'));
      const other = identity('r3', { tenant: 'other' });
      await journal.create(newRun('r3', { identity: other, openWaits: [eventWait(1, 'a')] }));
      assert.deepEqual((await journal.events.signal(newSignal('a', 's1'))).runs.toSorted(), ['r1', 'r2']);
      assert.deepEqual(await indexed(journal), ['r3 1.0.1']);
      await journal.events.signal(newSignal('a', 's1', { tenant: 'third' }));
      assert.deepEqual([await kept(journal), await kept(journal, 'third')], [[], ['a s1']]);
      const theirs = await journal.events.signal(newSignal('a', 's1', { tenant: 'other' }));
      assert.deepEqual([theirs.isNew, theirs.runs], [true, ['r3']]);
      await expectCode(journal.events.signal(newSignal('a', 's1', { tenant: '' })), 'identity_required');
    },
  },
  {
    name: 'J8 a stream of payloads reaches one that waits again and again, in the order in which they were accepted',
    async run({ journal, clock }) {
      const claim = await createWaiting(journal, 'r1', eventWait(1, 'a'));
      for (const id of ['s1', 's2', 's3']) {
        await journal.events.signal(newSignal('a', id));
        clock.advance(1);
      }
      const got = [...(await delivered(journal, 'r1'))];
      for (const [index, wait] of [2, 3, 4].entries()) {
        await takeAll(journal, claim, 2 + index, { waits: { adds: [eventWait(wait, 'a')] } });
        got.push(...(await delivered(journal, 'r1')));
      }
      assert.deepEqual(got, ['1.0.1 s1', '1.0.2 s2', '1.0.3 s3']);
      assert.deepEqual(await indexed(journal), ['r1 1.0.4']);
    },
  },
  {
    name: 'J8 what is kept is gone when its time is over by the clock of the store',
    async run({ journal, clock }) {
      await journal.events.signal(newSignal('a', 's1', { keepMs: 1_000 }));
      await journal.events.signal(newSignal('a', 's2', { keepMs: 2_000 }));
      clock.advance(1_000);
      assert.deepEqual(await kept(journal), ['a s2']);
      await createWaiting(journal, 'r1', eventWait(1, 'a'), eventWait(2, 'a'));
      assert.deepEqual(await delivered(journal, 'r1'), ['1.0.1 s2', '1.0.2 s2']);
      const now = await journal.events.signal(newSignal('b', 's3', { keepMs: 0 }));
      assert.deepEqual([now.isNew, now.runs, now.kept], [true, [], false]);
      await createWaiting(journal, 'r2', eventWait(1, 'b'));
      assert.deepEqual((await journal.events.signal(newSignal('b', 's3', { keepMs: 0 }))).runs, ['r2']);
    },
  },
  {
    name: 'J6 a wait whose time has come by the clock of the store does not get a signal',
    async run({ journal, clock }) {
      const until = clock.now() + 500;
      await createWaiting(journal, 'r1', eventWait(1, 'a', { until }));
      clock.advance(500);
      assert.deepEqual((await journal.events.signal(newSignal('a', 's1'))).kept, true);
      await createWaiting(journal, 'r2', eventWait(1, 'a', { until }));
      assert.deepEqual([await delivered(journal, 'r1'), await delivered(journal, 'r2')], [[], []]);
      await createWaiting(journal, 'r3', eventWait(1, 'a', { until: until + 1 }));
      assert.deepEqual(await delivered(journal, 'r3'), ['1.0.1 s1']);
    },
  },
  {
    name: 'J8 a signal that came for a wait that was over is kept again, before those that came later',
    async run({ journal, clock }) {
      const claim = await createWaiting(journal, 'r1', eventWait(1, 'a'));
      await journal.events.signal(newSignal('a', 's1'));
      clock.advance(10);
      await journal.events.signal(newSignal('a', 's2'));
      assert.deepEqual(await kept(journal), ['a s2']);
      await takeAll(journal, claim, 2, { waits: { returns: [back('a', 's1')] } });
      assert.deepEqual(await kept(journal), ['a s1', 'a s2']);
      await createWaiting(journal, 'r2', eventWait(1, 'a'));
      assert.deepEqual([await delivered(journal, 'r2'), await kept(journal)], [['1.0.1 s1'], ['a s2']]);
      clock.advance(MINUTE - 10);
      const late = present(await journal.claim({ run: 'r2', owner: 'ben', leaseMs: 1_000 }));
      await takeAll(journal, late, 2, { waits: { returns: [back('a', 's1')] } });
      assert.deepEqual(await kept(journal), ['a s2']);
    },
  },
  {
    name: 'J8 a signal that came for a wait that was over goes to another that waits for its key, once',
    async run({ journal }) {
      const one = await createWaiting(journal, 'r1', eventWait(1, 'a'));
      const two = await createWaiting(journal, 'r2', eventWait(1, 'a'));
      await journal.events.signal(newSignal('a', 's1'));
      await createWaiting(journal, 'r3', eventWait(1, 'a'));
      await takeAll(journal, one, 2, { waits: { returns: [back('a', 's1')] } });
      // The other run may take it.
      assert.deepEqual([await delivered(journal, 'r3'), await kept(journal)], [[], []]);
      await takeAll(journal, two, 2, { waits: { returns: [back('a', 's1')] } });
      assert.deepEqual([await delivered(journal, 'r3'), await kept(journal)], [['1.0.1 s1'], []]);
      await journal.append(step(one, 3, { waits: { returns: [back('a', 'unknown'), back('b', 's1')] } }));
      assert.deepEqual(await kept(journal), []);
    },
  },
  {
    name: 'J8 a wait that goes on without a signal waits for the next one',
    async run({ journal }) {
      const claim = await createWaiting(journal, 'r1', eventWait(1, 'a'));
      await journal.events.signal(newSignal('a', 's1'));
      await journal.events.signal(newSignal('a', 's2'));
      await takeAll(journal, claim, 2, { waits: { adds: [eventWait(1, 'a')] } });
      assert.deepEqual([await delivered(journal, 'r1'), await kept(journal)], [['1.0.1 s2'], []]);
    },
  },
  {
    name: 'J8 a run that has ended gets no signal',
    async run({ journal }) {
      const claim = await createWaiting(journal, 'r1', eventWait(1, 'a'));
      await journal.append(step(claim, 2, { waits: { ends: true }, status: 'finished' }));
      assert.equal((await journal.events.signal(newSignal('a', 's1'))).kept, true);
      assert.deepEqual(await waiting(journal, 'r1'), []);
    },
  },
  {
    name: 'J8 a key keeps 1,000 signals, and what is delivered does not count',
    async run({ journal }) {
      for (let id = 0; id < 1_000; id += 1) await journal.events.signal(newSignal('a', String(id), { payload: id }));
      await expectCode(journal.events.signal(newSignal('a', 'more')), 'signals_full');
      assert.equal((await journal.events.signal(newSignal('a', '17'))).isNew, false);
      assert.equal((await journal.events.signal(newSignal('b', 'more'))).kept, true);
      await createWaiting(journal, 'r1', eventWait(1, 'a'));
      assert.equal((await journal.events.signal(newSignal('a', 'more'))).kept, true);
      const page = await journal.events.list({ tenant: 'acme', key: 'a', limit: 2 });
      assert.deepEqual(
        page.map(({ id }) => id),
        ['1', '2'],
      );
      const next = await journal.events.list({ tenant: 'acme', key: 'a', limit: 1, after: present(page[1]).number });
      assert.deepEqual(
        next.map(({ id }) => id),
        ['3'],
      );
    },
  },
  {
    name: 'a signal whose key, id or payload nothing can have is refused',
    async run({ journal }) {
      for (const wrong of [
        newSignal('', 's1'),
        newSignal('a\0b', 's1'),
        newSignal('\ud800', 's1'),
        newSignal('x'.repeat(513), 's1'),
        newSignal('a', ''),
        newSignal('a', 's1', { payload: 'x'.repeat(262_144) }),
      ]) {
        await expectCode(journal.events.signal(wrong), 'payload_invalid');
      }
      await expectCode(journal.events.signal(newSignal('a', 's1', { keepMs: -1 })), 'invalid_config');
      await expectCode(journal.events.signal(newSignal('a', 's1', { keepMs: Number.NaN })), 'invalid_config');
      assert.deepEqual(await kept(journal), []);
    },
  },
  {
    name: 'J8 whoever comes first, the signal or who waits for it, it arrives once',
    async run({ journal }) {
      for (let round = 0; round < 20; round += 1) {
        const run = `r${round}`;
        const claim = await createClaimed(journal, run);
        const begin = async (): Promise<void> =>
          journal.append(step(claim, 1, { waits: { adds: [eventWait(1, run)] } }));
        const signal = async (): Promise<unknown> => journal.events.signal(newSignal(run, 's1'));
        await Promise.all(round % 2 === 0 ? [begin(), signal()] : [signal(), begin()]);
        assert.deepEqual(await delivered(journal, run), ['1.0.1 s1']);
      }
      assert.deepEqual([await indexed(journal), await kept(journal)], [[], []]);
    },
  },
];
