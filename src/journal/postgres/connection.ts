/** How a journal on Postgres is opened: what is given, what is made of it, and the package that it needs. */
import type { Client, Pool, PoolClient, PoolConfig, QueryConfig, QueryResult } from 'pg';
import { assertOptions, type Clock, type OptionShape, PilotageError } from '#core';
import { Database, STATEMENT_MS } from './database.ts';
import { postgresError } from './failures.ts';
import { assertHeld, isolated, separated, setIsolation } from './isolation.ts';
import { migrate } from './migrations.ts';
import { type Isolation, sayingOf } from './tenant-settings.ts';
import { readUrl } from './url.ts';
import { prepareVectors } from './vectors.ts';

/**
 * Where the database is: a URL (`postgres://user:password@host:5432/name`), or a pool of `pg` that is yours and stays open. A URL may have the
 * options `schema`, `maxConnections`, `transactionPooler`, `rls`, `tenant` and `pgvector` behind it (`?schema=agents&transactionPooler=true`); those that are given beside it count for more.
 */
export type PostgresConnection = { readonly url: string } | { readonly pool: Pool };

export interface PostgresOptions {
  /** The schema with the tables. It is made when it does not exist. Default: `pilotage`. */
  readonly schema?: string;
  /** How many connections there are at most. Default 20. With `pool`, the pool says it. */
  readonly maxConnections?: number;
  /**
   * True: a pooler stands between that gives each transaction another connection (PgBouncer with `pool_mode = transaction`). Nothing is
   * prepared and nothing is listened for then: other processes are noticed by looking, every `watchIntervalMs`. Default false.
   */
  readonly transactionPooler?: boolean;
  /** False: the tables must be there in the present format (`pilotage migrate` makes them), and `journal_older` is thrown if they are not. Default true. */
  readonly migrate?: boolean;
  /**
   * True: tenants are separated by row-level security of the database, as a second isolation behind the journal's own queries. The tables get their policies when
   * the journal is opened by whoever has them (or by `pilotage migrate --rls on`). A superuser, and a role with BYPASSRLS, is refused. Default false.
   */
  readonly rls?: boolean;
  /** With `rls`: the tenant that this journal serves; nothing of others is there for it. Absent: it serves all tenants, as a worker does. */
  readonly tenant?: string;
  /**
   * True: the long-term store is searched by meaning in the database, by its extension `vector` (pgvector), which must be there. It finds the same, and
   * only what is found goes over the network. Default false.
   */
  readonly pgvector?: boolean;
  /** Milliseconds between looks for changes by other processes that were not heard of. Default 200. */
  readonly watchIntervalMs?: number;
  /** The clock for leases and waits, for tests. Default: the database's clock. */
  readonly clock?: Clock;
}

const CONNECTION: OptionShape<{ url?: string; pool?: object }> = { url: 'text?', pool: 'object?' };
const OPTIONS: OptionShape<PostgresOptions> = {
  schema: 'text?',
  maxConnections: 'count?',
  transactionPooler: 'flag?',
  migrate: 'flag?',
  rls: 'flag?',
  tenant: 'text?',
  pgvector: 'flag?',
  watchIntervalMs: 'count?',
  clock: 'clock?',
};
const NO_URL = { url: '', options: {} };
const DEFAULT_SCHEMA = 'pilotage';
const MAX_CONNECTIONS = 20;
const CONNECT_MS = 5_000;
/** The server gives a statement up before; this is for a server, or a way to it, that does not answer at all. */
const ANSWER_MS = 30_000;
/** Longer names are cut off by Postgres. */
const MOST_NAME_BYTES = 63;

export interface OpenedPostgres {
  readonly database: Database;
  /** Those of the URL and those beside it. */
  readonly options: PostgresOptions;
}

/** @throws PilotageError `invalid_config`. */
export function openPostgres(connection: PostgresConnection, beside: PostgresOptions): OpenedPostgres {
  assertPlaces(connection, beside);
  assertOptions('postgresJournal', connection, CONNECTION);
  assertOptions('postgresJournal', beside, OPTIONS);
  const given = 'pool' in connection ? connection.pool : undefined;
  const { url, options: ofUrl } = given === undefined ? readUrl((connection as { url?: string }).url) : NO_URL;
  const options = { ...ofUrl, ...beside };
  const { schema = DEFAULT_SCHEMA, transactionPooler = false, clock } = options;
  assertSchema(schema);
  const isolation = isolationOf(options);
  const database = new Database({
    schema,
    clock,
    isolation,
    // What a connection that is another one in the next transaction was told before does not hold.
    saysEachTime: given !== undefined || transactionPooler,
    isOwn: given === undefined,
    prepares: !transactionPooler,
    connect: async () => given ?? openPool(url, options),
    connectAlone: async (pool) => new (await loadPg()).Client(optionsOf(pool)) as Client,
    prepare: (database) => prepare(database, options, isolation),
  });
  return { database, options };
}

/** What stands in the other of the two arguments. @throws PilotageError `invalid_config`. */
function assertPlaces(connection: unknown, beside: unknown): void {
  const option = nameIn(connection, OPTIONS);
  const way = nameIn(beside, CONNECTION);
  if (option === undefined && way === undefined) return;
  const [name, place, call] =
    option === undefined
      ? [way, 'first', `postgresJournal({ ${way} }, { … })`]
      : [option, 'second', `postgresJournal({ url }, { ${option}: … })`];
  throw new PilotageError('invalid_config', `postgresJournal takes ${name} in its ${place} argument. Write ${call}.`);
}

