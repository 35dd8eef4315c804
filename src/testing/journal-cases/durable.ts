/** For journals that outlive the process, and that several processes may open. */
import assert from 'node:assert/strict';
import type { StoreWrite } from '#core';
import type { Journal } from '#journal';
import {
  ana,
  ben,
  claimFirst,
  control,
  createClaimed,
  createWaiting,
  delivered,
  eventWait,
  expectCode,
  identity,
  indexed,
  type JournalCase,
  LEASE_MS,
  messagesOf,
  newRun,
  newSignal,
  newTask,
  present,
  sequence,
  step,
  waiting,
  watchMessage,
} from './kit.ts';

export const durableCases: readonly JournalCase[] = [
  {
    name: 'everything is there again after closing and opening',
    async run({ journal, open, clock }) {
      const claim = await createClaimed(journal, 'r1');
      await journal.append(step(claim, 1, { status: 'paused' }));
      for (const id of ['c1', 'c2']) await journal.signal('r1', control(id));
      await journal.append(step(claim, 2, { takes: ['c1'] }));
      const told = { run: 'r2', message: watchMessage('w1') };
      await journal.create(newRun('r2', { priority: 4 }));
      await journal.append(step(claim, 3, { starts: [newTask('r1.0', 'r1')], tells: [told] }));
      const { artifactRef } = await journal.artifacts.put(identity('r1'), Buffer.from('bytes'), { mime: 'text/plain' });
      await journal.store.write([{ namespace: ['acme', 'ana'], key: 'colour', value: 'blue', ttlMs: 60_000 }]);
      const ended = await createClaimed(journal, 'r3');
      await journal.append(step(ended, 1, { status: 'finished' }));
      const kept = async (from: Journal): Promise<unknown> => [
        await from.artifacts.list(identity('r1'), 5),
        await from.store.list({ namespace: ['acme'], limit: 5 }),
      ];
      const remembered = await kept(journal);
      const before = { entries: await journal.read('r1'), records: await journal.list({}) };
      await journal.close();

      const again = await open();
      assert.deepEqual({ entries: await again.read('r1'), records: await again.list({}) }, before);
      assert.deepEqual(await kept(again), remembered);
      assert.deepEqual(await messagesOf(again, 'r1'), [control('c2')]);
      assert.equal(await again.signal('r1', control('c1')), false);
      assert.deepEqual(await messagesOf(again, 'r2'), [watchMessage('w1')]);
      assert.equal(
        Buffer.from(present(await again.artifacts.get(identity('r1'), artifactRef)).bytes).toString(),
        'bytes',
      );
      assert.deepEqual(await again.renew([claim], LEASE_MS), [2]);
      await again.append(step(claim, 4, { tells: [told] }));
      assert.deepEqual(await waiting(again, 'r2'), ['w1']);
      await expectCode(again.append(step(claim, 5, { starts: [newTask('r1.1', 'r1')], treeLimit: 1 })), 'task_limit');
      clock.advance(LEASE_MS);
      assert.equal(present(await again.claim({ ...ben, run: 'r1' })).fence, 2);
    },
  },
  {
    name: 'what is on its way when the journal is closed is stored',
    async run({ journal, open }) {
      const claim = await createClaimed(journal, 'r1');
      const appends = [1, 2, 3].map((expected) => journal.append(step(claim, expected)));
      await journal.close();
      await Promise.all(appends);
      assert.deepEqual(await sequence(await open(), 'r1'), [1, 2, 3, 4]);
    },
  },
  {
    name: 'two journals on one storage exclude each other by leases and fences',
    async run({ journal, open, clock }) {
      const second = await open();
      await journal.create(newRun('r1'));
      const claims = await Promise.all([claimFirst(journal, ana), claimFirst(second, ben)]);
      const winners = claims.filter((claim) => claim !== undefined);
      assert.equal(winners.length, 1);
      const zombie = present(winners[0]);
      clock.advance(LEASE_MS);
      const heir = present(await claimFirst(second, ben));
      await second.append(step(heir, 1));
      await expectCode(journal.append(step(zombie, 1)), 'lease_lost');
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2]);
    },
  },
  {
    name: 'J8 a signal through one journal and a wait through another meet once, whichever comes first',
    async run({ journal, open }) {
      const second = await open();
      for (let round = 0; round < 20; round += 1) {
        const run = `r${round}`;
        const claim = await createClaimed(journal, run);
        const begin = async (): Promise<void> =>
          journal.append(step(claim, 1, { waits: { adds: [eventWait(1, run)] } }));
        const signal = async (): Promise<unknown> => second.events.signal(newSignal(run, 's1'));
        await Promise.all(round % 2 === 0 ? [begin(), signal(), signal()] : [signal(), signal(), begin()]);
        assert.deepEqual(await delivered(second, run), ['1.0.1 s1']);
      }
      assert.deepEqual([await indexed(journal), await second.events.list({ tenant: 'acme' })], [[], []]);
    },
  },
  {
    name: 'what waits, and what was signalled, is there when the storage is opened again',
    async run({ journal, open }) {
      await createWaiting(journal, 'r1', eventWait(1, 'a'), eventWait(2, 'b'));
      await journal.events.signal(newSignal('a', 's1'));
      await journal.events.signal(newSignal('c', 's2'));
      const kept = await journal.events.list({ tenant: 'acme' });
      const waits = await journal.waits.list({});
      await journal.close();
      const again = await open();
      assert.deepEqual(await again.events.list({ tenant: 'acme' }), kept);
      assert.deepEqual(await again.waits.list({}), waits);
      assert.equal((await again.events.signal(newSignal('a', 's1'))).isNew, false);
    },
  },
  {
    name: 'who carries out runs is woken by what another journal makes due',
    async run({ journal, open }) {
      const second = await open();
      let wakes = 0;
      const stop = second.watchDue(() => {
        wakes += 1;
      });
      const wakesOn = async <T>(what: string, cause: () => Promise<T>): Promise<T> => {
        const before = wakes;
        const value = await cause();
        for (let tries = 0; wakes === before; tries += 1) {
          assert.ok(tries < 2_000, `nobody was woken when a run was ${what}`);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return value;
      };
      // The way from there to here may have to be made first.
      for (let number = 0; wakes === 0; number += 1) {
        await journal.create(newRun(`first${number}`));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await wakesOn('stored', () => journal.create(newRun('r1')));
      const first = present(await journal.claim({ ...ana, run: 'r1' }));
      await journal.release(first, { wakeInMs: null, seenSignals: 0, status: 'paused' });
      await wakesOn('told something', () => journal.signal('r1', control('c1')));
      const again = present(await journal.claim({ ...ana, run: 'r1' }));
      await wakesOn('given back', () => journal.release(again, { seenSignals: again.signals }));
      stop();
    },
  },
  {
    name: 'who watches all runs, or items of a part, is woken by what this journal and another one write',
    async run({ journal, open }) {
      const second = await open();
      const named: (string | undefined)[] = [];
      let wakes = 0;
      const stops = [
        second.watchRuns((run) => void named.push(run)),
        second.store.watch('pilotage:x', () => {
          wakes += 1;
        }),
      ];
      const item = (value: number): StoreWrite => ({ namespace: ['pilotage:x', 'acme'], key: 'k', value });
      // The way from there to here may have to be made first, so that it is done until it was heard.
      const until = async (what: string, holds: () => boolean, cause: () => Promise<unknown>): Promise<void> => {
        for (let tries = 0; !holds(); tries += 1) {
          assert.ok(tries < 200, `nobody was woken when ${what}`);
          await cause();
          for (let looks = 0; looks < 20 && !holds(); looks += 1)
            await new Promise((resolve) => setTimeout(resolve, 5));
        }
      };
      let number = 0;
      const create = (by: Journal): Promise<unknown> => by.create(newRun(`r${number++}`));
      const heard = (run: string): boolean => named.includes(run) || named.includes(undefined);
      const last = (): string => `r${number - 1}`;
      await until(
        'another journal stored a run',
        () => heard(last()),
        () => create(journal),
      );
      await until(
        'this journal stored a run',
        () => named.includes(last()),
        () => create(second),
      );
      wakes = 0;
      await until(
        'another journal wrote an item',
        () => wakes > 0,
        () => journal.store.write([item(1)]),
      );
      wakes = 0;
      await until(
        'this journal wrote an item',
        () => wakes > 0,
        () => second.store.writeIf(item(1), [item(1)]),
      );
      for (const stop of stops) stop();
    },
  },
  {
    name: 'a watcher is woken by what another journal on the same storage writes',
    async run({ journal, open }) {
      const second = await open();
      const claim = await createClaimed(second, 'r1');
      await nextWake(journal.watch.bind(journal, 'r1'), () => second.append(step(claim, 1)));
      assert.deepEqual(await sequence(journal, 'r1'), [1, 2]);
      await nextWake(journal.watch.bind(journal, 'r1'), () => second.signal('r1', control('c1')));
      assert.deepEqual(await messagesOf(journal, 'r1'), [control('c1')]);
      const other = await createClaimed(second, 'r2');
      const tells = [{ run: 'r1', message: watchMessage('w1') }];
      await nextWake(journal.watch.bind(journal, 'r1'), () => second.append(step(other, 1, { tells })));
      assert.deepEqual(await waiting(journal, 'r1'), ['c1', 'w1']);
    },
  },
];

async function nextWake(watch: (wake: () => void) => () => void, cause: () => unknown): Promise<void> {
  let stop = (): void => undefined;
  const woken = new Promise<void>((resolve) => {
    stop = watch(resolve);
  });
  // A watch keeps no process alive by itself.
  const alive = setInterval(() => undefined, 1_000);
  try {
    await cause();
    await woken;
  } finally {
    clearInterval(alive);
    stop();
  }
}
