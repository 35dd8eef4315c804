/**
 * Which rows of a journal are of which tenant, as the database is told it: policies on every table, and what they ask. They hold for
 * whoever has the tables as well (`FORCE`), but not for superusers and roles with BYPASSRLS.
 *
 * Who a connection is stands in its settings: `pilotage.tenant` names one tenant, and `pilotage.all_tenants = 'on'` says that it serves all.
 * Whoever says neither is refused. A role that stands in `tenant_roles` is that tenant's, whatever its connection says.
 */

/** It grows with what is written here; a database with policies of an older number gets these. */
const POLICY_VERSION = 1;

/**
 * Asked once a statement, and so in brackets. What follows for a row is put behind it, and not asked where the connection serves all.
 * A path of the caller's for operators and functions is not taken.
 */
const SERVES_ALL = '(SELECT {serves_all_tenants}())';
const OWN = '(SELECT {own_tenant}())';
const OWN_SCOPE = '(SELECT {own_scope}())';
const OWN_JSON = '(SELECT to_json({own_tenant}())::text)';
/** The error of a connection that does not say whom it serves. */
export const NO_TENANT = 'PILOT';

// A connection that serves all is asked for its own tenant, too: where a row has changed meanwhile, the server works out all subqueries of a policy.
const ROLES = `
CREATE TABLE IF NOT EXISTS {tenant_roles} (role name PRIMARY KEY, tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''));
CREATE OR REPLACE FUNCTION {serves_all_tenants}() RETURNS boolean LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $pilotage$
BEGIN
  RETURN coalesce(current_setting('pilotage.all_tenants', true), '') = 'on'
    AND NOT EXISTS (SELECT FROM {tenant_roles} AS roles WHERE roles.role = session_user);
END $pilotage$;
CREATE OR REPLACE FUNCTION {own_tenant}() RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $pilotage$
DECLARE
  own text := coalesce(
    (SELECT roles.tenant FROM {tenant_roles} AS roles WHERE roles.role = session_user),
    nullif(current_setting('pilotage.tenant', true), '')
  );
BEGIN
  IF own IS NULL AND NOT {serves_all_tenants}() THEN
    RAISE EXCEPTION 'The rows of this journal are separated by tenants, and the connection does not say whose it wants.'
      USING ERRCODE = '${NO_TENANT}', HINT = 'Set pilotage.tenant, or pilotage.all_tenants to on.';
  END IF;
  RETURN own;
END $pilotage$;
`;

/** The tenant as the key of a scope begins: letters, digits and nine signs stand for themselves, and all else as the hexadecimal digits of its bytes. */
const SCOPES = `
CREATE OR REPLACE FUNCTION {own_scope}() RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $pilotage$
BEGIN
  RETURN (
    SELECT string_agg(
      CASE WHEN strpos('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*''()', letter) > 0 THEN letter
        ELSE regexp_replace(upper(encode(convert_to(letter, 'UTF8'), 'hex')), '(..)', '%\\1', 'g') END, '' ORDER BY place
    ) || '/' FROM string_to_table({own_tenant}(), NULL) WITH ORDINALITY AS tenant (letter, place)
  );
END $pilotage$;
`;

/**
 * Asked of each row that is put in. They are volatile so that they see what the statement itself has put in before: a run and its first
 * entries are one statement.
 */
const OWNS = ['run bigint', 'name text', 'stream bigint']
  .map((parameter) => {
    const [name = ''] = parameter.split(' ');
    const table = name === 'stream' ? '{streams}' : '{runs}';
    const column = name === 'name' ? 'id' : 'key';
    return `
CREATE OR REPLACE FUNCTION {owns_${name}}(wanted ${parameter.slice(name.length + 1)}) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $pilotage$
BEGIN
  RETURN EXISTS (SELECT FROM ${table} AS own WHERE own.${column} = wanted);
END $pilotage$;
`;
  })
  .join('');

interface Policy {
  /** Whether a row is the tenant's. */
  readonly has: string;
  /** The same of a row that is put in; absent: as `has`. */
  readonly takes?: string;
}

const ofTenant = (table: string): Policy => ({ has: `${table}.tenant = ${OWN}` });
/** The subquery sees what the policy of the runs lets it see. */
const ofRun = (table: string): Policy => ({
  has: `EXISTS (SELECT FROM {runs} AS own WHERE own.key = ${table}.run)`,
  takes: `{owns_run}(${table}.run)`,
});

