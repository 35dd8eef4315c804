/** The long-term store is searched by the extension of Postgres: it finds what every store finds. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Journal, memoryJournal } from '#journal';
import { postgresJournal } from '#journal/postgres';
import { expectCode, journalConformance } from '#testing';
import { makeFolder } from '../cli/command.ts';
import { PostgresServer } from '../kit/postgres.ts';

/** The folder of the programs of an installed server that has the extension; `undefined` where there is none, which is said once. */
function findPrograms(): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const has = versions.filter((version) => existsSync(`/usr/share/postgresql/${version}/extension/vector.control`));
  const [version] = has.sort((one, other) => Number(other) - Number(one));
  if (version !== undefined) return join(debian, version, 'bin');
  process.stderr.write(
    'Tests of pgvector are skipped: no server with it is installed (Debian: apt-get install postgresql-17-pgvector).\n',
  );
  return undefined;
}

const programs = findPrograms();

describe.skipIf(programs === undefined)('the long-term store with pgvector', async () => {
  if (programs === undefined) return;
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off'], programs);
  const sql = async (text: string): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    return client
      .query(text)
      .then(({ rows }) => rows)
      .finally(() => client.end());
  };
  beforeAll(async () => {
    const refused = postgresJournal({ url: `${server.url}?pgvector=true` }, { schema: 'refused' });
    expect((await expectCode(refused.list({}), 'invalid_config')).message).toContain('CREATE EXTENSION vector');
    await refused.close();
    // Nobody's search path leads there.
    await sql('CREATE SCHEMA "the extensions"; CREATE EXTENSION vector SCHEMA "the extensions"');
  });
  afterAll(() => server.remove());

  const schemaOf = (store: string): string => `t_${createHash('sha256').update(store).digest('hex').slice(0, 24)}`;
  for (const check of journalConformance({
    open: (clock, store) =>
      postgresJournal(
        { url: server.url },
        { clock, schema: schemaOf(store), watchIntervalMs: 2_000, maxConnections: 4, pgvector: true },
      ),
    durable: true,
  })) {
    if (/\bitem|\bin the store|no store/.test(check.name)) it(check.name, check.run);
  }

  it('finds what a store finds that compares by itself', async () => {
    const number = fc.oneof(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom(0, -0, 1, 2 ** -140, -(2 ** -126), 0.1),
    );
    const vector = fc.array(number, { minLength: 3, maxLength: 3 });
    const place = fc.record({
      vector: fc.oneof(vector, fc.array(number, { maxLength: 5 })),
      user: fc.constantFrom('ann', 'ben'),
      open: fc.boolean(),
    });
    let rounds = 0;
    const check = fc.asyncProperty(
      fc.array(place, { maxLength: 12 }),
      vector,
      fc.boolean(),
      async (places, wanted, filtered) => {
        rounds += 1;
        const journal = postgresJournal({ url: server.url }, { schema: 'found', pgvector: true });
        const [own, theirs] = await Promise.all(
          [journal, memoryJournal()].map(async ({ store }: Journal) => {
            const namespace = [`round ${rounds}`];
            await store.write(
              places.map(({ user, open }, at) => ({
                namespace: [...namespace, user],
                key: String(at),
                value: { open },
              })),
            );
            const items = await store.unindexed(namespace, 'i', 100);
            const vectors = items.map(({ key, revision }) => ({
              revision,
              vector: Float32Array.from(places[Number(key)]?.vector ?? []),
            }));
            await store.setVectors('i', vectors);
            const query = { namespace, limit: 100, ...(filtered ? { filter: { open: true } } : {}) };
            return store.search(query, { index: 'i', vector: Float32Array.from(wanted) });
          }),
        );
        await journal.close();
        const scores = (hits: typeof own = []) => new Map(hits.map(({ key, score }) => [key, score]));
        const [ours, expected] = [scores(own), scores(theirs)];
        expect([...ours.keys()].sort()).toEqual([...expected.keys()].sort());
        for (const [key, score] of ours) expect(Math.abs(score - (expected.get(key) ?? Number.NaN))).toBeLessThan(1e-5);
      },
    );
    await fc.assert(check, { numRuns: 40 });
  });

  it('takes vectors that were made without it, and those of others who go on without it', async () => {
    const plain = postgresJournal({ url: server.url }, { schema: 'later' });
    const [namespace, wanted] = [['notes'], Float32Array.of(1, 0)];
    const add = async ({ store }: Journal, key: string, vector: Float32Array): Promise<void> => {
      await store.write([{ namespace, key, value: key }]);
      const [item] = (await store.unindexed(namespace, 'i', 10)).filter((each) => each.key === key);
      await store.setVectors('i', [{ revision: item?.revision ?? 0, vector }]);
    };
    await add(plain, 'near', Float32Array.of(2, 0.5));
    const url = `${server.url}?schema=later&pgvector=true`;
    const looking = postgresJournal({ url }, { migrate: false });
    expect((await expectCode(looking.list({}), 'journal_older')).message).toContain('pilotage migrate');
    expect(await makeFolder().run(['migrate', '--journal', url])).toMatchObject({ code: 0, stderr: '' });
    await add(plain, 'far', Float32Array.of(-1, 1));
    await add(plain, 'long', new Float32Array(16_001).fill(1));
    const keys = async (vector: Float32Array): Promise<string[]> =>
      (await looking.store.search({ namespace, limit: 9 }, { index: 'i', vector })).map(({ key }) => key);
    expect(await keys(wanted)).toEqual(['near', 'far']);
    expect(await keys(new Float32Array(16_001).fill(2))).toEqual(['long']);
    await add(plain, 'near', Float32Array.of(-1, 0));
    expect(await keys(wanted)).toEqual(['far', 'near']);
    await Promise.all([plain.close(), looking.close()]);
  });
});
