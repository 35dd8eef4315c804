/** Formats of a Postgres journal: commands that bring it to the present one, and processes of two versions side by side. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { createRuntime, local } from '#pilotage';
import { ana, claimFirst, expectCode, identity, newRun, startedEntry, step } from '#testing';
import { makeFolder } from '../cli/command.ts';
import { postgresUrl } from '../kit/postgres.ts';

describe('formats of a Postgres journal', async () => {
  const server = await postgresUrl();

  /** A database of its own. */
  async function database(): Promise<{ readonly url: string; sql(text: string): Promise<pg.QueryResult> }> {
    const name = `formats_${crypto.randomUUID().slice(0, 8)}`;
    const ask = async (url: string, text: string): Promise<pg.QueryResult> => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      return client.query(text).finally(() => client.end());
    };
    await ask(server, `CREATE DATABASE ${name}`);
    onTestFinished(async () => void (await ask(server, `DROP DATABASE ${name} WITH (FORCE)`)));
    const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
    return { url, sql: (text) => ask(url, text) };
  }

  function open(url: string): Journal {
    const journal = postgresJournal({ url });
    onTestFinished(() => journal.close());
    return journal;
  }

  async function formatOf(sql: (text: string) => Promise<pg.QueryResult>): Promise<number> {
    return Number((await sql('SELECT version FROM pilotage.format')).rows[0]?.version);
  }

  it('pilotage migrate makes the tables or brings them to the present format; commands that only look do neither', async () => {
    const { url, sql } = await database();
    const folder = makeFolder();
    const run = (...args: string[]) => folder.run([...args, '--journal', url]);
    const older = { code: 4, stderr: expect.stringMatching(/pilotage migrate.*journal_older/) };
    expect(await run('list')).toMatchObject(older);
    expect((await sql("SELECT to_regnamespace('pilotage') AS there")).rows).toEqual([{ there: null }]);
    const made = await run('migrate');
    const format = await formatOf(sql);
    expect(made).toEqual({ code: 0, stdout: `The journal was made, in format ${format}.\n`, stderr: '' });
    expect(await run('list')).toMatchObject({ code: 0, stderr: 'No runs.\n' });
    expect((await run('migrate', '--json')).stdout).toBe(`{"from":${format},"to":${format}}\n`);
    await sql('UPDATE pilotage.format SET version = version - 1');
    expect(await run('list')).toMatchObject(older);
    expect(await run('prune', '--older-than', '1d', '--dry-run')).toMatchObject(older);
  });

  it('a URL may name the schema: all commands know it, and so does a runtime', async () => {
    const { url, sql } = await database();
    const place = `${url}?application_name=orders&schema=agents%20of%20us`;
    const folder = makeFolder();
    expect(await folder.run(['migrate', '--journal', place])).toMatchObject({ code: 0 });
    const runtime = createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), journal: place });
    await runtime
      .start('go', { identity: local('ana', { run: 'run' }), conversation: false })
      .then((run) => run.result());
    const { rows } = await sql('SELECT application_name FROM pg_stat_activity WHERE datname = current_database()');
    expect(rows.map(({ application_name: name }) => name)).toContain('orders');
    await runtime.close();
    await sql(`UPDATE "agents of us".runs SET updated_at = 1, lease_until = 0`);
    const env = { PILOTAGE_JOURNAL: place };
    expect((await folder.run(['list'], env)).stdout).toContain('run');
    expect((await folder.run(['prune', '--older-than', '1d'], env)).stdout).toBe('Deleted 1 run.\n');
    expect((await sql("SELECT to_regnamespace('pilotage') AS there")).rows).toEqual([{ there: null }]);
    const wrong = await folder.run(['list', '--journal', `${url}?schema=a&transactionPooler=1`]);
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/transactionPooler=…, with true or false; here it is "1"/),
    });
    const twice = () => postgresJournal({ url: `${url}?schema=a&schema=b` });
    expect(twice).toThrow(/schema=….* here it stands there 2 times/);
    for (const name of ['shema', 'Schema', 'tenants'])
      expect(() => postgresJournal({ url: `${url}?${name}=a` })).toThrow(/did you mean (schema|tenant)=/);
    const forPg = postgresJournal({ url: `${url}?ssl=false&application_name=mine&user=postgres` });
    await forPg.close();
    expect(() => postgresJournal({ url: `${url}?maxConnections=0` })).toThrow(/whole number from 1 up/);
    const beside = postgresJournal({ url: `${url}?schema=agents%20of%20us` }, { schema: 'another' });
    expect(await beside.list({})).toEqual([]);
    await beside.close();
    expect((await sql("SELECT to_regnamespace('another') IS NOT NULL AS there")).rows).toEqual([{ there: true }]);
  });

  it('pilotage prune works on a database', async () => {
    const { url, sql } = await database();
    const journal = open(url);
    const id = identity('r1');
    const entries = [startedEntry(id, { conversation: false })];
    const claim = await journal.create(newRun('r1', { entries, claim: ana }));
    if (claim !== undefined) await journal.append(step(claim, 1, { status: 'finished' }));
    const day = 86_400_000;
    await sql(`UPDATE pilotage.runs SET updated_at = updated_at - ${2 * day}, lease_until = 0`);
    const folder = makeFolder();
    const prune = async (...args: string[]) => (await folder.run(['prune', ...args, '--journal', url])).stdout;
    expect(await prune('--older-than', '3d')).toBe('Deleted 0 runs.\n');
    expect(await prune('--older-than', '1d', '--dry-run')).toBe('Would delete 1 run.\n');
    expect(await prune('--older-than', '1d')).toBe('Deleted 1 run.\n');
    expect((await sql('SELECT count(*) AS entries FROM pilotage.entries')).rows).toEqual([{ entries: '0' }]);
  });

  it('a worker of an older version goes on beside a newer one, and is refused when the newer format is not for it', async () => {
    const { url, sql } = await database();
    const before = open(url);
    const runs = Array.from({ length: 8 }, (_, index) => `r${index}`);
    for (const run of runs) {
      const own = identity(run);
      await before.create(newRun(run, { entries: [startedEntry(own, { conversation: false })] }));
    }
    const format = await formatOf(sql);
    // What the next version would do: it adds, and takes nothing away.
    await sql(`ALTER TABLE pilotage.runs ADD COLUMN later text; UPDATE pilotage.format SET version = ${format + 1}`);
    const after = open(url);
    const done: string[] = [];
    for (let number = 0; ; number += 1) {
      const [journal, lease] = number % 2 === 0 ? [before, ana] : [after, { ...ana, owner: 'ben' }];
      const claim = await claimFirst(journal, lease);
      if (claim === undefined) break;
      await journal.append(step(claim, 1, { status: 'finished' }));
      done.push(claim.run);
    }
    expect(done).toEqual(runs);
    expect(await formatOf(sql)).toBe(format + 1);
    const folder = makeFolder();
    const migrate = () => folder.run(['migrate', '--journal', url]);
    expect((await migrate()).stdout).toBe(`The journal has format ${format + 1}. Nothing was to be done.\n`);
    await sql(`UPDATE pilotage.format SET version = ${format + 2}, oldest = ${format + 2}`);
    const error = await expectCode(open(url).list({}), 'journal_newer');
    expect(error.data).toMatchObject({ found: format + 2, supported: format });
    const newer = { code: 4, stderr: expect.stringMatching(/Upgrade Pilotage.*journal_newer/) };
    expect(await migrate()).toMatchObject(newer);
    expect(await folder.run(['list', '--journal', url])).toMatchObject(newer);
    expect(await formatOf(sql)).toBe(format + 2);
  });
});
