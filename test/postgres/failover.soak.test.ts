/** A primary dies, and the standby that follows it takes its place, under the address that the primary had. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clock, PilotageError } from '#core';
import { appendAgain, type Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { createRuntime } from '#pilotage';
import { control, createClaimed, expectCode, newRun, sequence, step } from '#testing';
import { telling } from '../crash/telling.ts';
import { PostgresServer } from '../kit/postgres.ts';
import { TcpProxy } from '../kit/tcp-proxy.ts';
import { Acknowledged, Ledger, planner, result, STEPS, startAll } from './agents.ts';

const clock: Clock = { now: () => Date.now(), after: (delayMs, run) => stopped(setTimeout(run, delayMs)) };
const stopped = (timer: NodeJS.Timeout) => () => clearTimeout(timer);

describe('a primary with a standby', async () => {
  const primary = await PostgresServer.start();
  /** Between the two. */
  const link = await TcpProxy.start(primary.port);
  const standby = await primary.standby(link.port);
  /** The address that journals know. */
  const proxy = await TcpProxy.start(primary.port);
  const admin = async <Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query<Row>(text);
    await client.end();
    return rows;
  };
  const isFollowed = async (): Promise<void> => {
    const asked = `SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`;
    while ((await admin(primary.url, asked)).length === 0) await sleep(20);
  };
  beforeAll(isFollowed);
  afterAll(async () => {
    await Promise.all([proxy.close(), link.close()]);
    await Promise.all([primary.remove(), standby.remove()]);
  });

  it('does not acknowledge what the standby does not have, however long a statement may take', async () => {
    const pool = new pg.Pool({ connectionString: primary.url, statement_timeout: 500, query_timeout: 2_500 });
    const hasty = postgresJournal({ pool: pool.on('error', () => undefined) }, { schema: 'slow' });
    const journal = postgresJournal({ url: primary.url }, { schema: 'slow' });
    const claim = await createClaimed(journal, 'run');
    await createClaimed(journal, 'other');
    await hasty.get('run');
    link.mute();
    const [unheard] = await Promise.all([
      expectCode(hasty.append(step(claim, 1)), 'journal_unavailable'),
      expectCode(hasty.signal('other', control('c1')), 'journal_unavailable'),
    ]);
    link.unmute();
    await isFollowed();
    await appendAgain({ journal, clock }, step(claim, 1), unheard);
    expect(await sequence(journal, 'run')).toEqual([1, 2]);
    await Promise.all([journal.close(), hasty.close()]);
    await pool.end();
  });

  it('is told apart from the standby, whose URL is refused', async () => {
    const made = postgresJournal({ url: primary.url }, { schema: 'made' });
    await made.create(newRun('run'));
    await made.close();
    const refused = async (journal: Journal): Promise<void> => {
      const error = await expectCode(journal.create(newRun('other')), 'journal_unavailable');
      expect(error.message).toMatch(/standby.* Give the URL of the primary/);
      await journal.close();
    };
    for (const schema of ['made', 'not_made']) await refused(postgresJournal({ url: standby.url }, { schema }));
    const pool = new pg.Pool({ connectionString: standby.url });
    await refused(postgresJournal({ pool }, { schema: 'made' }));
    await pool.end();
  });

  it('gives its place to the standby: runs go on, and nothing acknowledged is lost or done twice', async () => {
    const [ledger, acknowledged] = [new Ledger(), new Acknowledged()];
    const faults: unknown[] = [];
    const journal = postgresJournal({ url: proxy.url });
    const runtime = createRuntime({
      planner,
      tools: [...ledger.tools],
      journal: telling(journal, (entry, run) => acknowledged.add(entry, run)),
      onFault: (error) => void faults.push(error),
    });
    const watching = postgresJournal({ url: proxy.url });
    const stop = watching.watch('run-0', () => undefined);
    const runs = await startAll(runtime, 12);
    await watching.read('run-0');
    await ledger.reached(30);
    await primary.kill();
    // Somebody is too early: what it reads may be old.
    proxy.record();
    proxy.leadTo(standby.port);
    const early = postgresJournal({ url: proxy.url });
    expect((await expectCode(early.read('run-0'), 'journal_unavailable')).message).toMatch(/standby/);
    while (!proxy.played('up').includes('LISTEN')) await sleep(5);
    await admin(standby.url, 'SELECT pg_promote()');
    for (const run of runs) {
      expect(await result(runtime, run)).toMatchObject({ status: 'finished', payload: `done ${STEPS}` });
    }
    expect(ledger.repeated).toEqual([]);
    expect(ledger.done.size).toBe(12 * STEPS);
    expect(await acknowledged.lost(journal)).toEqual([]);
    expect(faults.filter((fault) => !PilotageError.is(fault, 'journal_unavailable'))).toEqual([]);
    stop();
    await runtime.close();
    await Promise.all([journal.close(), watching.close(), early.close()]);
    const ours = `SELECT FROM pg_stat_activity WHERE application_name = 'pilotage'`;
    while ((await admin(standby.url, ours)).length > 0) await sleep(5);
  });
});
