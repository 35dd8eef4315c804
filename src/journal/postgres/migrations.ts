/** Brings the tables of a journal to the present version, once, whoever comes first. */
import type { PoolClient, QueryConfig } from 'pg';
import { PilotageError } from '#core';
import { type Database, IDLE_IN_TRANSACTION_MS, rollBack, STATEMENT_MS, untilNoConflict } from './database.ts';
import { isTimeout, stateOf } from './failures.ts';
import { ISOLATE } from './policies.ts';
import { OLDEST_COMPATIBLE, POSTGRES_FORMAT, SCHEMA_STEPS } from './schema.ts';

/** `oldest`: the oldest version whose code can work with the tables. */
const FORMAT = `
  CREATE SCHEMA IF NOT EXISTS SCHEMA_NAME;
  CREATE TABLE IF NOT EXISTS {format} (id int PRIMARY KEY DEFAULT 1 CHECK (id = 1), version int NOT NULL, oldest int NOT NULL);
  INSERT INTO {format} (version, oldest) VALUES (0, 0) ON CONFLICT DO NOTHING`;
const READ = 'SELECT version, oldest FROM {format}';
const EXISTS = `
  SELECT to_regclass($1) IS NOT NULL AS exists, (SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass($2)) AS is_isolated`;
const NO_SUCH_TABLE = '42P01';
const TABLE_IS_THERE = '42P07';
/** "pilotage", for those who come at the same time: their lock must not depend on the name of a schema that does not exist yet. */
const LOCK = 0x70696c6f74616765n;

/**
 * Whoever is frozen meanwhile does not hold up the others. The wait for the lock is given up in time and begun anew: a connection that does not answer any
 * more would be waited for without end.
 */
const BEGIN_STEP = `
  BEGIN; SET LOCAL statement_timeout = ${STATEMENT_MS}; SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS};
  SELECT pg_advisory_xact_lock(${LOCK}); SET LOCAL statement_timeout = 0`;
const LONGEST_MS = 2 ** 31 - 1;

interface Format {
  readonly version: number;
  readonly oldest: number;
}

interface Found extends Format {
  /** Whether its tenants are separated by policies. */
  readonly isIsolated: boolean;
}

/**
 * @param mayMigrate false: an older format is refused.
 * @returns the versions before and after. `isIsolated`: its tenants are separated by policies, of which tables that are new then have theirs.
 * @throws PilotageError `journal_newer`, `journal_older`, or `invalid_config` for a schema that another application has.
 */
export async function migrate(
  database: Database,
  mayMigrate: boolean,
): Promise<{ readonly from: number; readonly to: number; readonly isIsolated: boolean }> {
  return database.onClient(async (client) => {
    const there = await formatOf(client, database);
    if (there !== undefined && there.version >= POSTGRES_FORMAT) {
      assertKnown(database, there);
      return { from: there.version, to: there.version, isIsolated: there.isIsolated };
    }
    if (!mayMigrate) throw older(database, there);
    return bring(client, database);
  });
}

function bring(client: PoolClient, database: Database): Promise<{ from: number; to: number; isIsolated: boolean }> {
  return makeOnce(client, async () => {
    const there = await formatOf(client, database);
    if (there === undefined) await client.query(database.qualify(FORMAT.replace('SCHEMA_NAME', database.quoted)));
    // Somebody may have made it since the server looked: whether a table is there it remembers until it uses it.
    const { rows } = await client.query<Format>(database.qualify(READ));
    const { version: from, oldest } = rows[0] ?? { version: 0, oldest: 0 };
    assertKnown(database, { version: from, oldest });
    // What is empty is made in no time.
    const step = (text: string) => (from === 0 ? client.query(text) : untilDone(client, text));
    for (const { sql } of SCHEMA_STEPS.slice(from)) await step(database.qualify(sql));
    const { isIsolated = false } = there ?? {};
    if (isIsolated) await untilDone(client, database.qualify(ISOLATE));
    const to = Math.max(from, POSTGRES_FORMAT);
    const set = `UPDATE {format} SET version = ${to}, oldest = greatest(oldest, ${OLDEST_COMPATIBLE}) WHERE version < ${to}`;
    await client.query(database.qualify(set));
    return { from, to, isIsolated };
  }).catch((error: unknown) => {
    if (stateOf(error) !== TABLE_IS_THERE) throw error;
    const message = `The schema ${database.schema} has tables that are not a journal of Pilotage, and was left as it is. Give the journal a schema of its own.`;
    throw new PilotageError('invalid_config', message, { cause: error });
  });
}

/**
 * One transaction in which tables are made or changed, one process after another. @param make may be tried several times: statements that are under way
 * hold tables in another order.
 */
export function makeOnce<T>(client: PoolClient, make: () => Promise<T>): Promise<T> {
  return untilNoConflict(async () => {
    await begin(client);
    try {
      const made = await make();
      await client.query('COMMIT');
      return made;
    } catch (error) {
      await rollBack(client, error);
      throw error;
    }
  });
}

/** Whoever makes something just now takes as long as it takes. */
async function begin(client: PoolClient): Promise<void> {
  for (;;) {
    try {
      await client.query(BEGIN_STEP);
      return;
    } catch (error) {
      if (!(await rollBack(client, error)) || !isTimeout(error)) throw error;
    }
  }
}

/** An index of a large table takes as long as it takes. */
export async function untilDone(client: PoolClient, text: string): Promise<void> {
  await client.query({ text, query_timeout: LONGEST_MS } as QueryConfig);
}

async function formatOf(client: PoolClient, database: Database): Promise<Found | undefined> {
  try {
    const tables = ['{format}', '{runs}'].map((table) => database.qualify(table));
    const exists = await client.query<{ exists: boolean; is_isolated: boolean | null }>(EXISTS, tables);
    if (exists.rows[0]?.exists !== true) return undefined;
    const { rows } = await client.query<Format>(database.qualify(READ));
    return rows[0] && { ...rows[0], isIsolated: exists.rows[0].is_isolated === true };
  } catch (error) {
    if (stateOf(error) === NO_SUCH_TABLE) return undefined;
    throw error;
  }
}

function assertKnown({ schema }: Database, { version, oldest }: Format): void {
  if (oldest <= POSTGRES_FORMAT) return;
  throw new PilotageError(
    'journal_newer',
    `The journal in the schema ${schema} has format ${version}; this version of Pilotage knows up to ${POSTGRES_FORMAT}. Upgrade Pilotage.`,
    { data: { schema, found: version, supported: POSTGRES_FORMAT } },
  );
}

function older({ schema }: Database, there: Format | undefined): PilotageError {
  const found = there?.version ?? 0;
  const what =
    there === undefined
      ? 'has no journal. Start a run first, or run `pilotage migrate`.'
      : `has a journal of format ${found}, and this version of Pilotage needs ${POSTGRES_FORMAT}. Run \`pilotage migrate\` once.`;
  return new PilotageError('journal_older', `The schema ${schema} ${what}`, {
    data: { schema, found, supported: POSTGRES_FORMAT },
  });
}
