/** The steps that bring a file from one format to the next. */
import { SESSION_MESSAGE } from '#core';

/** "pilo" in ASCII, at byte 68 of the file: what says that a database is a journal of ours. */
export const APPLICATION_ID = 0x70696c6f;

/** What paused runs wait for was in their entries alone. A pause is open that has no answer, unless its call has ended. */
const WAITS_AND_SIGNALS = `
  CREATE TABLE open_waits (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT,
    key TEXT,
    until INTEGER,
    body TEXT NOT NULL,
    UNIQUE (run, id)
  ) STRICT;
  CREATE INDEX open_waits_key ON open_waits (tenant, key, number) WHERE key IS NOT NULL;
  CREATE TABLE signals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    stored_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    given INTEGER NOT NULL DEFAULT 0,
    body TEXT,
    UNIQUE (tenant, key, id)
  ) STRICT;
  CREATE INDEX signals_kept ON signals (tenant, key, number) WHERE body IS NOT NULL;
  CREATE INDEX signals_over ON signals (until);
  CREATE INDEX runs_parked ON runs (agent, wake_at)
    WHERE owner IS NULL AND status IN ('waiting', 'paused') AND wake_at IS NOT NULL;
  WITH asked AS (
    SELECT runs.key AS run, runs.tenant, entries.id AS entry, entries.body, entries.body ->> '$.token' AS token,
      entries.body ->> '$.step' AS step, entries.body ->> '$.call' AS call,
      entries.body -> '$.payload' AS payload, entries.body -> '$.schema' AS schema,
      CAST(entries.body ->> '$.expiresAt' AS REAL) AS until
    FROM runs JOIN entries ON entries.id BETWEEN runs.key << 32 AND (runs.key << 32) + 4294967295
    WHERE status NOT IN ('finished', 'failed', 'cancelled') AND instr(entries.body, '"kind":"paused"') > 0
      AND json_valid(entries.body) AND entries.body ->> '$.kind' = 'paused' AND entries.body ->> '$.token' IS NOT NULL
  ), open AS (
    SELECT *, (
      SELECT coalesce(moved.body ->> '$.decision.tool', moved.body ->> ('$.decision.branches[' || call || '].tool'))
      FROM entries AS moved WHERE moved.id BETWEEN asked.run << 32 AND asked.entry AND call IS NOT NULL
        AND instr(moved.body, '"kind":"moved"') > 0 AND json_valid(moved.body) AND moved.body ->> '$.kind' = 'moved'
        AND moved.body ->> '$.step' = asked.step LIMIT 1
    ) AS tool
    FROM asked WHERE NOT EXISTS (
      SELECT 1 FROM entries AS later
      WHERE later.id BETWEEN asked.entry + 1 AND (asked.run << 32) + 4294967295
        AND (instr(later.body, '"kind":"resumed"') > 0 OR instr(later.body, '"kind":"call_ended"') > 0)
        AND json_valid(later.body) AND (
          (later.body ->> '$.kind' = 'resumed' AND later.body ->> '$.token' = asked.token)
          OR (later.body ->> '$.kind' = 'call_ended' AND later.body ->> '$.step' = asked.step AND later.body ->> '$.call' = asked.call)
        )
    )
  )
  INSERT OR IGNORE INTO open_waits (run, id, tenant, kind, reason, until, body)
  SELECT run, token, tenant, 'answer', body ->> '$.reason', CAST(until AS INTEGER) + (until > CAST(until AS INTEGER)),
    json_patch(
      json_patch('{}', json_object(
        'id', token, 'for', 'answer', 'requestedAt', body -> '$.at', 'until', body -> '$.expiresAt', 'step', step, 'call', call,
        'tool', tool, 'reason', body ->> '$.reason', 'approver', body ->> '$.approver'
      )),
      CASE
        WHEN payload IS NULL AND body -> '$.stored' IS NULL THEN '{}'
        WHEN payload IS NULL OR length(payload) > 8192 THEN '{"omits":["payload"]}'
        ELSE json_object('payload', json(payload))
      END
    )
  FROM open ORDER BY entry;
`;

