/** How a journal comes to separate its tenants, who may open it then, and how it stops. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { sqliteJournal } from '#journal/sqlite';
import { ana, claimFirst, expectCode, identity, newRun, startedEntry, step } from '#testing';
import { makeFolder } from '../cli/command.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { asAdmin, makeRole, roleName } from '../kit/roles.ts';
import { until } from '../kit/waiting.ts';
import { furnish, ours, separated, theirs } from './separated.ts';

describe('opening a journal with separated tenants', async () => {
  const admin = await postgresUrl();

  function open(
    connection: { url: string } | { pool: pg.Pool },
    options: Parameters<typeof postgresJournal>[1],
  ): Journal {
    const journal = postgresJournal(connection, options);
    onTestFinished(() => journal.close());
    return journal;
  }

  const schemaName = (): string => `rls_${crypto.randomUUID().slice(0, 8)}`;
  const idsOf = async (journal: Journal): Promise<string[]> =>
    (await journal.list({})).map(({ identity: { run } }) => run).sort();

  async function store(journal: Journal, tenant: string, run: string): Promise<void> {
    const id = identity(run, { tenant });
    await journal.create(newRun(run, { identity: id, entries: [startedEntry(id, { conversation: false })] }));
  }

  it('a role that no policy holds for is refused before anything is made', async () => {
    const schema = schemaName();
    const error = await expectCode(open({ url: admin }, { schema, rls: true }).list({}), 'invalid_config');
    expect(error.message).toContain('CREATE ROLE');
    expect(await asAdmin(admin, `SELECT to_regnamespace('${schema}') AS there`)).toEqual([{ there: null }]);
    const name = roleName();
    const url = await makeRole(admin, name, true);
    await asAdmin(admin, `ALTER ROLE ${name} BYPASSRLS`);
    await expectCode(open({ url }, { schema, rls: true }).list({}), 'invalid_config');
  });

  it('a tenant without rls, and names that are none, are refused', async () => {
    for (const options of [
      { tenant: 'acme' },
      { rls: false, tenant: 'acme' },
      { rls: true, tenant: '' },
      { rls: true, tenant: 'a\u0000' },
    ]) {
      expect(() => postgresJournal({ url: admin }, options)).toThrow('option tenant');
    }
  });

  it('is turned on for what is there, whoever opens it first, and off again', async () => {
    const [schema, url] = [schemaName(), await makeRole(admin, roleName(), true)];
    const before = open({ url }, { schema });
    for (const tenant of [ours, theirs]) await store(before, tenant, `${tenant}-1`);
    const claim = await claimFirst(before, ana);
    const journals = Array.from({ length: 4 }, () => open({ url }, { schema, rls: true, tenant: ours }));
    for (const found of await Promise.all(journals.map(idsOf))) expect(found).toEqual([`${ours}-1`]);
    expect(await idsOf(open({ url }, { schema, rls: true }))).toEqual([`${ours}-1`, `${theirs}-1`]);
    // Who was there before hears of it with the next statement, whether that reads or writes; who comes later, at once.
    const lost = await expectCode(before.list({}), 'invalid_config');
    expect(lost.message).toContain('rls: true');
    if (claim !== undefined) await expectCode(before.append(step(claim, 1)), 'invalid_config');
    await expectCode(store(before, ours, `${ours}-2`), 'invalid_config');
    const late = await expectCode(open({ url }, { schema }).list({}), 'invalid_config');
    expect(late.message).toContain(schema);
    await expectCode(open({ url }, { schema, migrate: false }).get('any'), 'invalid_config');
  });

  it('migrate: false makes no policies; pilotage migrate does, for the owner, and takes them away', async () => {
    const name = `rls_${crypto.randomUUID().slice(0, 8)}`;
    await asAdmin(admin, `CREATE DATABASE ${name}`);
    onTestFinished(async () => void (await asAdmin(admin, `DROP DATABASE ${name} WITH (FORCE)`)));
    const owner = Object.assign(new URL(admin), { pathname: `/${name}` }).href;
    const [role, folder] = [roleName(), makeFolder()];
    const url = await makeRole(owner, role);
    const migrate = async (...args: string[]) => folder.run(['migrate', ...args, '--journal', owner]);
    expect((await migrate()).code).toBe(0);
    await asAdmin(
      owner,
      `GRANT USAGE ON SCHEMA pilotage TO ${role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pilotage TO ${role}`,
    );
    const options = { rls: true, tenant: ours };
    const told = await expectCode(open({ url }, { ...options, migrate: false }).list({}), 'journal_older');
    expect(told.message).toContain('pilotage migrate --rls on');
    await expectCode(open({ url }, options).list({}), 'journal_older');
    expect((await migrate('--rls', 'on')).stdout).toMatch(/Tenants are separated by policies\.\n$/);
    await asAdmin(owner, `GRANT SELECT ON ALL TABLES IN SCHEMA pilotage TO ${role}`);
    const journal = open({ url }, { ...options, migrate: false });
    await store(journal, ours, 'r1');
    expect(await idsOf(journal)).toEqual(['r1']);
    await expectCode(store(journal, theirs, 'r2'), 'scope_mismatch');
    expect(JSON.parse((await migrate('--json')).stdout)).toMatchObject({ rls: true });
    // One table without its policy is a hole.
    await asAdmin(owner, 'DROP POLICY tenants_1 ON pilotage.stream_rows');
    await expectCode(open({ url }, { ...options, migrate: false }).list({}), 'journal_older');
    expect((await migrate('--rls', 'on')).code).toBe(0);
    expect(await idsOf(open({ url }, options))).toEqual(['r1']);
    expect(await folder.run(['list', '--journal', url])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('rls: true'),
    });
    expect(JSON.parse((await migrate('--rls', 'off', '--json')).stdout)).toMatchObject({ rls: false });
    expect((await folder.run(['list', '--journal', url])).stdout).toContain('r1');
    await expectCode(open({ url }, { ...options, migrate: false }).list({}), 'journal_older');
    expect((await migrate('--rls', 'maybe')).code).toBe(2);
    await sqliteJournal({ path: join(folder.path, 'a.db') }).close();
    expect((await folder.run(['migrate', '--rls', 'on', '--journal', 'a.db'])).code).toBe(2);
  });

  for (const way of ['a pool of the program', 'a transaction pooler'] as const) {
    it(`over ${way} each transaction says whose it is`, async () => {
      const place = await separated(admin);
      onTestFinished(() => place.close());
      const { url, schema } = place;
      // One connection, which goes from one tenant to the other.
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      onTestFinished(() => pool.end());
      const journals = [ours, theirs, undefined].map((tenant) => {
        const options = { schema, rls: true, ...(tenant === undefined ? {} : { tenant }) };
        return way === 'a transaction pooler'
          ? open({ url }, { ...options, transactionPooler: true, maxConnections: 1 })
          : open({ pool }, options);
      }) as [Journal, Journal, Journal];
      const [first, second, all] = journals;
      await Promise.all([furnish(first, ours), furnish(second, theirs)]);
      for (const [journal, tenant] of [
        [first, ours],
        [second, theirs],
      ] as const) {
        const names = ['due', 'keyed', 'parked', 'run'].map((run) => `${tenant}-${run}`);
        const [runs, waits] = await Promise.all([idsOf(journal), journal.waits.list({})]);
        expect([runs, waits.length]).toEqual([names, 1]);
      }
      expect((await all.list({})).length).toBe(8);
      await expectCode(store(first, theirs, 'wrong'), 'scope_mismatch');
      // The connection says nothing when the transaction is over.
      await expect(pool.query(`SELECT * FROM ${schema}.runs`)).rejects.toThrow('does not say whose it wants');
    });
  }

  it('whoever listens hears that something has happened, and no names', async () => {
    const place = await separated(admin);
    onTestFinished(() => place.close());
    const listener = new pg.Client({ connectionString: place.url });
    await listener.connect();
    onTestFinished(() => listener.end());
    const digest = createHash('sha256').update(place.schema).digest('hex').slice(0, 16);
    await listener.query(`LISTEN pilotage_${digest}`);
    const heard: string[] = [];
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''));
    const [journal, other] = [place.open(ours), place.open()];
    await journal.list({});
    let wakes = 0;
    const wake = (): void => {
      wakes += 1;
    };
    onTestFinished(other.watch(`${ours}-run`, wake));
    onTestFinished(other.watchSession({ tenant: ours, user: 'ana', session: 's1' }, wake));
    await furnish(journal, ours);
    await until(() => wakes >= 2 && heard.some((payload) => payload.length > 80));
    expect(heard.join('')).not.toMatch(/acme|ana|session/);
  });

  it('a tenant with odd letters is told apart from all others', async () => {
    const place = await separated(admin);
    onTestFinished(() => place.close());
    const odd = [`o'hara`, 'a/b', 'a', 'a%2Fb', 'ä"\\', '["a"', 'A', 'a ', '*', "~!()'_.-"];
    for (const tenant of odd) {
      const journal = place.open(tenant);
      const scope = { tenant, user: 'u', session: 's' };
      await journal.artifacts.put(scope, Uint8Array.of(1), { mime: 'a/b' });
      await journal.store.write([{ namespace: [tenant], key: 'k', value: tenant }]);
      await journal.store.write([{ namespace: ['pilotage:rules', tenant], key: 'k', value: tenant }]);
      await store(journal, tenant, `run of ${odd.indexOf(tenant)}`);
      expect((await journal.store.list({ namespace: [], limit: 99 })).map(({ value }) => value)).toEqual([tenant]);
      expect((await journal.artifacts.list(scope, 9)).total).toBe(1);
      expect((await idsOf(journal)).length).toBe(1);
      for (const other of odd) {
        if (other !== tenant) expect((await journal.artifacts.list({ ...scope, tenant: other }, 9)).total).toBe(0);
      }
    }
  });

  it('a database user of one tenant is that tenant, whatever it says', async () => {
    const place = await separated(admin);
    onTestFinished(() => place.close());
    const { schema } = place;
    const worker = place.open();
    await furnish(worker, theirs);
    await furnish(worker, ours);
    const role = roleName();
    const url = await makeRole(admin, role);
    await asAdmin(
      place.url,
      `GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role};
       INSERT INTO ${schema}.tenant_roles (role, tenant) VALUES ('${role}', '${ours}')`,
    );
    const told = await expectCode(open({ url }, { schema, rls: true }).list({}), 'invalid_config');
    expect(told.message).toContain(`tenant: "${ours}"`);
    await expectCode(open({ url }, { schema, rls: true, tenant: theirs }).list({}), 'invalid_config');
    expect((await open({ url }, { schema, rls: true, tenant: ours }).list({})).length).toBe(4);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    const tenants = async () => (await client.query(`SELECT DISTINCT tenant FROM ${schema}.runs`)).rows;
    const says = [
      `SET pilotage.tenant = '${theirs}'`,
      `SET pilotage.all_tenants = 'on'`,
      // An operator of its own, before that of the database.
      `CREATE SCHEMA IF NOT EXISTS ${role}`,
      `SET row_security = on`,
    ];
    for (const text of says) {
      await client.query(text).catch(() => undefined);
      expect(await tenants()).toEqual([{ tenant: ours }]);
    }
    for (const text of [
      `INSERT INTO ${schema}.tenant_roles VALUES ('someone', '${theirs}')`,
      `UPDATE ${schema}.tenant_roles SET tenant = '${theirs}'`,
      `DELETE FROM ${schema}.tenant_roles`,
      `UPDATE ${schema}.format SET oldest = 99`,
      `TRUNCATE ${schema}.tenant_roles`,
      `ALTER TABLE ${schema}.runs DISABLE ROW LEVEL SECURITY`,
      `DROP POLICY tenants_1 ON ${schema}.runs`,
      `CREATE OR REPLACE FUNCTION ${schema}.own_tenant() RETURNS text LANGUAGE sql AS 'SELECT ''${theirs}'''`,
      `SET ROLE ${new URL(place.url).username}`,
      `SET SESSION AUTHORIZATION ${new URL(place.url).username}`,
      `COPY ${schema}.runs TO STDOUT`,
    ]) {
      await client.query(text).catch(() => undefined);
      expect(await tenants(), text).toEqual([{ tenant: ours }]);
    }
    expect(await asAdmin(admin, `SELECT count(*)::int AS runs FROM ${schema}.runs`)).toEqual([{ runs: 8 }]);
    expect(await asAdmin(admin, `SELECT oldest FROM ${schema}.format`)).toEqual([{ oldest: 0 }]);
  });

  it('a worker of all goes on with a row that somebody else has just changed', async () => {
    const place = await separated(admin);
    const worker = place.open();
    const id = identity('r', { tenant: ours });
    const claim = await worker.create(newRun('r', { identity: id, entries: [startedEntry(id)], claim: ana }));
    const holder = new pg.Client({ connectionString: admin });
    await holder.connect();
    onTestFinished(async () => {
      await holder.end();
      await place.close();
    });
    await holder.query(`BEGIN; UPDATE ${place.schema}.runs SET updated_at = updated_at + 1`);
    const appended = worker.append(step(claim ?? { run: 'r', fence: 1 }, 1));
    const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${place.schema}%'`;
    await until(async () => (await asAdmin(admin, waits)).length > 0);
    await holder.query('COMMIT');
    await appended;
    expect((await worker.read('r')).length).toBe(2);
  });
});
