/** Appends of many runs of one process, of which one cannot go on. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { createClaimed, step } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';
import { asAdmin } from '../kit/roles.ts';
import { until } from '../kit/waiting.ts';

it('a run whose row somebody holds does not hold up the others', async () => {
  const url = await postgresUrl();
  const schema = `appends_${crypto.randomUUID().slice(0, 8)}`;
  const journal = postgresJournal({ url }, { schema });
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  onTestFinished(async () => {
    await holder.end();
    await journal.close();
  });
  const [held, free] = [await createClaimed(journal, 'held'), await createClaimed(journal, 'free')];
  await holder.query(`BEGIN; SELECT FROM ${schema}.runs WHERE id = 'held' FOR UPDATE`);
  let isWritten = false;
  const waiting = Promise.resolve(journal.append(step(held, 1))).then(() => {
    isWritten = true;
  });
  const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`;
  await until(async () => (await asAdmin(url, waits)).length > 0);
  for (let expected = 1; expected <= 3; expected += 1) await journal.append(step(free, expected));
  expect(isWritten).toBe(false);
  await holder.query('COMMIT');
  await waiting;
  expect((await journal.read('held')).length).toBe(2);
});
