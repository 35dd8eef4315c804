/** A journal of two tenants on a real server, with all that a run of one of them may have, and what another one might try. */
import pg from 'pg';
import type { Journal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { ana, control, identity, newRun, startedEntry, step } from '#testing';
import { makeRole, roleName } from '../kit/roles.ts';

export const ours = 'acme';
export const theirs = 'globex';
const HOUR = 3_600_000;

export interface Separated {
  readonly admin: string;
  /** One connection of whoever has the server: its tables are looked at again and again. */
  readonly adminPool: pg.Pool;
  /** For the role that has the tables. */
  readonly url: string;
  readonly schema: string;
  open(tenant?: string): Journal;
  close(): Promise<void>;
}

export async function separated(admin: string): Promise<Separated> {
  const url = await makeRole(admin, roleName(), true);
  const schema = `rls_${crypto.randomUUID().slice(0, 8)}`;
  const opened: Journal[] = [];
  const adminPool = new pg.Pool({ connectionString: admin, max: 1 });
  // The server ends before the connection is gone.
  adminPool.on('error', () => undefined);
  const open = (tenant?: string): Journal => {
    const of = tenant === undefined ? {} : { tenant };
    const journal = postgresJournal({ url }, { schema, rls: true, maxConnections: 4, ...of });
    opened.push(journal);
    return journal;
  };
  return {
    ...{ admin, adminPool, url, schema, open },
    close: async () => {
      await Promise.all(opened.map((journal) => journal.close()));
      await adminPool.end();
    },
  };
}

/** Something in every table, of one tenant. The names of its runs begin with the tenant's. */
export async function furnish(journal: Journal, tenant: string): Promise<void> {
  const of = (run: string, session = 's1') => identity(`${tenant}-${run}`, { tenant, session });
  const labels = { plan: 'pro' };
  const entries = [startedEntry(of('run'), { labels })];
  const claim = await journal.create(
    newRun(`${tenant}-run`, { identity: of('run'), entries, claim: { ...ana, leaseMs: 300_000 } }),
  );
  if (claim === undefined) throw new Error(`the run of ${tenant} was there before`);
  const { run, fence } = claim;
  const wait = { id: '1.0.1', for: 'event', requestedAt: 1, step: 1, call: 0, wait: 1, key: 'paid' } as const;
  await journal.append(step(claim, 1, { waits: { adds: [wait] } }));
  await journal.signal(run, control('m1'));
  await journal.streams.append({ run, fence, step: 1, call: 0, attempt: 1, rows: [{ name: 'log', value: 'a' }] });
  await journal.passing.want([run], HOUR);
  await journal.passing.put([{ run, fence, value: 'a' }]);
  await journal.snapshots.keep({
    run,
    fence,
    version: 1,
    head: 2,
    body: Uint8Array.of(1),
    from: 0,
    blocks: [Uint8Array.of(2)],
  });
  await journal.sessions.set(of('run'), { title: `of ${tenant}` });
  await journal.artifacts.put(of('run'), new TextEncoder().encode(tenant), { mime: 'text/plain' });
  await journal.store.write([
    { namespace: [tenant, 'ana', 'notes'], key: 'one', value: { text: 'blue' } },
    { namespace: ['pilotage:rules', tenant, 'ana'], key: 'rule', value: { text: 'blue' } },
  ]);
  await journal.events.signal({ tenant, key: 'kept', id: 's1', payload: {}, keepMs: HOUR });
  await journal.schedules.put({ tenant, id: 'daily', agent: 'finish', definition: {}, times: 't', nextAt: 1_000 });
  const aside = { conversation: false } as const;
  for (const name of ['due', 'parked']) {
    const id = of(name, 'jobs');
    await journal.create(newRun(id.run, { identity: id, entries: [startedEntry(id, aside)] }));
  }
  const parked = await journal.claim({ ...ana, run: `${tenant}-parked` });
  if (parked !== undefined) await journal.release(parked, { seenSignals: 0, status: 'waiting', wakeInMs: 1 });
  const keyed = of('keyed', 'jobs');
  const start = newRun(keyed.run, { identity: keyed, entries: [startedEntry(keyed, aside)] });
  await journal.startByKey(start, { kind: 'singleton', key: 'nightly' });
}

/** What the tables have of a tenant, and of whom the rows are, as the server itself sees them. */
export async function contentOf({ adminPool, schema }: Separated, table: string): Promise<readonly string[]> {
  const text = `SELECT to_jsonb(each)::text AS row FROM ${schema}.${table} AS each ORDER BY 1`;
  return (await adminPool.query<{ row: string }>(text)).rows.map(({ row }) => row);
}

export async function tablesOf({ adminPool, schema }: Separated): Promise<readonly string[]> {
  const text = `SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' AND tablename NOT IN ('format', 'tenant_roles') ORDER BY 1`;
  return (await adminPool.query<{ tablename: string }>(text)).rows.map(({ tablename }) => tablename);
}
