import { describe, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { journalConformance } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';
import { emptied, sharedPool } from './emptied.ts';

describe('Postgres journal', async () => {
  // Connections of their own have the journals of `rls-conformance.soak.test.ts`.
  const pool = sharedPool(await postgresUrl(), 8);
  const schemaFor = emptied(pool);

  for (const check of journalConformance({
    open: async (clock, store) =>
      postgresJournal({ pool }, { clock, schema: await schemaFor(store), watchIntervalMs: 2_000 }),
    durable: true,
  })) {
    it(check.name, check.run);
  }
});
