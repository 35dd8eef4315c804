/** Many processes come to an empty database at the same moment. */
import { expect, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { newRun } from '#testing';
import { postgresUrl } from '../kit/postgres.ts';

it('makes the tables once, whoever comes first', async () => {
  const url = await postgresUrl();
  for (let round = 1; round <= 2; round += 1) {
    const schema = `opening_${round}_${crypto.randomUUID().slice(0, 8)}`;
    const journals = Array.from({ length: 8 }, () => postgresJournal({ url }, { schema, maxConnections: 2 }));
    await Promise.all(journals.map((journal, index) => journal.create(newRun(`run-${index}`))));
    for (const journal of journals) expect((await journal.list({})).length).toBe(8);
    await Promise.all(journals.map((journal) => journal.close()));
  }
});
