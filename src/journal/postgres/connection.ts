/** How a journal on Postgres is opened: what is given, what is made of it, and the package that it needs. */
import type { Client, Pool, PoolClient, PoolConfig, QueryConfig, QueryResult } from 'pg';
import { assertOptions, type Clock, type OptionShape, PilotageError } from '#core';
import { Database, STATEMENT_MS } from './database.ts';
import { postgresError } from './failures.ts';
import { migrate } from './migrations.ts';
import { readUrl } from './url.ts';
import { prepareVectors } from './vectors.ts';

/**
 * Where the database is: a URL (`postgres://user:password@host:5432/name`), or a pool of `pg` that is yours and stays open. A URL may have the
 * options `schema`, `maxConnections`, `transactionPooler` and `pgvector` behind it (`?schema=agents&transactionPooler=true`); those that are given beside it count for more.
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
  pgvector: 'flag?',
  watchIntervalMs: 'count?',
  clock: 'object?',
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
  assertOptions('postgresJournal', connection, CONNECTION);
  assertOptions('postgresJournal', beside, OPTIONS);
  const given = 'pool' in connection ? connection.pool : undefined;
  const { url, options: ofUrl } = given === undefined ? readUrl((connection as { url?: string }).url) : NO_URL;
  const options = { ...ofUrl, ...beside };
  const { schema = DEFAULT_SCHEMA, transactionPooler = false, clock } = options;
  assertSchema(schema);
  const database = new Database({
    schema,
    clock,
    isOwn: given === undefined,
    prepares: !transactionPooler,
    connect: async () => given ?? openPool(url, options),
    connectAlone: async (pool) => new (await loadPg()).Client(optionsOf(pool)) as Client,
    prepare: (database) => prepare(database, options),
  });
  return { database, options };
}

async function prepare(
  database: Database,
  { migrate: mayMigrate = true, pgvector = false }: PostgresOptions,
): Promise<void> {
  await migrate(database, mayMigrate);
  if (pgvector) await prepareVectors(database, mayMigrate);
}

/** Brings the tables to the present format. @returns the formats before (0: there was nothing) and after. @throws PilotageError as `postgresJournal` does. */
export async function migrateDatabase(
  connection: PostgresConnection,
  options: PostgresOptions = {},
): Promise<{ readonly from: number; readonly to: number }> {
  const { database, options: all } = openPostgres(connection, options);
  try {
    const moved = await migrate(database, true);
    if (all.pgvector === true) await prepareVectors(database, true);
    return moved;
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
    verify: (client, done) => void greet(client, !transactionPooler).then(() => done(), done),
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
 * @param isOurs whether what is set for the connection stays with it.
 */
async function greet(client: PoolClient, isOurs: boolean): Promise<void> {
  const text = 'SELECT pg_is_in_recovery() AS is_standby';
  const asked = isOurs ? `SET statement_timeout = ${STATEMENT_MS}; ${text}` : text;
  const answer: unknown = await client.query({ text: asked, query_timeout: CONNECT_MS } as QueryConfig);
  const [{ is_standby: isStandby } = {}] = [answer].flat().flatMap((each) => (each as QueryResult).rows);
  if (isStandby !== true) return;
  throw new PilotageError(
    'journal_unavailable',
    'This Postgres is a standby, which takes no writes. Give the URL of the primary.',
  );
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
  if (schema !== '' && Buffer.byteLength(schema) <= MOST_NAME_BYTES && !schema.includes('\u0000')) return;
  throw new PilotageError(
    'invalid_config',
    `The option schema of postgresJournal is ${JSON.stringify(schema)}; give a name of 1 to ${MOST_NAME_BYTES} bytes.`,
  );
}
