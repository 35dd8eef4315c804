/** The journal as it is for a worker of all tenants, on a database that separates them. */
import { describe, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { journalConformance } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';
import { makeRole, roleName } from '../kit/roles.ts';
import { emptied, sharedPool } from './emptied.ts';

describe('Postgres journal with separated tenants', async () => {
  const admin = await postgresUrl();
  const url = await makeRole(admin, roleName(), true);
  const schemaFor = emptied(sharedPool(admin, 1));

  for (const check of journalConformance({
    open: async (clock, store) =>
      postgresJournal(
        { url },
        { clock, schema: await schemaFor(store), watchIntervalMs: 2_000, maxConnections: 8, rls: true },
      ),
    durable: true,
  })) {
    it(check.name, check.run);
  }
});