function nameIn(given: unknown, shape: object): string | undefined {
  return typeof given === 'object' && given !== null
    ? Object.keys(given).find((name) => Object.hasOwn(shape, name))
    : undefined;
}

async function prepare(
  database: Database,
  { migrate: mayMigrate = true, pgvector = false }: PostgresOptions,
  isolation: Isolation | undefined,
): Promise<void> {
  if (isolation !== undefined) await assertHeld(database);
  const { isIsolated } = await migrate(database, mayMigrate);
  if (isolation !== undefined) await isolated(database, isolation, mayMigrate);
  else if (isIsolated) throw separated(database);
  if (pgvector) await prepareVectors(database, mayMigrate);
}

function isolationOf({ rls = false, tenant }: PostgresOptions): Isolation | undefined {
  const isTenant = tenant === undefined || (tenant !== '' && tenant.isWellFormed() && !tenant.includes('\u0000'));
  if (isTenant && (rls || tenant === undefined)) return rls ? { tenant } : undefined;
  const message = `The option tenant of postgresJournal is ${JSON.stringify(tenant)}; give the name of a tenant, and { rls: true } with it.`;
  throw new PilotageError('invalid_config', message);
}

/**
 * Brings the tables to the present format. @param rls whether tenants are separated by policies from now on. Absent: as before.
 * @returns the formats before (0: there was nothing) and after. @throws PilotageError as `postgresJournal` does.
 */
export async function migrateDatabase(
  connection: PostgresConnection,
  rls?: boolean,
): Promise<{ readonly from: number; readonly to: number; readonly rls?: boolean }> {
  const { database, options } = openPostgres(connection, {});
  const isAsked = rls ?? options.rls;
  try {
    const { from, to, isIsolated } = await migrate(database, true);
    if (isAsked !== undefined && (isAsked || isIsolated)) await setIsolation(database, isAsked);
    if (options.pgvector === true) await prepareVectors(database, true);
    const isOn = isAsked ?? isIsolated;
    return { from, to, ...(isOn || isIsolated ? { rls: isOn } : {}) };
  } catch (error) {
    throw postgresError(error);
  } finally {
    await database.close();
  }
}

async function openPool(url: string, options: PostgresOptions): Promise<Pool> {
  const { maxConnections = MAX_CONNECTIONS, transactionPooler = false } = options;
  const { Pool } = await loadPg();
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
    application_name: 'pilotage',
    verify: (client, done) => void greet(client, transactionPooler ? [] : settingsOf(options)).then(() => done(), done),
    // Connections that nobody uses do not keep the process alive.
    allowExitOnIdle: true,
  });
  // A connection that breaks while nobody uses it is left out; whoever uses the next one hears what is wrong.
  pool.on('error', () => undefined);
  return pool;
}

/**
 * Asked of each new connection, since the URL may lead to another server than before. What waits for a lock is given up by the server, also when
 * it is not a transaction: its connection would be left behind, and soon all were in use.
 * @param settings what is set for the connection, if it stays with it.
 */
async function greet(client: PoolClient, settings: readonly string[]): Promise<void> {
  const text = [...settings, 'SELECT pg_is_in_recovery() AS is_standby'].join('; ');
  const answer: unknown = await client.query({ text, query_timeout: CONNECT_MS } as QueryConfig);
  const { is_standby: isStandby } = ([answer].flat().at(-1) as QueryResult).rows[0] ?? {};
  if (isStandby !== true) return;
  throw new PilotageError(
    'journal_unavailable',
    'This Postgres is a standby, which takes no writes. Give the URL of the primary.',
  );
}

function settingsOf(options: PostgresOptions): readonly string[] {
  const isolation = isolationOf(options);
  return [`SET statement_timeout = ${STATEMENT_MS}`, ...(isolation === undefined ? [] : [sayingOf(isolation, false)])];
}

/** What a pool was made with; without its limit for answers, for a connection that listens. The pool hides its password from copies. */
function optionsOf(pool: Pool): PoolConfig {
  const { options } = pool as unknown as { readonly options: PoolConfig };
  const { password } = options;
  return { ...options, ...(password === undefined ? {} : { password }), query_timeout: CONNECT_MS };
}

/** @throws PilotageError `package_missing`. */
async function loadPg(): Promise<typeof import('pg').default> {
  try {
    return (await import('pg')).default;
  } catch (cause) {
    const message = 'A journal on Postgres needs the package pg: run `npm install pg`.';
    throw new PilotageError('package_missing', message, { data: { package: 'pg' }, cause });
  }
}

function assertSchema(schema: string): void {
  const fits = schema !== '' && Buffer.byteLength(schema) <= MOST_NAME_BYTES && !schema.includes('\u0000');
  if (fits && !schema.startsWith('pg_')) return;
  throw new PilotageError(
    'invalid_config',
    `The option schema of postgresJournal is ${JSON.stringify(schema)}; give a name of 1 to ${MOST_NAME_BYTES} bytes that does not begin with pg_, which Postgres keeps for itself.`,
  );
}
