/** Roles of a Postgres server: tests of policies need some for which policies hold. */
import pg from 'pg';

/** As whoever has the server. */
export async function asAdmin<Row extends pg.QueryResultRow>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text).finally(() => client.end());
  return [result].flat().at(-1)?.rows ?? [];
}

/** A role that may log in and no more, or make schemas as well. @returns the URL of the database for it. */
export async function makeRole(url: string, name: string, mayCreate = false): Promise<string> {
  await asAdmin(url, `CREATE ROLE ${name} LOGIN PASSWORD 'secret'`);
  if (mayCreate) {
    const [database] = await asAdmin<{ name: string }>(url, 'SELECT quote_ident(current_database()) AS name');
    await asAdmin(url, `GRANT CREATE ON DATABASE ${database?.name} TO ${name}`);
  }
  return Object.assign(new URL(url), { username: name, password: 'secret' }).href;
}

/** Another one for each test. */
export function roleName(): string {
  return `role_${crypto.randomUUID().replaceAll('-', '')}`;
}
