/** Claims beside backlogs: what they read does not grow with what is due, and the plans that the server keeps are as good as those that it makes anew. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ClaimedRun, Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { ana, createClaimed } from '#testing';
import { postgresUrl, type Statement, statementsOver } from '../kit/postgres.ts';

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

const DUE = 5_000;
/** With what stands beside, far less than there are. */
const MOST_READ = 1_500;
/** More than a claim looks through for others. */
const BACKLOG = 20_000;
const request = { ...ana, owner: 'worker', agents: ['finish'], exceptTenants: [], exceptRuns: [], limit: 10 };

const runsOf = (claimed: readonly ClaimedRun[]): string[] => claimed.map(({ claim }) => claim.run);

/** What a statement takes from the table of runs, be it taken or passed over. */
function rowsRead(node: PlanNode): number {
  const own =
    node['Relation Name'] === 'runs' && node.Plans === undefined
      ? (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
      : 0;
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsRead(child), own);
}

describe('claims on Postgres', async () => {
  const url = await postgresUrl();

  async function place(): Promise<{ journal: Journal; pool: pg.Pool; schema: string; said: Statement[] }> {
    const schema = `claims_${crypto.randomUUID().slice(0, 8)}`;
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    pool.on('error', () => {});
    const said = statementsOver(pool);
    const journal = postgresJournal({ pool }, { schema });
    onTestFinished(async () => {
      await journal.close();
      await pool.end();
    });
    await journal.get('warm');
    return { journal, pool, schema, said };
  }

  /** Runs of the agent, in a state that is said in SQL. */
  const put = (
    { pool, schema }: { pool: pg.Pool; schema: string },
    state: string,
    more: { count?: number; tenant?: string } = {},
  ): Promise<unknown> =>
    pool.query(`
      INSERT INTO ${schema}.runs (id, tenant, "user", session, agent, priority, created_at, updated_at, status, wake_at, owner, lease_until, fence)
      SELECT ${more.tenant ?? "'r'"} || n, ${more.tenant ?? "'acme'"}, 'u', 's' || n, 'finish', 0, 1, 1, ${state}, 1 FROM generate_series(1, ${more.count ?? DUE}) AS n`);

  /** How many rows of runs a claim reads that is planned for its values, and one whose plan was kept. */
  async function readBy(
    { journal, pool, said }: Awaited<ReturnType<typeof place>>,
    claim = () => journal.claimDue({ ...request, limit: 0 }),
    limitAt = -1,
  ): Promise<number[]> {
    said.length = 0;
    await claim();
    const [{ text, values } = { text: '', values: [] }] = said.splice(0);
    const literal = (value: unknown): string =>
      value === null || value === undefined
        ? 'NULL'
        : pg.escapeLiteral(Array.isArray(value) ? `{${value.map((each) => `"${each}"`).join(',')}}` : String(value));
    const counts: number[] = [];
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      const client = await pool.connect();
      try {
        await client.query(`BEGIN; SET LOCAL plan_cache_mode = ${mode}; PREPARE claim AS ${text}`);
        const given = values.with(limitAt, 10).map(literal).join(', ');
        const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE claim (${given})`);
        await client.query('ROLLBACK; DEALLOCATE claim');
        counts.push(rowsRead(rows[0]['QUERY PLAN'][0].Plan));
      } finally {
        client.release();
      }
    }
    return counts;
  }

  it.each([
    ['runs whose time has come', "'pending', 1000 + n, NULL, NULL", DUE],
    ['leases that are over', "'running', 0, 'ann', 1000 + n", DUE],
    ['leases of runs that are driven', "'running', 0, 'ann', (extract(epoch FROM now()) * 1000)::bigint + 250000", 0],
  ])('read few of many %s', async (_, state, due) => {
    const made = await place();
    await put(made, state);
    for (const read of await readBy(made)) expect(read).toBeLessThan(MOST_READ);
    const claimed = await made.journal.claimDue(request);
    expect(claimed).toHaveLength(Math.min(due, request.limit));
  });

  it.each([
    ['of runs whose time has come', "'pending', 1000 + n", 'claimDue'],
    ['of parked runs whose time has come', "'waiting', 1000 + n", 'claimParked'],
    ['of runs that were told something', "'waiting', 0", 'claimParked'],
    ['of what is ready', "'pending', 0", 'claimDue'],
  ] as const)('read little of a backlog %s that a tenant has which is left out, and find what others have', async (_, state, door) => {
    const made = await place();
    const others = { ...request, exceptTenants: ['acme'] };
    await put(made, `${state}, NULL, NULL`, { count: BACKLOG });
    await put(made, `${state.replace('1000', '900000')}, NULL, NULL`, { count: 1, tenant: "'calm'" });
    await put(made, "'waiting', 900000000000000, NULL, NULL", { count: 500, tenant: "'asleep' || n" });
    await made.pool.query(`ANALYZE ${made.schema}.runs`);
    const limitAt = door === 'claimDue' ? -3 : -2;
    for (const read of await readBy(made, () => made.journal[door]({ ...others, limit: 0 }), limitAt))
      expect(read).toBeLessThan(BACKLOG / 2);
    // Two hundred of those that sleep are looked at each time.
    const found: string[] = [];
    for (let claim = 0; claim < 3; claim += 1)
      found.push(...(await made.journal[door](others)).map(({ tenant }) => tenant));
    expect(found).toEqual(['calm']);
    expect(await made.journal[door](others)).toEqual([]);
    expect(await made.journal[door](request)).toHaveLength(request.limit);
  });

  it('the urgent ones among those whose time has come go first', async () => {
    const made = await place();
    await put(made, "'pending', 1000 + n, NULL, NULL");
    await made.pool.query(`UPDATE ${made.schema}.runs SET priority = 5 WHERE id IN ('r90', 'r200')`);
    expect(runsOf(await made.journal.claimDue({ ...request, limit: 3 }))).toEqual(['r90', 'r200', 'r1']);
  });

  it('leases that are over are taken, and no others, also of an owner that is dead', async () => {
    const { journal, pool, schema } = await place();
    for (const run of ['over', 'lasts']) await createClaimed(journal, run);
    await pool.query(`UPDATE ${schema}.runs SET lease_until = 1 WHERE id = 'over'`);
    const isDead = (): boolean => true;
    expect(runsOf(await journal.claimDue({ ...request, isDead }))).toEqual(['over']);
    expect(await journal.claimDue({ ...request, isDead })).toEqual([]);
  });
});
