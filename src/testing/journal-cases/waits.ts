import assert from 'node:assert/strict';
import type { WaitRow } from '#core';
import {
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
  startedEntry,
  step,
} from './kit.ts';

const asked: WaitRow = {
  id: 'pause_1',
  for: 'answer',
  requestedAt: 5,
  until: 4_000_000_000_000,
  step: 1,
  call: 2,
  tool: 'pay',
  reason: 'approval_required',
  payload: { amount: 17, to: null },
  approver: 'another',
  schema: { type: 'object' },
};

export const waitCases: readonly JournalCase[] = [
  {
    name: 'J7 what a run waits for is listed with the run, from the commit of its entries on',
    async run({ journal }) {
      const claim = await createClaimed(journal, 'r1');
      assert.deepEqual(await journal.waits.list({}), []);
      await journal.append(step(claim, 1, { waits: { adds: [asked] } }));
      const [row, ...others] = await journal.waits.list({});
      const { number, ...rest } = present(row);
      assert.ok(number > 0);
      assert.deepEqual(rest, { ...asked, ...identity('r1'), agent: 'finish' });
      assert.deepEqual(others, []);
      await expectCode(journal.append(step(claim, 1, { waits: { ends: true } })), 'journal_conflict');
      assert.deepEqual(await indexed(journal), ['r1 pause_1']);
    },
  },
  {
    name: 'J7 waits end one by one, or all of a run, and one that begins again is replaced',
    async run({ journal }) {
      const one = await createWaiting(journal, 'r1', asked, eventWait(1, 'a'), eventWait(2, 'b'));
      const two = await createWaiting(journal, 'r2', eventWait(1, 'a'));
      await journal.append(step(one, 2, { waits: { removes: ['1.0.1', 'unknown'] } }));
      assert.deepEqual(await indexed(journal), ['r1 pause_1', 'r1 1.0.2', 'r2 1.0.1']);
      await journal.append(step(one, 3, { waits: { adds: [eventWait(2, 'c')] } }));
      assert.deepEqual(
        (await journal.waits.list({ run: 'r1' })).map(({ key }) => key),
        [undefined, 'c'],
      );
      await journal.append(step(one, 4, { waits: { ends: true, adds: [eventWait(3, 'd')] } }));
      assert.deepEqual(await indexed(journal), ['r2 1.0.1', 'r1 1.0.3']);
      await journal.append(step(two, 2, { waits: { ends: true }, status: 'finished' }));
      assert.deepEqual(await indexed(journal), ['r1 1.0.3']);
    },
  },
  {
    name: 'the index is filtered, and its pages follow each other while waits come and go',
    async run({ journal, clock }) {
      const until = clock.now() + 500;
      const other = identity('r2', { tenant: 'other', user: 'ben', session: 's2' });
      await createWaiting(journal, 'r1', asked, eventWait(1, 'a'), eventWait(2, 'b', { until }));
      await journal.create(
        newRun('r2', { identity: other, openWaits: [{ ...asked, id: 'pause_2' }, eventWait(1, 'a')] }),
      );
      const found = async (query: Parameters<typeof journal.waits.list>[0]): Promise<string[]> =>
        (await journal.waits.list(query)).map(({ run, id }) => `${run} ${id}`);
      assert.deepEqual(await found({ tenant: 'other' }), ['r2 pause_2', 'r2 1.0.1']);
      assert.deepEqual(await found({ user: 'ben', for: 'event' }), ['r2 1.0.1']);
      assert.deepEqual(await found({ session: 's1', for: 'answer' }), ['r1 pause_1']);
      assert.deepEqual(await found({ key: 'a' }), ['r1 1.0.1', 'r2 1.0.1']);
      assert.deepEqual(await found({ reason: 'approval_required', run: 'r2' }), ['r2 pause_2']);
      assert.deepEqual(await found({ agent: 'finish', untilBefore: until + 1 }), ['r1 1.0.2']);
      assert.deepEqual(await found({ agent: 'nobody' }), []);
      assert.deepEqual(await found({ agent: 'finish', for: 'event', untilBefore: until }), []);
      const [first, second] = await journal.waits.list({ limit: 2 });
      assert.deepEqual([first?.id, second?.id], ['pause_1', '1.0.1']);
      const after = present(second).number;
      await journal.events.signal(newSignal('b', 's'));
      assert.deepEqual(await found({ after, limit: 2 }), ['r2 pause_2', 'r2 1.0.1']);
      await expectCode(journal.waits.list({ limit: 0 }), 'invalid_config');
      await expectCode(journal.waits.list({ limit: 201 }), 'invalid_config');
    },
  },
  {
    name: 'a run that begins with open waits has them in the index, and gets what is kept for them',
    async run({ journal }) {
      await journal.events.signal(newSignal('a', 's1'));
      await journal.create(newRun('r1', { openWaits: [eventWait(1, 'a'), eventWait(2, 'b')] }));
      assert.deepEqual(await delivered(journal, 'r1'), ['1.0.1 s1']);
      await journal.create(newRun('r1', { openWaits: [eventWait(7, 'c')] }));
      assert.deepEqual(await indexed(journal), ['r1 1.0.2']);
    },
  },
  {
    name: 'J7 a repair says what the run waits for then, and gives back the signals that it drops',
    async run({ journal, clock }) {
      const claim = await createWaiting(journal, 'r1', asked, eventWait(1, 'a'), eventWait(2, 'b'));
      await journal.events.signal(newSignal('a', 's1'));
      await journal.release(claim, { seenSignals: 1, wakeInMs: null });
      clock.advance(1);
      const { head, signals, inbox } = await journal.examine('r1');
      const drops = inbox.map(({ id }) => id);
      const about = { run: 'r1', head, signals, status: 'paused', agent: 'finish', drops } as const;
      await journal.repair({ ...about, keep: head, entries: [], waits: [{ ...asked, id: 'pause_2' }] });
      assert.deepEqual(await indexed(journal), ['r1 pause_2']);
      assert.deepEqual(
        (await journal.events.list({ tenant: 'acme' })).map(({ id, payload }) => [id, payload]),
        [['s1', { said: 's1' }]],
      );
    },
  },
  {
    name: 'J7 a session that is deleted waits for nothing, and what its runs had not taken goes to others',
    async run({ journal }) {
      const claim = await createWaiting(journal, 'r1', asked, eventWait(1, 'a'), eventWait(2, 'b'));
      await journal.events.signal(newSignal('a', 's1'));
      await journal.release(claim, { seenSignals: 0 });
      const there = identity('r2', { session: 's2' });
      await journal.create({ ...newRun('r2'), identity: there, entries: [startedEntry(there)] });
      assert.equal(await journal.sessions.delete(identity('r1')), 1);
      assert.deepEqual(await indexed(journal), []);
      const other = present(await journal.claim({ run: 'r2', owner: 'ana', leaseMs: 1_000 }));
      await journal.append(step(other, 1, { waits: { adds: [eventWait(1, 'a')] } }));
      assert.deepEqual(await delivered(journal, 'r2'), ['1.0.1 s1']);
    },
  },
];
