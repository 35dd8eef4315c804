/** `pilotage work`: processes that share a journal, die, are stopped, and lose the journal for a while. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { PostgresServer } from '../kit/postgres.ts';
import { until } from '../kit/waiting.ts';
import type { Folder } from './command.ts';
import { due, type Fact, heldIn, samplesIn, startWorker, untilTrue, type Working, workFolder } from './working.ts';

const running: Working[] = [];
afterEach(async () => {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.splice(0).map(({ done }) => done));
});

function worker(folder: Folder, journal: string, ...args: string[]): Working {
  const started = startWorker(folder, journal, ...args);
  running.push(started);
  return started;
}

const runsOf = (facts: readonly Fact[]): string[] => facts.map(({ run = '' }) => run).sort();

let databases = 0;

describe('a worker', async () => {
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());

  const ofSqlite = async ({ path }: Folder): Promise<string> => join(path, 'runs.db');
  const ofPostgres = async (): Promise<string> => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    databases += 1;
    await client.query(`CREATE DATABASE work_${databases}`);
    await client.end();
    return server.url.replace(/postgres$/, `work_${databases}`);
  };

  describe.each([
    ['SQLite', ofSqlite],
    ['Postgres', ofPostgres],
  ] as const)('on %s', (_, place) => {
    it('shares the queue with another one: every run is carried out once', async () => {
      const folder = workFolder();
      const journal = await place(folder);
      const runs = await due(folder, journal, 'hold', 4);
      const workers = [worker(folder, journal, '--concurrency', '2'), worker(folder, journal, '--concurrency', '2')];
      const claimed = (await Promise.all(workers.map((each) => each.many('run_claimed', 2)))).flat();
      expect(runsOf(claimed)).toEqual([...runs].sort());
      const later = await due(folder, journal, 'quick', 6);
      folder.write('go', '');
      await untilTrue(() => workers.flatMap((each) => each.facts('run_ended')).length === 10);
      const ended = workers.flatMap((each) => each.facts('run_ended'));
      expect(runsOf(ended)).toEqual([...runs, ...later].sort());
      expect(heldIn(folder)).toBe('begun\n'.repeat(4));
      expect(ended[0]).toMatchObject({ tenant: 'local', agent: 'first', status: 'finished' });
      expect(ended[0]?.['drivenMs']).toEqual(expect.any(Number));
    });

    it('finishes the runs of one that was killed', async () => {
      const folder = workFolder();
      const journal = await place(folder);
      const runs = await due(folder, journal, 'hold', 3);
      const one = worker(folder, journal);
      await one.many('run_claimed', 3);
      const other = worker(folder, journal);
      await other.first('ready');
      await untilTrue(() => heldIn(folder) === 'begun\n'.repeat(3));
      one.child.kill('SIGKILL');
      expect(runsOf(await other.many('run_claimed', 3))).toEqual([...runs].sort());
      folder.write('go', '');
      expect((await other.many('run_ended', 3)).map(({ status }) => status)).toEqual(Array(3).fill('finished'));
    });

    it('drains at a SIGTERM: the call that is under way ends, and another worker goes on behind it', async () => {
      const folder = workFolder();
      const journal = await place(folder);
      const [run = ''] = await due(folder, journal, 'hold');
      const one = worker(folder, journal, '--grace', '3600');
      await one.first('run_claimed');
      const other = worker(folder, journal);
      await other.first('ready');
      await untilTrue(() => heldIn(folder) === 'begun\n');
      one.child.kill('SIGTERM');
      expect(await one.first('draining')).toMatchObject({ signal: 'SIGTERM', live: 1, graceMs: 3_600_000 });
      expect(await one.get('/readyz')).toMatchObject({ status: 503, text: '{"ready":false,"reason":"draining"}\n' });
      expect(samplesIn((await one.get('/metrics')).text).get('pilotage_draining')).toBe(1);
      expect((await one.get('/healthz')).status).toBe(200);
      const [later = ''] = await due(folder, journal, 'quick');
      expect(await other.first('run_ended')).toMatchObject({ run: later });
      folder.write('go', '');
      expect((await one.done).code).toBe(0);
      expect(one.facts('run_let_go')).toMatchObject([{ run, status: 'given_back' }]);
      expect(one.facts().at(-1)).toMatchObject({ fact: 'drained' });
      expect(await other.many('run_ended', 2)).toMatchObject([{ run: later }, { run, status: 'finished' }]);
      expect(heldIn(folder)).toBe('begun\n');
    });
  });

  it('aborts what is under way when the grace is over, and gives it back', async () => {
    const folder = workFolder();
    const journal = await ofPostgres();
    const [run] = await due(folder, journal, 'hold');
    const one = worker(folder, journal, '--grace', '0.2');
    await untilTrue(() => one.facts('run_claimed').length === 1 && heldIn(folder) === 'begun\n');
    one.child.kill('SIGINT');
    expect((await one.done).code).toBe(0);
    expect(one.facts('run_let_go')).toMatchObject([{ run, status: 'given_back' }]);
    expect(heldIn(folder)).toBe('begun\naborted\n');
  });

  it('ends at a second signal', async () => {
    const folder = workFolder();
    const journal = await ofSqlite(folder);
    await due(folder, journal, 'hold');
    const one = worker(folder, journal, '--grace', '3600');
    await untilTrue(() => heldIn(folder) === 'begun\n');
    one.child.kill('SIGTERM');
    await one.first('draining');
    one.child.kill('SIGTERM');
    expect((await one.done).code).toBe(143);
    expect(one.facts('run_let_go')).toMatchObject([{ status: 'given_back' }]);
  });

  it('takes over runs of some agents only', async () => {
    const folder = workFolder();
    const journal = await ofSqlite(folder);
    const [others] = await due(folder, journal, 'quick', 1, 'first');
    const [own] = await due(folder, journal, 'quick', 1, 'second');
    const one = worker(folder, journal, '--agent', 'second');
    expect(await one.first('run_ended')).toMatchObject({ run: own, agent: 'second' });
    expect(await one.first('ready')).toMatchObject({ agents: ['second'], slots: 10 });
    const { stdout } = await folder.run(['list', '--journal', journal, '--status', 'pending', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ identity: { run: others } });
    const two = worker(folder, journal, '--agent', 'second', '--agent', 'first');
    expect(await two.first('run_ended')).toMatchObject({ run: others });
    expect(one.facts('run_claimed')).toHaveLength(1);
  });

  it('says whether it lives and is ready, and what it has done', async () => {
    const folder = workFolder();
    const journal = await ofPostgres();
    await due(folder, journal, 'hold');
    await due(folder, journal, 'quick', 2);
    const one = worker(folder, journal, '--concurrency', '7');
    await one.many('run_ended', 2);
    expect(await one.get('/healthz')).toMatchObject({ status: 200, text: '{"alive":true}\n' });
    expect(await one.get('/readyz?verbose')).toEqual({
      status: 200,
      type: 'application/json',
      text: '{"ready":true}\n',
    });
    const { type, text } = await one.get('/metrics');
    expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
    const samples = samplesIn(text);
    expect(Object.fromEntries(samples)).toMatchObject({
      pilotage_runs_live: 1,
      pilotage_slots: 7,
      pilotage_runs_claimed_total: 3,
      'pilotage_runs_ended_total{status="finished"}': 2,
      'pilotage_runs_ended_total{status="failed"}': 0,
      'pilotage_runs_let_go_total{reason="given_back"}': 0,
      pilotage_draining: 0,
      pilotage_journal_up: 1,
    });
    expect(samples.get('pilotage_journal_round_trip_seconds')).toBeGreaterThan(0);
    const page = readFileSync(join(import.meta.dirname, '../../docs/scaling.md'), 'utf8');
    const named = [...page.matchAll(/`(pilotage_[a-z_]+)/g)].map(([, name]) => name);
    const given = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect([...new Set(named)].sort()).toEqual(given.sort());
    expect((await one.get('/')).status).toBe(404);
    const { port } = await one.first('ready');
    expect((await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`http://127.0.0.1:${port}/readyz`, { method: 'HEAD' })).status).toBe(200);
  });

  it('waits for a database that is killed and started again, with a run under way, and goes on', async () => {
    const folder = workFolder();
    const journal = await ofPostgres();
    const [run] = await due(folder, journal, 'hold');
    const one = worker(folder, journal, '--agent', 'first');
    await untilTrue(() => heldIn(folder) === 'begun\n');
    await server.kill();
    expect(await one.first('journal_lost')).toMatchObject({ code: 'journal_unavailable' });
    expect(await one.get('/readyz')).toMatchObject({
      status: 503,
      text: expect.stringContaining('journal_unavailable'),
    });
    expect((await one.get('/healthz')).status).toBe(200);
    // One that is started meanwhile waits, too.
    const other = worker(folder, journal, '--agent', 'second');
    await other.first('journal_lost');
    await server.boot(['fsync=off', 'full_page_writes=off']);
    await one.first('journal_back');
    await other.first('ready');
    const [later] = await due(folder, journal, 'quick', 1, 'second');
    expect(await other.first('run_ended')).toMatchObject({ run: later });
    folder.write('go', '');
    expect(await one.first('run_ended')).toMatchObject({ run, status: 'finished' });
    expect((await one.get('/readyz')).status).toBe(200);
    for (const each of [one, other]) {
      expect([each.facts('journal_lost').length, each.facts('journal_back').length]).toEqual([1, 1]);
    }
  });

  it('that is stopped while the database is away ends all the same, and its run goes on elsewhere', async () => {
    const folder = workFolder();
    const journal = await ofPostgres();
    const [run] = await due(folder, journal, 'hold');
    const one = worker(folder, journal, '--grace', '0');
    await untilTrue(() => heldIn(folder) === 'begun\n');
    await server.kill();
    await one.first('journal_lost');
    one.child.kill('SIGTERM');
    expect((await one.done).code).toBe(143);
    expect(one.facts().at(-1)).toMatchObject({ fact: 'cut_short', runs: 1 });
    await server.boot(['fsync=off', 'full_page_writes=off']);
    folder.write('go', '');
    expect(await worker(folder, journal).first('run_ended')).toMatchObject({ run, status: 'finished' });
  });

  it('is not ready while its journal takes no writes, and takes runs when it does again', async () => {
    const folder = workFolder();
    const journal = await ofPostgres();
    const client = new pg.Client({ connectionString: journal });
    await client.connect();
    const one = worker(folder, journal, '--port', '0');
    await one.first('ready');
    const name = new URL(journal).pathname.slice(1);
    await client.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND pid <> pg_backend_pid()`;
    await client.query(cut);
    await until(async () => (await one.get('/readyz')).text.includes('journal_unavailable'));
    expect(samplesIn((await one.get('/metrics')).text).get('pilotage_journal_up')).toBe(0);
    await client.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
    await client.query(cut);
    await client.end();
    await until(async () => (await one.get('/readyz')).status === 200);
    expect(one.facts().map(({ fact }) => fact)).toEqual(
      expect.arrayContaining(['ready', 'journal_lost', 'journal_back']),
    );
    const [run] = await due(folder, journal, 'quick');
    expect(await one.first('run_ended')).toMatchObject({ run, status: 'finished' });
  });

  it('is not ready with a database user who may only read', async () => {
    const folder = workFolder();
    const journal = await ofPostgres();
    await due(folder, journal, 'quick');
    const client = new pg.Client({ connectionString: journal });
    await client.connect();
    await client.query('CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA pilotage TO reader');
    await client.query('GRANT SELECT ON ALL TABLES IN SCHEMA pilotage TO reader');
    await client.end();
    const one = worker(folder, journal.replace('postgres@', 'reader@'), '--port', '0');
    expect(await one.first('journal_lost')).toMatchObject({ code: 'journal_read_only' });
    expect(one.facts('ready')).toEqual([]);
  });

  it('that cannot begin says why, and ends', async () => {
    const folder = workFolder();
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as AddressInfo;
    const cases: [string[], number, string][] = [
      [['--port', `${port}`], 2, `Nothing can listen at port ${port} of 127.0.0.1 (EADDRINUSE)`],
      [['--journal', server.url.replace(/postgres$/, 'nowhere')], 2, 'Correct the URL of the journal'],
      [['--journal', 'mysql://host/name'], 2, '"mysql://host/name" cannot be the place of a journal'],
      [['--agent', 'nobody'], 2, 'This runtime has no agent "nobody", only first, second.'],
    ];
    for (const [args, code, message] of cases) {
      const finished = await folder.run(['work', ...args]);
      expect(finished).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(message) });
    }
    taken.close();
  });

  it.each([
    [['--port', 'http'], '--port takes a port from 1 to 65535, or 0 for any that is free'],
    [['--port', '65536'], '--port takes a port'],
    [['--host', '0.0.0.0'], '--host goes with --port'],
    [['--concurrency', '0'], '--concurrency takes a whole number from 1 up'],
    [['--agent', ' '], '--agent is empty'],
    [['--grace', 'long'], '--grace takes a number from 0 up'],
    [['--json'], "Unknown option '--json'"],
    [['now'], 'work takes no further words'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await workFolder().run(['work', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