/**
 * Step n brings a file from version n to n + 1; steps are never edited.
 *
 * Since version 7 an id of `entries` is the run's key and the entry's seq, 32 bits each: the entries of a run lie together, its head is
 * the last of them, and an append writes one page. `runs.head` is how many there were when the run's row was written last, so that a
 * run that was claimed, parked or ended since cannot lose its end unseen; `at` is the store's time of the append, 0 in older rows.
 * Until then `entries` was a log in the order of the commits, and each row pointed at the one before it of the same run.
 * `due_at` is when a run may be claimed: 0 now, NULL never by itself. `line` is what it is due for: 0 and 1 it is ready, 2 and 3 at a time, 1 and 3 it
 * was begun, and waits or is paused; 4 somebody has it, until its lease is over; NULL when it is never due by itself. A taken control keeps its id and loses its body;
 * since version 3 `controls` also holds messages between runs, which are not controls.
 * `artifact_rows` lists what `artifacts` holds without a look at the bytes; rows of before version 2 have the time 0.
 * Until version 9 the turns of a session were stored beside its runs, and until version 10 summaries of older ones.
 * `stored_at` is when a message was accepted; of those from before version 6 it is 0.
 * `work_left_at` is when a run was last taken from, or given back by, an owner that may be at its calls still; NULL never.
 * `turn` is the place of a run among the turns of its session. `waits` is 1 while the turns before it keep it from being due, or 2 when it
 * stands before all that were put last; 0 when its turn has come, and NULL for a run that waits for nobody. What people say of a session itself stands in `session_facts`.
 * `problem` is the error with which its last owner let go of a run, until somebody claims it.
 * `open_waits` has what the entries of each run wait for, less what a signal was delivered to; `body` is the row as the port has it. A signal without
 * a body was delivered, to `given` waits that have not given it back; its row stays, so that its id is known, until its time is over.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    priority INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'running',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    head INTEGER NOT NULL DEFAULT 0,
    first_entry INTEGER,
    last_entry INTEGER,
    signals INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    wake_at INTEGER DEFAULT 0,
    owner TEXT,
    lease_until INTEGER,
    due_at INTEGER AS (
      CASE WHEN status NOT IN ('running', 'paused') THEN NULL WHEN owner IS NOT NULL THEN lease_until ELSE wake_at END
    )
  ) STRICT;
  CREATE INDEX runs_due ON runs (due_at, priority DESC) WHERE due_at IS NOT NULL;
  CREATE INDEX runs_scope ON runs (tenant, user, session);
  CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    previous INTEGER,
    body TEXT NOT NULL
  ) STRICT;
  CREATE TABLE controls (
    run INTEGER NOT NULL REFERENCES runs (key),
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    body TEXT,
    PRIMARY KEY (run, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX controls_waiting ON controls (run, number) WHERE body IS NOT NULL;
  CREATE TABLE artifacts (
    key INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    ref TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    mime TEXT NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (scope, ref)
  ) STRICT;
  PRAGMA application_id = ${APPLICATION_ID};
  `,
  `
  CREATE TABLE artifact_rows (
    scope TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ref TEXT NOT NULL,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    file_name TEXT,
    source TEXT NOT NULL,
    PRIMARY KEY (scope, created_at DESC, ref)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO artifact_rows SELECT scope, 0, ref, mime, length(bytes), NULL, 'unknown' FROM artifacts;
  CREATE TABLE session_turns (
    scope TEXT NOT NULL,
    number INTEGER NOT NULL,
    run TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL,
    assistant TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (scope, number)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE session_summaries (
    scope TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    covers INTEGER NOT NULL,
    health TEXT NOT NULL,
    failures INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  DROP INDEX runs_due;
  ALTER TABLE runs DROP COLUMN due_at;
  ALTER TABLE runs ADD COLUMN planner TEXT NOT NULL DEFAULT '';
  ALTER TABLE runs ADD COLUMN parent TEXT;
  ALTER TABLE runs ADD COLUMN root TEXT;
  ALTER TABLE runs ADD COLUMN due_at INTEGER AS (
    CASE
      WHEN status IN ('finished', 'failed', 'cancelled') THEN NULL
      WHEN owner IS NOT NULL THEN lease_until
      ELSE wake_at
    END
  );
  UPDATE runs SET
    status = CASE WHEN status = 'running' AND fence = 0 THEN 'pending' ELSE status END,
    planner = coalesce(
      (SELECT body ->> '$.planner' FROM entries WHERE entries.id = runs.first_entry AND json_valid(body)), ''
    );
  CREATE INDEX runs_due ON runs (planner, due_at, priority DESC, key, tenant) WHERE due_at IS NOT NULL;
  CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;
  CREATE INDEX runs_root ON runs (root) WHERE root IS NOT NULL;
  ALTER TABLE controls ADD COLUMN capped INTEGER NOT NULL DEFAULT 1;
  `,
  `
  ALTER TABLE runs ADD COLUMN work_left_at INTEGER;
  `,
  `
  ALTER TABLE runs ADD COLUMN problem TEXT;
  `,
  `
  ALTER TABLE controls ADD COLUMN stored_at INTEGER NOT NULL DEFAULT 0;
  `,
  // When two rows have the same seq, the later one counts: a repair took the other one out of its run.
  `
  ALTER TABLE entries RENAME TO chained;
  CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    run INTEGER AS (id >> 32),
    seq INTEGER AS (id & 4294967295)
  ) STRICT;
  INSERT INTO entries (id, at, body)
    SELECT (last.run << 32) + last.seq, 0, chained.body
    FROM (
      SELECT run, seq, max(id) AS id FROM chained WHERE seq >= 1 GROUP BY run, seq ORDER BY run, seq
    ) AS last JOIN chained ON chained.id = last.id;
  DROP TABLE chained;
  ALTER TABLE runs DROP COLUMN first_entry;
  ALTER TABLE runs DROP COLUMN last_entry;
  `,
  // Runs are those of agents. The agent of a flow has the flow's own name.
  `
  ALTER TABLE runs RENAME COLUMN planner TO agent;
  UPDATE runs SET agent = substr(agent, 6) WHERE agent GLOB 'flow:*';
  `,
  // A tree is counted by its runs that have not ended.
  `
  DROP INDEX runs_root;
  CREATE INDEX runs_live ON runs (root) WHERE root IS NOT NULL AND status NOT IN ('finished', 'failed', 'cancelled');
  `,
  // What was said in a session is read from its runs.
  `
  ALTER TABLE session_summaries ADD COLUMN through TEXT NOT NULL DEFAULT '';
  ALTER TABLE session_summaries ADD COLUMN without TEXT NOT NULL DEFAULT '[]';
  UPDATE session_summaries AS summary SET through = coalesce((
    SELECT turn.run FROM session_turns AS turn JOIN runs ON runs.id = turn.run
    WHERE turn.scope = summary.scope AND turn.number < summary.covers ORDER BY runs.key DESC LIMIT 1
  ), '');
  UPDATE session_summaries AS summary SET without = (
    SELECT json_group_array(turn.run) FROM session_turns AS turn JOIN runs ON runs.id = turn.run
    WHERE turn.scope = summary.scope AND turn.number >= summary.covers
      AND runs.key < (SELECT key FROM runs WHERE id = summary.through)
  );
  ALTER TABLE session_summaries DROP COLUMN covers;
  DROP TABLE session_turns;
  `,
  // Turns of a conversation are numbered, and wait for each other.
  `
  ALTER TABLE runs ADD COLUMN turn INTEGER;
  ALTER TABLE runs ADD COLUMN waits INTEGER;
  UPDATE runs SET turn = numbered.turn FROM (
    SELECT runs.key, row_number() OVER (PARTITION BY tenant, user, session ORDER BY runs.key) AS turn
    FROM runs JOIN entries AS first ON first.id = (runs.key << 32) + 1
    WHERE parent IS NULL AND json_valid(first.body) AND coalesce(first.body ->> '$.conversation', 1) <> 0
  ) AS numbered WHERE numbered.key = runs.key;
  DROP INDEX runs_due;
  ALTER TABLE runs DROP COLUMN due_at;
  ALTER TABLE runs ADD COLUMN due_at INTEGER AS (
    CASE
      WHEN status IN ('finished', 'failed', 'cancelled') THEN NULL
      WHEN owner IS NOT NULL THEN lease_until
      WHEN waits > 0 THEN NULL
      ELSE wake_at
    END
  );
  CREATE INDEX runs_due ON runs (agent, due_at, priority DESC, key, tenant) WHERE due_at IS NOT NULL;
  CREATE INDEX runs_turns ON runs (tenant, user, session, turn) WHERE turn IS NOT NULL;
  CREATE INDEX runs_in_turn ON runs (tenant, user, session, turn)
    WHERE turn IS NOT NULL AND coalesce(waits, 0) = 0 AND status NOT IN ('finished', 'failed', 'cancelled');
  CREATE INDEX runs_waiting ON runs (tenant, user, session, turn)
    WHERE waits > 0 AND status NOT IN ('finished', 'failed', 'cancelled');
  CREATE INDEX controls_messages ON controls (id) WHERE id GLOB '${SESSION_MESSAGE}*';
  CREATE TABLE session_facts (
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    title TEXT,
    branch TEXT,
    PRIMARY KEY (tenant, user, session)
  ) STRICT, WITHOUT ROWID;
  `,
  // What older turns came to stands in the entries of a run that summed them up.
  `
  DROP TABLE session_summaries;
  `,
  // What the first entries of a run come to. The blocks of all its snapshots are the same ones.
  `
  CREATE TABLE snapshots (
    run INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    head INTEGER NOT NULL,
    body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE snapshot_blocks (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, number)
  ) STRICT;
  `,
  // Long-term memory. Each write makes a row with a number that was never used before; a namespace is a JSON list without its last bracket.
  `
  CREATE TABLE store_items (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    source TEXT,
    vector_index TEXT,
    vector BLOB,
    UNIQUE (namespace, key)
  ) STRICT;
  CREATE INDEX store_items_expiry ON store_items (expires_at) WHERE expires_at IS NOT NULL;
  `,
  WAITS_AND_SIGNALS,
  // What runs are found by, when they begin, the keys under which they were started, and what starts them again and again.
  `
  ALTER TABLE runs ADD COLUMN starts_at INTEGER;
  CREATE TABLE run_labels (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (name, value, run)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX run_labels_run ON run_labels (run);
  CREATE TABLE start_keys (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    number INTEGER NOT NULL,
    run TEXT NOT NULL,
    until INTEGER,
    PRIMARY KEY (tenant, kind, name, at, number)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX start_keys_run ON start_keys (run);
  CREATE INDEX start_keys_until ON start_keys (until) WHERE until IS NOT NULL;
  CREATE TABLE schedules (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    definition TEXT NOT NULL,
    times TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    changes INTEGER NOT NULL DEFAULT 0,
    paused INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    last_run TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (tenant, id)
  ) STRICT;
  CREATE INDEX schedules_due ON schedules (agent, next_at) WHERE next_at IS NOT NULL AND paused = 0;
  `,
  // Streams of runs. An id of `stream_rows` is the stream's key and the row's number, 32 bits each.
  `
  CREATE TABLE streams (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    rows INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    UNIQUE (run, name)
  ) STRICT;
  CREATE TABLE stream_rows (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    step INTEGER NOT NULL,
    call INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    value TEXT NOT NULL
  ) STRICT;
  `,
  // What passes in runs that are read in other processes: until when each is read, and what its readers are told on the way.
  `
  CREATE TABLE readers (run INTEGER PRIMARY KEY, until INTEGER NOT NULL) STRICT;
  CREATE TABLE passing (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    value TEXT NOT NULL
  ) STRICT;
  CREATE INDEX passing_run ON passing (run, number);
  `,
  // Lists of a tenant, and of a user, are in the order of their keys, whatever else is stored.
  `
  CREATE INDEX runs_tenant ON runs (tenant);
  CREATE INDEX runs_user ON runs (tenant, user);
  ALTER TABLE open_waits ADD COLUMN user TEXT NOT NULL DEFAULT '';
  UPDATE open_waits SET user = coalesce((SELECT user FROM runs WHERE runs.key = open_waits.run), '');
  CREATE INDEX open_waits_tenant ON open_waits (tenant);
  CREATE INDEX open_waits_user ON open_waits (tenant, user);
  `,
  // Each run that somebody may have to do something for stands in one line: a tenant that a claim leaves out is not read.
  `
  ALTER TABLE runs ADD COLUMN line INTEGER AS (
    CASE
      WHEN status IN ('finished', 'failed', 'cancelled') THEN NULL
      WHEN owner IS NOT NULL THEN 4
      WHEN waits > 0 OR wake_at IS NULL THEN NULL
      ELSE (wake_at > 0) * 2 + (status IN ('waiting', 'paused'))
    END
  );
  DROP INDEX runs_due;
  DROP INDEX runs_parked;
  CREATE INDEX runs_due ON runs (agent, line, due_at, priority DESC, key, tenant) WHERE line IS NOT NULL;
  CREATE INDEX runs_due_of ON runs (agent, line, tenant, wake_at, priority DESC, key) WHERE owner IS NULL;
  `,
];
