/** One schema for many stores, one after another: making its tables, and a database full of such, takes longer than most of what is played in them. */
import pg from 'pg';
import { afterAll } from 'vitest';

const SCHEMA = 'played';
const EMPTY = `DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${SCHEMA}' AND tablename NOT IN ('format', 'tenant_roles')
  LOOP EXECUTE format('DELETE FROM ${SCHEMA}.%I', name); END LOOP;
END $$`;

/** Connections to the server that the tests of a file share. */
export function sharedPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max });
  // The server ends before the last of them is gone.
  pool.on('error', () => undefined);
  afterAll(() => pool.end());
  return pool;
}

/**
 * Gives the schema for a store: what an earlier store has left is deleted, once nobody uses that any more.
 * @param admin connections of somebody who may delete everything.
 */
export function emptied(admin: pg.Pool): (store: string) => Promise<string> {
  let current: string | undefined;
  return async (store) => {
    if (store !== current) await admin.query(EMPTY);
    current = store;
    return SCHEMA;
  };
}
