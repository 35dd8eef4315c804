/** Policies cost no index: what is looked for stands in the conditions of index scans, and not behind them. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { ana, claimFirst } from '#testing';
import { postgresUrl, statementsOver } from '../kit/postgres.ts';
import { asAdmin } from '../kit/roles.ts';
import { furnish, ours, separated } from './separated.ts';

describe('plans of statements on separated tenants', async () => {
  const admin = await postgresUrl();

  /** Enough runs that an index is worth its while: some due, some that wait for a time to come, most of other tenants. */
  const many = (schema: string): string => `
    INSERT INTO ${schema}.runs (id, tenant, "user", session, agent, priority, status, created_at, updated_at, head, wake_at)
    SELECT 'r' || n, CASE WHEN n % 100 = 0 THEN '${ours}' ELSE 't' || n % 20 END, 'u' || n % 50, 's' || n, 'finish', 0,
      CASE WHEN n % 2 = 0 THEN 'waiting' ELSE 'pending' END, n, n, 0, CASE WHEN n % 2 = 0 THEN 9000000000000 + n ELSE 0 END
    FROM generate_series(1, 20000) AS n`;

  /** The plans of what the journal asks while it does this. */
  async function plansOf(tenant: string | undefined, does: (journal: Journal) => Promise<unknown>): Promise<string> {
    const place = await separated(admin);
    onTestFinished(() => place.close());
    await furnish(place.open(ours), ours);
    await asAdmin(place.admin, many(place.schema));
    await asAdmin(place.admin, `ANALYZE ${place.schema}.runs`);
    const pool = new pg.Pool({ connectionString: place.url, max: 1 });
    onTestFinished(() => pool.end());
    // The server may end before its idle connection does.
    pool.on('error', () => {});
    const said = statementsOver(pool);
    const of = tenant === undefined ? {} : { tenant };
    const journal = postgresJournal({ pool }, { schema: place.schema, rls: true, ...of });
    onTestFinished(() => journal.close());
    await journal.get('warm');
    said.length = 0;
    await does(journal);
    const statements = said.splice(0);
    const client = await pool.connect();
    try {
      // The other tables are small: they would be read as a whole.
      await client.query('BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off');
      const lines: string[] = [];
      for (const { text, values } of statements) {
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (COSTS OFF) ${text}`, values);
        lines.push(...rows.map((row) => row['QUERY PLAN'].trim()));
      }
      await client.query('ROLLBACK');
      return lines.join('\n');
    } finally {
      client.release();
    }
  }

  const claim = (journal: Journal) => claimFirst(journal, { ...ana, agents: ['finish'] });

  it('a worker of all claims by the indexes of what is due', async () => {
    const plan = await plansOf(undefined, claim);
    expect(plan).toMatch(/using runs_ready on runs.*\nIndex Cond: \(agent = asked.agent\)/);
    expect(plan).toMatch(/using runs_timed on runs.*\nIndex Cond: \(\(agent = asked_1.agent\) AND .*wake_at <= /);
    expect(plan).not.toContain('Seq Scan on runs');
  });

  it('a worker of one tenant reads no lines of others', async () => {
    const plan = await plansOf(ours, claim);
    expect(plan).toMatch(/using runs_ready_of on runs.*\nIndex Cond: .*tenant = 'acme'/);
    expect(plan).toMatch(/using runs_timed_of on runs.*\nIndex Cond: .*tenant = 'acme'.*wake_at <= /);
    const parked = await plansOf(ours, (journal) => journal.nextDue(['finish']));
    expect(parked).toMatch(/using runs_parked_of on runs.*\nIndex Cond: .*tenant = 'acme'/);
  });

  it('runs, entries, artifacts and items are found by their keys', async () => {
    const plan = await plansOf(ours, async (journal) => {
      await journal.read(`${ours}-run`);
      await journal.inbox(`${ours}-run`);
      await journal.artifacts.list({ tenant: ours, user: 'ana', session: 's1' }, 10);
      await journal.store.list({ namespace: [ours, 'ana'], limit: 10 });
      await journal.sessions.list({ tenant: ours, user: 'ana' });
    });
    expect(plan).toMatch(/using runs_id_key on runs.*\nIndex Cond: \(id = /);
    expect(plan).toMatch(/using entries_pkey on entries.*\nIndex Cond: \(\(run = .*seq >= .*seq < /);
    expect(plan).toMatch(/using controls_waiting on controls.*\nIndex Cond: \(run = /);
    expect(plan).toMatch(/using artifacts_\w+ on artifacts.*\nIndex Cond: \(scope = /);
    expect(plan).toMatch(/using store_items_\w+ on store_items.*\nIndex Cond: .*namespace >= .*namespace < /);
    expect(plan).toMatch(/using runs_(scope|turns) on runs.*\nIndex Cond: .*"user" >= /);
    expect(plan).not.toMatch(/Seq Scan on (?!tenant_roles)\w+_?(runs|entries|controls|artifacts|store_items)/);
  });

  it('a page of runs of a tenant, or of a user, comes out of an index in its order, and is not sorted', async () => {
    for (const whose of [{}, { user: 'u0' }]) {
      const plan = await plansOf(ours, (journal) => journal.list({ tenant: ours, limit: 5, ...whose }));
      expect(plan).toMatch(/Index Scan Backward using runs_(tenant|user) on runs.*\nIndex Cond: .*tenant = /);
      expect(plan).not.toContain('Sort');
    }
  });
});
