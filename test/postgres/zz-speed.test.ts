import { it } from 'vitest';
import pg from 'pg';
import { postgresJournal } from '#journal/postgres';
import { sqliteJournal } from '#journal/sqlite';
import { withDatabase } from '../kit/sqlite.ts';
import { temporaryFile } from '../kit/files.ts';
import { postgresUrl } from '../kit/postgres.ts';
const url = await postgresUrl();
const N = 40_000;
const STATUS = ['finished', 'failed', 'cancelled'] as const;
async function all(journal: any, label: string) {
  let after = 0, runs = 0, calls = 0, most = 0; const t0 = performance.now();
  for (;;) { const t = performance.now(); const p = await journal.prune({ olderThanMs: 1000, status: STATUS, after }); most = Math.max(most, performance.now() - t); runs += p.runs; calls += 1; if (p.next === undefined) break; after = p.next; }
  console.log(label, { runs, calls, most: Math.round(most), total: Math.round(performance.now() - t0) });
}
it('pg', async () => {
  const journal = postgresJournal({ url });
  await journal.list({});
  const client = new pg.Client({ connectionString: url }); await client.connect();
  await client.query(`INSERT INTO pilotage.runs (id, tenant, "user", session, agent, priority, status, created_at, updated_at, head) SELECT 'r'||n, 'acme', 'ana', 'jobs', 'a', 0, CASE WHEN n % 4 = 0 THEN 'paused' ELSE 'finished' END, 1, 1, 5 FROM generate_series(1, ${N}) n`);
  await client.query(`INSERT INTO pilotage.entries SELECT key, s, 1, repeat('x', 300) FROM pilotage.runs, generate_series(1,5) s`);
  await client.query('ANALYZE'); await client.end();
  await all(journal, 'pg one session'); await all(journal, 'pg again'); await journal.close();
});
it('sqlite', async () => {
  const path = temporaryFile(); const journal = sqliteJournal({ path }); await journal.list({});
  withDatabase(path, (db) => { db.exec(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < ${N}) INSERT INTO runs (id, tenant, user, session, agent, priority, status, created_at, updated_at, head) SELECT 'r'||n, 'acme', 'ana', 'jobs', 'a', 0, CASE WHEN n % 4 = 0 THEN 'paused' ELSE 'finished' END, 1, 1, 5 FROM c`);
  db.exec(`INSERT INTO entries (id, at, body) SELECT (key << 32) + s.value, 1, printf('%.300c', 'x') FROM runs, json_each('[1,2,3,4,5]') s`); });
  await all(journal, 'sqlite one session'); await all(journal, 'sqlite again'); await journal.close();
});
