/** What every driver must do, one case each. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DriverCase, ends, met, start } from './kit.ts';

const SOON_MS = 150;

export const driverCases: readonly DriverCase[] = [
  {
    name: 'a run that one process starts is carried out, and it may be another that does',
    async run(bench) {
      const engine = await bench.engine();
      const client = await bench.process(engine, false);
      await bench.process(engine, true);
      const runs = await Promise.all(Array.from({ length: 12 }, () => start(client, 'step step step')));
      for (const run of runs) await ends(bench, client, run);
      assert.equal(bench.done.size, 36);
    },
  },
  {
    name: 'wakes that repeat change nothing',
    async run(bench) {
      const engine = await bench.engine();
      const client = await bench.process(engine, false, async (wake, ...about) => {
        await Promise.all([wake(...about), wake(...about), wake(...about)]);
      });
      const worker = await bench.process(engine, true);
      const run = await start(client, 'step sleep step');
      await ends(bench, client, run);
      assert.equal(bench.done.size, 3);
      if (client.driver === undefined) return;
      // Also those for a run that has ended, or never was.
      await client.driver.wake(run);
      await client.driver.wake('nobody');
      await met(() => worker.said.some(([of, { next }]) => of === 'nobody' && next === 'done'));
    },
  },
  {
    name: 'wakes that come late are not too late',
    async run(bench) {
      const engine = await bench.engine();
      const client = await bench.process(engine, false, async (wake, ...about) => {
        await sleep(2 * SOON_MS);
        await wake(...about);
      });
      await bench.process(engine, true);
      await ends(bench, client, await start(client, 'step step'));
    },
  },
  {
    name: 'wakes that get lost are made up for: a sweep finds the runs',
    async run(bench) {
      const engine = await bench.engine();
      const client = await bench.process(engine, false, async () => undefined);
      await bench.process(engine, true, async () => undefined);
      await ends(bench, client, await start(client, 'step step'));
    },
  },
  {
    name: 'when no wake is taken, those who work carry the runs out by themselves, also their timers',
    async run(bench) {
      const engine = await bench.engine();
      const refuses = async (): Promise<never> => Promise.reject(new Error('The engine is gone.'));
      const client = await bench.process(engine, false, refuses);
      await bench.process(engine, true, refuses);
      const runs = await Promise.all([start(client, 'step sleep step'), start(client, 'step step')]);
      for (const run of runs) await ends(bench, client, run);
    },
  },
  {
    name: 'what a run is told during a slice is heard',
    async run(bench) {
      const engine = await bench.engine();
      const client = await bench.process(engine, false);
      await bench.process(engine, true);
      const release = bench.hold();
      const run = await start(client, 'step hold');
      await met(() => bench.done.size === 1);
      await client.runtime.run(run).send('And the garden?');
      release();
      await ends(bench, client, run, 'And the garden?');
    },
  },
  {
    name: 'an answer makes a run go on that waits for nothing else',
    async run(bench) {
      const engine = await bench.engine();
      const client = await bench.process(engine, false);
      await bench.process(engine, true);
      const run = await start(client, 'step ask step');
      const asked = await client.runtime.run(run).result();
      assert.equal(asked.status, 'paused');
      const [pause] = 'pauses' in asked ? asked.pauses : [];
      assert.ok(pause !== undefined);
      await client.runtime.run(run).answer(pause.token, { kind: 'answer', value: 'Yes.' });
      await ends(bench, client, run);
    },
  },
  {
    name: 'a timer makes a run go on, and not before its time',
    async run(bench) {
      const engine = await bench.engine();
      const client = await bench.process(engine, false);
      await bench.process(engine, true);
      const before = Date.now();
      const runs = await Promise.all(Array.from({ length: 5 }, () => start(client, 'sleep step')));
      for (const run of runs) await ends(bench, client, run);
      assert.ok(Date.now() - before >= 400);
    },
  },
  {
    name: 'a turn of a session that waits, and is cancelled, ends before its turn has come',
    async run(bench) {
      const process = await bench.process(await bench.engine(), true);
      const release = bench.hold();
      const session = process.runtime.session('talk');
      const first = await session.send('hold');
      const second = await session.send('step');
      await process.runtime.run(second.turn).cancel();
      await met(async () => (await bench.journal.get(second.turn))?.status === 'cancelled');
      assert.deepEqual(
        (await session.turns()).map(({ turn, status }) => [turn, status === 'cancelled']),
        [
          [first.turn, false],
          [second.turn, true],
        ],
      );
      release();
      await ends(bench, process, first.turn);
    },
  },
  {
    name: 'of two drivers on one journal, one has the run, and the other is told that it is busy',
    async run(bench) {
      const [one, other] = [await bench.engine(), await bench.engine()];
      const [first, second] = [await bench.process(one, true), await bench.process(other, true)];
      const release = bench.hold();
      const run = await start(first, 'step hold step');
      await met(async () => bench.done.size === 1 && (await bench.journal.get(run))?.lease !== undefined);
      if (second.driver !== undefined) {
        await second.driver.wake(run);
        await met(() => second.said.some(([of, { next }]) => of === run && next === 'busy'));
      }
      release();
      await ends(bench, second, run);
    },
  },
  {
    name: 'stop drains: what is under way ends there, and others go on with the rest',
    async run(bench) {
      const engine = await bench.engine();
      const leaving = await bench.process(engine, true);
      const release = bench.hold();
      const run = await start(leaving, 'step hold step');
      await met(async () => bench.done.size === 1 && (await bench.journal.get(run))?.lease !== undefined);
      let isClosed = false;
      const closed = leaving.runtime.close({ graceMs: 60_000 }).then(() => {
        isClosed = true;
      });
      await sleep(SOON_MS);
      assert.equal(isClosed, false);
      const staying = await bench.process(engine, true);
      release();
      await closed;
      assert.equal(leaving.under(), 0);
      await ends(bench, staying, run);
    },
  },
];
