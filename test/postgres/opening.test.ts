/** Many processes come to an empty database at the same moment. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { ana, expectCode, newRun } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';
import { asAdmin } from '../kit/roles.ts';
import { until } from '../kit/waiting.ts';
import { separated } from './separated.ts';

it('makes the tables once, whoever comes first', async () => {
  const url = await postgresUrl();
  for (let round = 1; round <= 2; round += 1) {
    const schema = `opening_${round}_${crypto.randomUUID().slice(0, 8)}`;
    const journals = Array.from({ length: 8 }, () => postgresJournal({ url }, { schema, maxConnections: 2 }));
    await Promise.all(journals.map((journal, index) => journal.create(newRun(`run-${index}`))));
    for (const journal of journals) expect((await journal.list({})).length).toBe(8);
    await Promise.all(journals.map((journal) => journal.close()));
  }
});

it('names of schemas that Postgres keeps for itself are refused, and tables that were changed by hand are told of', async () => {
  const url = await postgresUrl();
  expect(() => postgresJournal({ url }, { schema: 'pg_mine' })).toThrow('does not begin with pg_');
  const schema = `changed_${crypto.randomUUID().slice(0, 8)}`;
  const journal = postgresJournal({ url }, { schema });
  onTestFinished(() => journal.close());
  await journal.create(newRun('r'));
  await asAdmin(url, `ALTER TABLE ${schema}.runs RENAME COLUMN fence TO barrier`);
  const error = await expectCode(journal.claim({ ...ana, run: 'r' }), 'journal_corrupt');
  expect(error.message).toContain('column');
});

it('what is brought to the present format while workers are in its way is tried again', async () => {
  const url = await postgresUrl();
  const { open, close, schema } = await separated(url);
  onTestFinished(close);
  await open().create(newRun('r'));
  const newer = ['runs_tenant', 'runs_user', 'open_waits_tenant'].map((name) => `${schema}.${name}`);
  await asAdmin(url, `DROP TABLE ${schema}.readers, ${schema}.passing; DROP INDEX ${newer}`);
  await asAdmin(url, `UPDATE ${schema}.format SET version = 1`);
  // A worker of the older version writes entries, and comes to a run that the newer one has taken hold of.
  const worker = new pg.Client({ connectionString: url });
  await worker.connect();
  onTestFinished(() => worker.end());
  await worker.query(`BEGIN; SET LOCAL deadlock_timeout = '60s'; LOCK TABLE ${schema}.entries IN ROW EXCLUSIVE MODE`);
  const found = open().list({});
  const waiting = `SELECT FROM pg_locks WHERE relation = '${schema}.entries'::regclass AND NOT granted`;
  await until(async () => (await worker.query(waiting)).rowCount === 1);
  expect((await worker.query(`SELECT id FROM ${schema}.runs`)).rows).toEqual([{ id: 'r' }]);
  await worker.query('COMMIT');
  expect((await found).length).toBe(1);
});
