/** What every journal must do, behind a pooler that gives each transaction another connection. */
import { afterAll, describe, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { journalConformance } from '#testing';
import { KEPT, PgBouncer, pgbouncerVersion } from '../kit/pgbouncer.ts';
import { PostgresServer } from '../kit/postgres.ts';
import { emptied, sharedPool } from './emptied.ts';

describe.skipIf(pgbouncerVersion === undefined)('PgBouncer in transaction mode', async () => {
  if (pgbouncerVersion === undefined) return;
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());
  const schemaFor = emptied(sharedPool(server.url, 1));

  describe.each(KEPT)('with max_prepared_statements %s', async (kept) => {
    const bouncer = await PgBouncer.start(server.port, kept === undefined ? [] : [`max_prepared_statements = ${kept}`]);
    afterAll(() => bouncer.remove());

    for (const check of journalConformance({
      open: async (clock, store) =>
        postgresJournal(
          { url: `${bouncer.url}?transactionPooler=true` },
          { clock, schema: await schemaFor(store), maxConnections: 8 },
        ),
      durable: true,
    })) {
      it(check.name, check.run);
    }
  });
});
