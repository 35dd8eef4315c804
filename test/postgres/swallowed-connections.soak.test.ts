/** The way to the server swallows all that is sent. Where it breaks: `cut-connections.soak.test.ts`. */
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { createClaimed, expectCode, newRun, sequence, step } from '#testing';
import { PostgresServer } from '../kit/postgres.ts';
import { TcpProxy } from '../kit/tcp-proxy.ts';

describe('a connection', async () => {
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());

  it('that swallows what is sent is given up in time, and the next one is used', async () => {
    const proxy = await TcpProxy.start(server.port);
    const times = { query_timeout: 1_000, connectionTimeoutMillis: 1_000 };
    const pool = new pg.Pool({ connectionString: proxy.url, max: 4, ...times });
    const journal = postgresJournal({ pool }, { schema: 'swallowed' });
    const direct = postgresJournal({ url: server.url }, { schema: 'swallowed' });
    const claim = await createClaimed(direct, 'run');
    await createClaimed(direct, 'other');
    await Promise.all([journal.get('run'), journal.get('other')]);

    proxy.mute();
    // One statement, a transaction, a question, and what finds no connection any more.
    await Promise.all([
      expectCode(journal.append(step(claim, 1)), 'journal_unavailable'),
      expectCode(
        journal.signal('other', { id: 'c1', type: 'USER_MESSAGE', payload: { text: 'a' } }),
        'journal_unavailable',
      ),
      expectCode(journal.read('run'), 'journal_unavailable'),
      expectCode(journal.renew([claim], 1_000), 'journal_unavailable'),
      expectCode(journal.create(newRun('third')), 'journal_unavailable'),
    ]);
    proxy.unmute();

    await journal.append(step(claim, 1));
    expect(await sequence(journal, 'run')).toEqual([1, 2]);
    await journal.create(newRun('third'));
    expect(await sequence(journal, 'third')).toEqual([1]);
    expect(pool.totalCount).toBeLessThanOrEqual(4);
    proxy.mute();
    await Promise.all([journal.close(), direct.close()]);
    await pool.end();
    await proxy.close();
  });

  it('that breaks or swallows what is sent when the journal is opened is told of, and the next operation opens it', async () => {
    const proxy = await TcpProxy.start(server.port);
    const times = { query_timeout: 1_000, connectionTimeoutMillis: 1_000 };
    // Somebody else makes tables, too, as long as it takes.
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    const hold = `SELECT pg_advisory_lock(${0x70696c6f74616765n})`;
    const places = ['to_regclass', 'pg_advisory_xact_lock', 'CREATE TABLE', 'UPDATE'];
    const failures = places.flatMap((text) => [
      { text, fail: () => proxy.cutAll() },
      { text, fail: () => proxy.mute() },
    ]);
    for (const [number, { text, fail }] of failures.entries()) {
      const pool = new pg.Pool({ connectionString: proxy.url, max: 2, ...times }).on('error', () => undefined);
      const journal = postgresJournal({ pool }, { schema: `opened_${number}` });
      if (text === 'pg_advisory_xact_lock') await other.query(hold);
      proxy.answer((bytes) => {
        if (!bytes.includes(text)) return undefined;
        proxy.answer(undefined);
        fail();
        return undefined;
      });
      await Promise.all([
        expectCode(journal.create(newRun('run')), 'journal_unavailable'),
        expectCode(journal.list({}), 'journal_unavailable'),
      ]);
      await other.query('SELECT pg_advisory_unlock_all()');
      proxy.unmute();
      await journal.create(newRun('run'));
      expect(await sequence(journal, 'run')).toEqual([1]);
      await journal.close();
      await pool.end();
    }
    await other.end();
    await proxy.close();
  });

  it('that is swallowed when the journal is closed does not hold it up', async () => {
    const proxy = await TcpProxy.start(server.port);
    const journal = postgresJournal({ url: proxy.url }, { schema: 'swallowed' });
    const stop = journal.watch('run', () => undefined);
    await Promise.all([journal.list({}), journal.list({}), journal.get('run')]);
    proxy.mute();
    stop();
    await journal.close();
    await proxy.close();
  });
});
