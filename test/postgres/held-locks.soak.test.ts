/** A lock that nobody lets go of: what waits for it is given up by the server, and leaves no connection behind. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { createClaimed, expectCode, newRun, sequence, step } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';

it('refuses what waits for a lock for a quarter of a minute', async () => {
  const url = await postgresUrl();
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const journal = postgresJournal({ url }, { schema: 'stuck' });
  const claim = await createClaimed(journal, 'run');
  await admin.query('BEGIN; LOCK TABLE stuck.runs');
  await Promise.all([
    expectCode(journal.append(step(claim, 1)), 'journal_busy'),
    expectCode(journal.renew([claim], 1_000), 'journal_busy'),
    expectCode(journal.create(newRun('turn')), 'journal_busy'),
    expectCode(journal.read('run'), 'journal_busy'),
  ]);
  const waiting = `SELECT FROM pg_stat_activity WHERE application_name = 'pilotage' AND state <> 'idle'`;
  while ((await admin.query(waiting)).rowCount !== 0) await sleep(5);
  await admin.query('ROLLBACK');
  await journal.append(step(claim, 1));
  await journal.create(newRun('turn'));
  expect(await sequence(journal, 'run')).toEqual([1, 2]);
  await journal.close();
  await admin.end();
});
