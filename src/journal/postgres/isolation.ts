/**
 * How the policies of `policies.ts` come to the tables, and what is looked at before a journal relies on them.
 */
import type { PoolClient } from 'pg';
import { PilotageError } from '#core';
import type { Database } from './database.ts';
import { stateOf } from './failures.ts';
import { makeOnce, untilDone } from './migrations.ts';
import { ISOLATE, OPEN_TABLES, OPEN_UP, POLICIES } from './policies.ts';
import type { Isolation } from './tenant-settings.ts';

const ROLE = `
  SELECT current_user::text AS role, rolsuper OR rolbypassrls AS passes FROM pg_roles WHERE rolname = current_user`;
const OF_ROLE = 'SELECT tenant FROM {tenant_roles} WHERE role = session_user';
const NO_PRIVILEGE = '42501';

/** Before anything is made. @throws PilotageError `invalid_config` for a role that no policy holds for. */
export async function assertHeld(database: Database): Promise<void> {
  const { role, passes } = await database.onClient(async (client) => {
    const { rows } = await client.query<{ role: string; passes: boolean }>(ROLE);
    return rows[0] ?? { role: '', passes: true };
  });
  if (!passes) return;
  throw new PilotageError(
    'invalid_config',
    `The role ${role} is a superuser or has BYPASSRLS: no policy holds for it, and { rls: true } would separate nothing. Make a role for Pilotage: CREATE ROLE pilotage LOGIN PASSWORD '…'; GRANT CREATE ON DATABASE … TO pilotage.`,
    { data: { role } },
  );
}

/**
 * The tables have the policies, and the connections are those of the tenant.
 * @param mayMigrate true: whoever has the tables gives them the policies that are missing.
 * @throws PilotageError `journal_older`, `invalid_config` for a role of another tenant.
 */
export async function isolated(database: Database, { tenant }: Isolation, mayMigrate: boolean): Promise<void> {
  await database.onClient(async (client) => {
    if (!(await isWhole(client, database))) {
      if (!mayMigrate) throw withoutPolicies(database);
      await changeIsolation(client, database, true);
    }
    const { rows } = await client.query<{ tenant: string }>(database.qualify(OF_ROLE));
    const own = rows[0]?.tenant;
    if (own === undefined || own === tenant) return;
    const message = `The database user is of the tenant ${JSON.stringify(own)}, as tenant_roles says, and sees nothing else. Open the journal with { tenant: ${JSON.stringify(own)} }.`;
    throw new PilotageError('invalid_config', message, { data: { tenant: own } });
  });
}

/** Puts the policies on all tables, or has them count for nothing. */
export async function setIsolation(database: Database, isOn: boolean): Promise<void> {
  await database.onClient((client) => changeIsolation(client, database, isOn));
}

async function changeIsolation(client: PoolClient, database: Database, isOn: boolean): Promise<void> {
  try {
    await makeOnce(client, async () => {
      // Somebody else may have done it meanwhile.
      const isDone = isOn && (await isWhole(client, database));
      if (!isDone) await untilDone(client, database.qualify(isOn ? ISOLATE : OPEN_UP));
    });
  } catch (error) {
    if (stateOf(error) === NO_PRIVILEGE) throw withoutPolicies(database, error);
    throw error;
  }
}

async function isWhole(client: PoolClient, { schema }: Database): Promise<boolean> {
  const { rows } = await client.query<{ missing: number }>(OPEN_TABLES, [schema, Object.keys(POLICIES)]);
  return rows[0]?.missing === 0;
}

function withoutPolicies({ schema }: Database, cause?: unknown): PilotageError {
  const message = `The tenants of the journal in the schema ${schema} are not separated by policies yet. Run \`pilotage migrate --rls on\` once, as whoever has the tables.`;
  return new PilotageError('journal_older', message, { data: { schema }, cause });
}

/** For a journal that is opened without `rls`, and would find nothing. */
export function separated({ schema }: Database): PilotageError {
  return new PilotageError(
    'invalid_config',
    `The tenants of the journal in the schema ${schema} are separated by policies. Open it as postgresJournal(…, { rls: true }), with { tenant } for one tenant; a URL says it with ?rls=true behind it.`,
    { data: { schema } },
  );
}
