/** The store of a round, which each of its processes opens: a file, or a schema of a Postgres database. */
import { Client } from 'pg';
import { postgresJournal } from '#journal/postgres';
import { sqliteJournal } from '#journal/sqlite';
import type { Journal } from '#pilotage/journal';

/** @param place the path of a file, or the URL of a database. */
export function openStore(place: string): Journal {
  return isDatabase(place) ? postgresJournal({ url: place }) : sqliteJournal({ path: place, watchIntervalMs: 50 });
}

export function isDatabase(place: string): boolean {
  return /^postgres(ql)?:/.test(place);
}

/** The place of a round's own schema in the database. */
export function ownSchema(url: string, seed: number): string {
  const place = new URL(url);
  place.searchParams.set('schema', `chaos_${process.pid}_${seed}`);
  return place.href;
}

export async function dropSchema(place: string): Promise<void> {
  const url = new URL(place);
  const schema = url.searchParams.get('schema');
  url.searchParams.delete('schema');
  const client = new Client({ connectionString: url.href });
  await client.connect();
  try {
    await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
  } finally {
    await client.end();
  }
}