/** Every table with something of a run, a session or a tenant in it. */
export const POLICIES: Readonly<Record<string, Policy>> = {
  runs: ofTenant('runs'),
  session_facts: ofTenant('session_facts'),
  schedules: ofTenant('schedules'),
  signals: ofTenant('signals'),
  // What they lead to must be the tenant's as well: those who serve all tenants follow them.
  open_waits: { has: `open_waits.tenant = ${OWN}`, takes: `open_waits.tenant = ${OWN} AND {owns_run}(open_waits.run)` },
  start_keys: {
    has: `start_keys.tenant = ${OWN}`,
    takes: `start_keys.tenant = ${OWN} AND {owns_name}(start_keys.run)`,
  },
  entries: ofRun('entries'),
  controls: ofRun('controls'),
  snapshots: ofRun('snapshots'),
  snapshot_blocks: ofRun('snapshot_blocks'),
  run_labels: ofRun('run_labels'),
  streams: ofRun('streams'),
  readers: ofRun('readers'),
  passing: ofRun('passing'),
  stream_rows: {
    has: 'EXISTS (SELECT FROM {streams} AS own WHERE own.key = stream_rows.stream)',
    takes: '{owns_stream}(stream_rows.stream)',
  },
  artifacts: { has: `starts_with(artifacts.scope, ${OWN_SCOPE})` },
  // The first part of a namespace is the tenant; where that is a name of the runtime's own, the second one is.
  store_items: {
    has: `starts_with(
      CASE WHEN starts_with(store_items.namespace, '["pilotage:')
        THEN substr(store_items.namespace, strpos(store_items.namespace, '",') + 2) ELSE substr(store_items.namespace, 2) END || ',',
      ${OWN_JSON} || ',')`,
  },
};

/** These belong to no tenant: they are read by all, and changed by whoever has the tables. */
const COMMON: Readonly<Record<string, string>> = { format: 'true', tenant_roles: 'tenant_roles.role = session_user' };

const POLICY = `tenants_${POLICY_VERSION}`;

const OLDER = Array.from({ length: POLICY_VERSION }, (_, index) => `tenants_${index + 1}`);
const dropOlder = (table: string): string =>
  OLDER.map((policy) => `DROP POLICY IF EXISTS ${policy} ON {${table}};`).join('\n');

const policyOf = (table: string, { has, takes = has }: Policy): string => `
${dropOlder(table)}
CREATE POLICY ${POLICY} ON {${table}} USING (${SERVES_ALL} OR ${has}) WITH CHECK (${SERVES_ALL} OR ${takes});
ALTER TABLE {${table}} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;`;

/** For all tables, whatever policies of ours are there. In a transaction. */
export const ISOLATE: string = [
  ROLES,
  SCOPES,
  OWNS,
  ...Object.entries(POLICIES).map(([table, policy]) => policyOf(table, policy)),
  ...Object.entries(COMMON).map(
    ([table, reads]) =>
      `${dropOlder(table)} CREATE POLICY ${POLICY} ON {${table}} FOR SELECT USING (${reads}); ALTER TABLE {${table}} ENABLE ROW LEVEL SECURITY;`,
  ),
].join('\n');

/** The policies stay, and count for nothing. In a transaction. */
export const OPEN_UP: string = [...Object.keys(POLICIES), ...Object.keys(COMMON)]
  .map((table) => `ALTER TABLE {${table}} DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;`)
  .join('\n');

/** How many tables do not have what `ISOLATE` gives them, of those that hold something of a tenant. The parameters: the schema, and the names of the tables. */
export const OPEN_TABLES: string = `
  SELECT count(*)::int AS missing FROM pg_class AS class JOIN pg_namespace AS space ON space.oid = class.relnamespace
  WHERE space.nspname = $1 AND class.relname = ANY($2) AND class.relkind = 'r' AND NOT (class.relrowsecurity AND class.relforcerowsecurity
    AND EXISTS (
      SELECT FROM pg_policy AS policy WHERE policy.polrelid = class.oid
        AND policy.polname ~ '^tenants_[0-9]+$' AND substr(policy.polname, 9)::int >= ${POLICY_VERSION}
    ))`;
