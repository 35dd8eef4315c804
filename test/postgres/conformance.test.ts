import { createHash } from 'node:crypto';
import { describe, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { journalConformance } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';

describe('Postgres journal', async () => {
  const url = await postgresUrl();
  const schemaOf = (store: string): string => `t_${createHash('sha256').update(store).digest('hex').slice(0, 24)}`;

  for (const check of journalConformance({
    open: (clock, store) =>
      postgresJournal({ url }, { clock, schema: schemaOf(store), watchIntervalMs: 2_000, maxConnections: 8 }),
    durable: true,
  })) {
    it(check.name, check.run);
  }
});
