/** Behind a pooler that gives each transaction another connection. What every journal must do there: `pooler-conformance.soak.test.ts`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import type { StreamRow } from '#core';
import type { Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { createRuntime, local, PilotageError } from '#pilotage';
import { loadConfig, readyConfig } from '#pilotage/config';
import { newRun } from '#testing';
import { makeFolder } from '../cli/command.ts';
import { startWorker } from '../cli/working.ts';
import { KEPT, PgBouncer, pgbouncerVersion } from '../kit/pgbouncer.ts';
import { PostgresServer } from '../kit/postgres.ts';

/** Each run says rows, waits for a signal, and makes a payment that somebody has to approve. */
const CONFIG = `
import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const begun = import.meta.dirname + '/begun.txt';
const tool = (name, effect, execute, more) => ({ name, description: name, inputSchema: { type: 'object' }, effect, execute, ...more });
const told = tool('told', 'keyed', async (_, { stream, event }) => {
  appendFileSync(begun, process.pid + '\\n');
  // No process has all of them.
  while (new Set(readFileSync(begun, 'utf8').trimEnd().split('\\n')).size < 2) await sleep(20);
  for (const row of [1, 2, 3]) await stream('rows').write(row);
  return event({ key: 'paid', schema: { type: 'number' } });
});
const pay = tool('pay', 'once', async (_, { idempotencyKey }) => {
  appendFileSync(import.meta.dirname + '/paid.txt', idempotencyKey + '\\n');
  return 'paid';
}, { needsApproval: true });
const ORDER = ['told', 'pay'];

export default {
  agents: [{
    name: 'payer',
    planner: ({ trajectory: { count } }) =>
      count < 2 ? { kind: 'call_tool', tool: ORDER[count], args: {} } : { kind: 'finish', reason: 'goal', payload: 'done' },
    tools: [told, pay],
  }],
  leaseMs: 2_000,
};
`;
const RUNS = 8;

describe.skipIf(pgbouncerVersion === undefined)('PgBouncer in transaction mode', async () => {
  if (pgbouncerVersion === undefined) return;
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());

  describe.each(KEPT)('with max_prepared_statements %s', async (kept) => {
    const bouncer = await PgBouncer.start(server.port, kept === undefined ? [] : [`max_prepared_statements = ${kept}`]);
    afterAll(() => bouncer.remove());

    it('has two workers share runs with streams, signals and approvals, also while it is killed and comes back', async () => {
      const folder = makeFolder();
      folder.write('pilotage.config.ts', CONFIG);
      const url = `${bouncer.url}?transactionPooler=true&schema=workers${kept ?? ''}`;
      const { runtime: options } = await readyConfig(await loadConfig(join(folder.path, 'pilotage.config.ts')));
      const runtime = createRuntime({
        ...options,
        journal: url,
        goesOn: false,
        maxLiveRuns: 1,
        onFault: () => undefined,
      });
      await runtime.list({ limit: 1 });
      const workers = [1, 2].map(() => startWorker(folder, url, '--concurrency', String(RUNS / 2)));
      onTestFinished(async () => {
        for (const { child } of workers) child.kill('SIGKILL');
        await Promise.all([...workers.map(({ done }) => done), runtime.close()]);
      });
      await Promise.all(workers.map((worker) => worker.first('ready')));
      const runs = Array.from({ length: RUNS }, (_, number) => `run-${number}`);
      for (const run of runs) {
        await runtime.start('go', { agent: 'payer', identity: local('ana', { run }), at: Date.now() + 300 });
      }
      const waitFor = async (what: 'event' | 'answer'): Promise<void> => {
        while ((await again(() => runtime.waiting())).filter((wait) => wait.for === what).length < RUNS)
          await sleep(20);
      };
      await waitFor('event');
      await bouncer.kill();
      const signalled = again(() => runtime.signal('paid', 5, { id: 'once', tenant: 'local' }));
      await bouncer.boot();
      expect((await signalled).runs.length + (await runtime.signal('paid', 5, { id: 'once' })).runs.length).toBe(RUNS);
      await waitFor('answer');
      const rows: StreamRow[] = [];
      for await (const row of runtime.run('run-0').stream('rows', { follow: false })) rows.push(row);
      // The call's function has run from its start again, behind its wait.
      expect(rows.map(({ index, value }) => [index, value])).toEqual(
        [1, 2, 3, 1, 2, 3].map((row, at) => [at + 1, row]),
      );
      await Promise.all([
        ...runs.map((run) => again(() => runtime.run(run).approve())),
        bouncer.kill().then(() => bouncer.boot()),
      ]);
      for (const run of runs) {
        expect(await again(() => runtime.run(run).result())).toMatchObject({ status: 'finished', payload: 'done' });
      }
      const paid = readFileSync(join(folder.path, 'paid.txt'), 'utf8').trimEnd().split('\n');
      expect(new Set(paid).size).toBe(RUNS);
      expect(paid.length).toBe(RUNS);
    });

    it('says to those who have not said that it is there what to say', async () => {
      const warned: Error[] = [];
      const hear = (warning: Error): void => void warned.push(warning);
      process.on('warning', hear);
      const journal = postgresJournal({ url: `${bouncer.url}?schema=unsaid${kept ?? ''}` }, { maxConnections: 8 });
      journal.watchDue(() => undefined);
      // Nobody else wants a connection: the pooler gives it the same one again and again.
      while (warned.length === 0) await sleep(20);
      const refused: unknown[] = [];
      while (refused.length === 0 && kept !== 200) {
        const asked = await Promise.allSettled(Array.from({ length: 8 }, () => journal.list({ limit: 1 })));
        refused.push(...asked.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])));
      }
      process.off('warning', hear);
      expect(warned[0]?.message).toMatch(/hears no notifications.*transactionPooler=true/);
      const messages = refused.map((reason) =>
        PilotageError.is(reason, 'journal_unavailable') ? reason.message : String(reason),
      );
      expect(messages.filter((message) => !message.includes('?transactionPooler=true'))).toEqual([]);
      await journal.close();
    });
  });

  it('takes word from those behind it to those who reach the server and listen', async () => {
    const bouncer = await PgBouncer.start(server.port);
    const [behind, beside] = [`${bouncer.url}?transactionPooler=true`, server.url].map((url) =>
      postgresJournal({ url }, { schema: 'both', watchIntervalMs: 60_000 }),
    ) as [Journal, Journal];
    let wakes = 0;
    const stop = beside.watchDue(() => {
      wakes += 1;
    });
    for (let number = 0; wakes === 0; number += 1) {
      await behind.create(newRun(`run-${number}`));
      await sleep(20);
    }
    stop();
    await Promise.all([behind.close(), beside.close()]);
    await bouncer.remove();
  });
});

/** The pooler is away for a moment: nothing of that is lost, and whoever asks asks again. */
async function again<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!PilotageError.is(error, 'journal_unavailable')) throw error;
      await sleep(20);
    }
  }
}
