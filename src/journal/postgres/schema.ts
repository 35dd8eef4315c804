/**
 * The tables of a journal on Postgres, and how they come to the present version. Steps are only ever added: step n brings a schema from
 * version n to n + 1.
 *
 * What columns mean is what they mean in the SQLite file (`../sqlite/migrations.ts`), with these differences: `runs.head` is the seq of the
 * last entry, set by the same statement that adds entries; a run is in one of the indexes `runs_ready`, `runs_timed` and
 * `runs_leased` while somebody may have to do something for it, so that a claim never looks at runs that have ended; and a row of
 * `store_items` has its vector as bytes. The title of a session is JSON, since Postgres takes no text with the character U+0000. Times are milliseconds since the epoch, by the database's clock. Texts are compared by their bytes.
 */
import { SESSION_MESSAGE } from '#core';

export interface SchemaStep {
  readonly sql: string;
  /** True: code that knows only the versions before it cannot work with what it leaves. Absent: such processes go on beside newer ones. */
  readonly breaks?: true;
}

const ENDED = `status IN ('finished', 'failed', 'cancelled')`;

export const SCHEMA_STEPS: readonly SchemaStep[] = [
  {
    sql: `
CREATE TABLE {runs} (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  tenant text COLLATE "C" NOT NULL,
  "user" text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  parent text COLLATE "C",
  root text COLLATE "C",
  priority bigint NOT NULL,
  status text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  head bigint NOT NULL DEFAULT 0,
  signals bigint NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,
  wake_at bigint DEFAULT 0,
  owner text COLLATE "C",
  lease_until bigint,
  work_left_at bigint,
  problem text,
  turn bigint,
  waits smallint,
  starts_at bigint
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX runs_ready ON {runs} (agent, priority DESC, key)
  WHERE owner IS NULL AND wake_at = 0 AND coalesce(waits, 0) = 0 AND NOT (${ENDED});
CREATE INDEX runs_ready_of ON {runs} (agent, tenant, priority DESC, key)
  WHERE owner IS NULL AND wake_at = 0 AND coalesce(waits, 0) = 0 AND NOT (${ENDED});
CREATE INDEX runs_timed ON {runs} (agent, wake_at)
  WHERE owner IS NULL AND wake_at > 0 AND coalesce(waits, 0) = 0 AND NOT (${ENDED});
CREATE INDEX runs_parked ON {runs} (agent, wake_at)
  WHERE owner IS NULL AND status IN ('waiting', 'paused') AND wake_at IS NOT NULL AND coalesce(waits, 0) = 0;
CREATE INDEX runs_leased ON {runs} (lease_until) WHERE owner IS NOT NULL AND NOT (${ENDED});
CREATE INDEX runs_scope ON {runs} (tenant, "user", session);
CREATE INDEX runs_parent ON {runs} (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_live ON {runs} (root) WHERE root IS NOT NULL AND NOT (${ENDED});
CREATE INDEX runs_turns ON {runs} (tenant, "user", session, turn) WHERE turn IS NOT NULL;
CREATE INDEX runs_open_turns ON {runs} (tenant, "user", session, turn) WHERE turn IS NOT NULL AND NOT (${ENDED});
CREATE TABLE {entries} (
  run bigint NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (run, seq)
);
CREATE TABLE {controls} (
  run bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  stored_at bigint NOT NULL,
  capped boolean NOT NULL,
  body text,
  PRIMARY KEY (run, id)
);
CREATE INDEX controls_waiting ON {controls} (run, number) WHERE body IS NOT NULL;
CREATE INDEX controls_messages ON {controls} (id) WHERE starts_with(id, '${SESSION_MESSAGE}');
CREATE TABLE {session_facts} (
  tenant text COLLATE "C" NOT NULL,
  "user" text COLLATE "C" NOT NULL,
  session text COLLATE "C" NOT NULL,
  title text,
  branch text,
  PRIMARY KEY (tenant, "user", session)
);
CREATE TABLE {snapshots} (run bigint PRIMARY KEY, version bigint NOT NULL, head bigint NOT NULL, body bytea NOT NULL);
CREATE TABLE {snapshot_blocks} (run bigint NOT NULL, number bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (run, number));
CREATE TABLE {artifacts} (
  scope text COLLATE "C" NOT NULL,
  ref text COLLATE "C" NOT NULL,
  sha256 text NOT NULL,
  mime text NOT NULL,
  size bigint NOT NULL,
  file_name text,
  source text NOT NULL,
  created_at bigint NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (scope, ref)
);
CREATE INDEX artifacts_newest ON {artifacts} (scope, created_at DESC, ref);
CREATE TABLE {store_items} (
  revision bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint,
  source text,
  vector_index text COLLATE "C",
  vector bytea,
  UNIQUE (namespace, key)
);
CREATE INDEX store_items_expiry ON {store_items} (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE {open_waits} (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  reason text COLLATE "C",
  key text COLLATE "C",
  until bigint,
  body text NOT NULL,
  UNIQUE (run, id)
);
CREATE INDEX open_waits_key ON {open_waits} (tenant, key, number) WHERE key IS NOT NULL;
CREATE TABLE {signals} (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  stored_at bigint NOT NULL,
  until bigint NOT NULL,
  given bigint NOT NULL DEFAULT 0,
  body text,
  UNIQUE (tenant, key, id)
);
CREATE INDEX signals_kept ON {signals} (tenant, key, number) WHERE body IS NOT NULL;
CREATE INDEX signals_over ON {signals} (until);
CREATE TABLE {run_labels} (
  name text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  run bigint NOT NULL,
  PRIMARY KEY (name, value, run)
);
CREATE INDEX run_labels_run ON {run_labels} (run);
CREATE TABLE {start_keys} (
  tenant text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  number bigint NOT NULL,
  run text COLLATE "C" NOT NULL,
  until bigint,
  PRIMARY KEY (tenant, kind, name, at, number)
);
CREATE INDEX start_keys_run ON {start_keys} (run);
CREATE INDEX start_keys_until ON {start_keys} (until) WHERE until IS NOT NULL;
CREATE TABLE {schedules} (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  definition text NOT NULL,
  times text NOT NULL,
  revision bigint NOT NULL DEFAULT 1,
  changes bigint NOT NULL DEFAULT 0,
  paused boolean NOT NULL DEFAULT false,
  next_at bigint,
  last_run text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  UNIQUE (tenant, id)
);
CREATE INDEX schedules_due ON {schedules} (agent, next_at) WHERE next_at IS NOT NULL AND NOT paused;
CREATE TABLE {streams} (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  rows bigint NOT NULL DEFAULT 0,
  closed boolean NOT NULL DEFAULT false,
  UNIQUE (run, name)
);
CREATE TABLE {stream_rows} (
  stream bigint NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  step bigint NOT NULL,
  call bigint NOT NULL,
  attempt bigint NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (stream, number)
);
`,
  },
  {
    sql: `
CREATE TABLE {readers} (
  run bigint PRIMARY KEY,
  until bigint NOT NULL
);
CREATE TABLE {passing} (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run bigint NOT NULL,
  fence bigint NOT NULL,
  value text NOT NULL
);
CREATE INDEX passing_run ON {passing} (run, number);
`,
  },
  {
    // Lists of a tenant, and of a user, are in the order of their keys.
    sql: `
CREATE INDEX runs_tenant ON {runs} (tenant, key);
CREATE INDEX runs_user ON {runs} (tenant, "user", key);
CREATE INDEX open_waits_tenant ON {open_waits} (tenant, number);
`,
  },
  {
    // A claim goes from tenant to tenant, where those that it leaves out have a backlog. Journals whose tenants are kept apart had them before.
    sql: `
CREATE INDEX IF NOT EXISTS runs_timed_of ON {runs} (agent, tenant, wake_at)
  WHERE owner IS NULL AND wake_at > 0 AND coalesce(waits, 0) = 0 AND NOT (${ENDED});
CREATE INDEX IF NOT EXISTS runs_parked_of ON {runs} (agent, tenant, wake_at)
  WHERE owner IS NULL AND status IN ('waiting', 'paused') AND wake_at IS NOT NULL AND coalesce(waits, 0) = 0;
`,
  },
];

/** The newest version that this code knows. */
export const POSTGRES_FORMAT: number = SCHEMA_STEPS.length;

/** The oldest version whose code can work with a schema of the newest one. */
export const OLDEST_COMPATIBLE: number = SCHEMA_STEPS.findLastIndex(({ breaks }) => breaks === true) + 1;
