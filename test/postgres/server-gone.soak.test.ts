/** The server dies and comes back, has no connection left, or somebody holds what is wanted: runs go on by themselves. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { createRuntime, local, PilotageError } from '#pilotage';
import { createClaimed, expectCode, newRun, sequence, step } from '#testing';
import { telling } from '../crash/telling.ts';
import { bear } from '../kit/lives.ts';
import { PostgresServer } from '../kit/postgres.ts';
import { TcpProxy } from '../kit/tcp-proxy.ts';
import { Acknowledged, Ledger, planner, result, STEPS, start, startAll } from './agents.ts';

describe('a server', async () => {
  // What it acknowledges is on disk.
  const server = await PostgresServer.start();
  afterAll(() => server.remove());

  it('that is killed and comes back is waited for: runs end by themselves, and nothing is lost or done twice', async () => {
    const [ledger, acknowledged] = [new Ledger(), new Acknowledged()];
    const faults: unknown[] = [];
    const journal = postgresJournal({ url: server.url }, { schema: 'killed' });
    const runtime = createRuntime({
      planner,
      tools: [...ledger.tools],
      journal: telling(journal, (entry, run) => acknowledged.add(entry, run)),
      onFault: (error) => void faults.push(error),
    });
    const runs = await startAll(runtime, 12);
    for (const calls of [10, 45, 80]) {
      await ledger.reached(calls);
      await server.kill();
      await server.boot();
    }
    for (const run of runs) {
      expect(await result(runtime, run)).toMatchObject({ status: 'finished', payload: `done ${STEPS}` });
    }
    expect(ledger.repeated).toEqual([]);
    expect(ledger.done.size).toBe(12 * STEPS);
    expect(acknowledged.count).toBeGreaterThan(12 * STEPS);
    expect(await acknowledged.lost(journal)).toEqual([]);
    expect(faults.filter((fault) => !PilotageError.is(fault, 'journal_unavailable'))).toEqual([]);
    await runtime.close();
    await journal.close();
  });

  it('that is not there yet is waited for', async () => {
    const ledger = new Ledger();
    const tools = [...ledger.tools];
    const first = createRuntime({ planner, tools, journal: server.url });
    await first.start('go', { identity: local('earlier', { run: 'earlier' }) });
    await first.run('earlier').result();
    await first.close();

    await server.kill();
    const runtime = createRuntime({ planner, tools, journal: server.url, onFault: () => undefined });
    runtime.work();
    await expectCode(runtime.run('earlier').result(), 'journal_unavailable');
    const started = start(runtime, 'later');
    await server.boot();
    await started;
    expect(await runtime.run('later').result()).toMatchObject({ status: 'finished' });
    expect(ledger.repeated).toEqual([]);
    await runtime.close();
  });

  it('that has few connections is shared by runs that want many', async () => {
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    await admin.query('CREATE ROLE few LOGIN CONNECTION LIMIT 3; GRANT CREATE ON DATABASE postgres TO few');
    const url = server.url.replace('postgres@', 'few@');
    const journal = postgresJournal({ url }, { schema: 'few' });
    const refused = await Promise.allSettled(Array.from({ length: 12 }, () => journal.list({})));
    const reasons = refused.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
    expect(reasons.join('\n')).toMatch(/no connection left .* smaller pools/);

    const ledger = new Ledger();
    const runtime = createRuntime({ planner, tools: [...ledger.tools], journal, onFault: () => undefined });
    for (const run of await startAll(runtime, 12)) {
      expect(await result(runtime, run)).toMatchObject({ status: 'finished' });
    }
    expect(ledger.repeated).toEqual([]);
    await runtime.close();
    await journal.close();
    await admin.end();
  });

  it('on which somebody holds a lock refuses what wants it in time, and takes it later', async () => {
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    const hasty = (times: pg.PoolConfig) =>
      new pg.Pool({ connectionString: server.url, ...times }).on('error', () => undefined);
    const [statement, lock] = [hasty({ statement_timeout: 400 }), hasty({ lock_timeout: 100, max: 1 })];
    const one = postgresJournal({ pool: statement }, { schema: 'held' });
    const other = postgresJournal({ pool: lock }, { schema: 'held' });
    const journal = postgresJournal({ url: server.url }, { schema: 'held' });
    const claim = await createClaimed(journal, 'run');
    const message = { id: 'c1', type: 'USER_MESSAGE', payload: { text: 'a' } } as const;

    await admin.query('BEGIN; SELECT * FROM held.runs FOR UPDATE');
    await expectCode(one.append(step(claim, 1)), 'journal_busy');
    await expectCode(one.release(claim, { seenSignals: 0, wakeInMs: 0 }), 'journal_busy');
    await expectCode(other.append(step(claim, 1)), 'journal_busy');
    await expectCode(other.signal('run', message), 'journal_busy');
    await admin.query('ROLLBACK');
    // Also before anything is looked at: one waits for the table, and the other for the lock of the session that the first one has.
    await admin.query('BEGIN; LOCK TABLE held.runs');
    const first = one.create(newRun('turn 1'));
    const waiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted`;
    while ((await admin.query(waiting)).rowCount === 0) await sleep(5);
    await expectCode(other.create(newRun('turn 2')), 'journal_busy');
    await admin.query('ROLLBACK');
    await first;

    await journal.append(step(claim, 1));
    await other.signal('run', message);
    await other.create(newRun('turn 2'));
    expect(await sequence(journal, 'run')).toEqual([1, 2]);
    expect((await journal.inbox('run')).length).toBe(1);
    await Promise.all([one.close(), other.close(), journal.close()]);
    await Promise.all([statement.end(), lock.end(), admin.end()]);
  });

  it('cuts off a process that is frozen in a transaction: others go on after a few seconds', async () => {
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    const journal = postgresJournal({ url: server.url }, { schema: 'frozen' });
    const claim = await createClaimed(journal, 'run');
    const proxy = await TcpProxy.start(server.port);
    const said: string[] = [];
    const args = [proxy.url, 'frozen'];
    const born = bear({ program: join(import.meta.dirname, 'frozen-child.ts'), folder: tmpdir(), args }, (line) =>
      said.push(line),
    );
    let isFrozen = false;
    proxy.answer((bytes) => {
      // It is frozen before it gets the answer to the statement with which it takes hold of the run.
      if (!isFrozen && bytes.includes('FOR UPDATE')) isFrozen = born.child.kill('SIGSTOP');
      return undefined;
    });
    const holders = `SELECT FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%FOR UPDATE%'`;
    while ((await admin.query(holders)).rowCount === 0) await sleep(5);

    await journal.append(step(claim, 1));
    expect((await admin.query(holders)).rowCount).toBe(0);
    born.child.kill('SIGCONT');
    expect(await born.end).toBe(false);
    expect(said).toEqual(['journal_unavailable', 'true']);
    expect((await journal.inbox('run')).length).toBe(1);
    await proxy.close();
    await journal.close();
    await admin.end();
  });
});
