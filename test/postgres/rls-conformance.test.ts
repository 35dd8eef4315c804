/** The journal as it is for a worker of all tenants, on a database that separates them. */
import { createHash } from 'node:crypto';
import { describe, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { journalConformance } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';
import { makeRole, roleName } from '../kit/roles.ts';

describe('Postgres journal with separated tenants', async () => {
  const url = await makeRole(await postgresUrl(), roleName(), true);
  const schemaOf = (store: string): string => `t_${createHash('sha256').update(store).digest('hex').slice(0, 24)}`;

  for (const check of journalConformance({
    open: (clock, store) =>
      postgresJournal(
        { url },
        { clock, schema: schemaOf(store), watchIntervalMs: 2_000, maxConnections: 8, rls: true },
      ),
    durable: true,
  })) {
    it(check.name, check.run);
  }
});
