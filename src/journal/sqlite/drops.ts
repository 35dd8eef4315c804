/** Removes runs with all that hangs on them, and what is left of a session without runs. Called inside the writer's transaction. */
import type { DatabaseSync } from 'node:sqlite';
import type { Scope } from '#core';
import type { StoredMessage } from '../port.ts';
import type { DroppedRun } from '../prune-port.ts';
import { EVENT_MESSAGE, eventsIn } from '../waiting.ts';
import { ArtifactDrops } from './artifact-drops.ts';
import { DROP_PASSING, DROP_READERS } from './passing.ts';
import type { SqliteStarts } from './starts.ts';
import { type PreparedStatement, prepared } from './statements.ts';
import { DROP_STREAM_ROWS, DROP_STREAMS } from './streams.ts';
import type { SqliteWaits } from './waits.ts';

const IN_SCOPE = 'tenant = :tenant AND user = :user AND session = :session';

function statementsOn(db: DatabaseSync) {
  const sql = prepared(db);
  return {
    events: sql(`
      SELECT id, body AS text FROM controls
      WHERE run = ? AND id >= '${EVENT_MESSAGE}' AND id < 'event;' AND body IS NOT NULL ORDER BY number`),
    controls: sql('DELETE FROM controls WHERE run = ?'),
    entries: sql('DELETE FROM entries WHERE id BETWEEN (:key << 32) AND (:key << 32) + 4294967295'),
    snapshot: sql('DELETE FROM snapshots WHERE run = ?'),
    blocks: sql('DELETE FROM snapshot_blocks WHERE run = ?'),
    streamRows: sql(DROP_STREAM_ROWS),
    streams: sql(DROP_STREAMS),
    passing: sql(DROP_PASSING),
    readers: sql(DROP_READERS),
    run: sql('DELETE FROM runs WHERE key = ?'),
    other: sql(`
      SELECT 1 AS found FROM runs WHERE ${IN_SCOPE} AND key NOT IN (SELECT value FROM json_each(:keys)) LIMIT 1`),
    facts: sql(`DELETE FROM session_facts WHERE ${IN_SCOPE}`),
  } satisfies Record<string, PreparedStatement>;
}

export class SqliteDrops {
  readonly #sql: ReturnType<typeof statementsOn>;
  readonly #starts: SqliteStarts;
  readonly #artifacts: ArtifactDrops;

  constructor(db: DatabaseSync, starts: SqliteStarts) {
    this.#sql = statementsOn(db);
    this.#artifacts = new ArtifactDrops(db);
    this.#starts = starts;
  }

  /**
   * Signals that they have not taken go to whoever else waits for them.
   * @param forget of each run: what is to become of the keys under which it was started.
   * @returns the runs that have got one.
   */
  runs(
    runs: readonly DroppedRun[],
    waits: SqliteWaits,
    now: number,
    forget: (starts: SqliteStarts, run: string) => void,
  ): readonly string[] {
    // First, so that none of them gets what another one gives back.
    for (const { key } of runs) waits.replace(key, [], now);
    const told = runs.flatMap(({ key }) => {
      return waits.giveBack(key, eventsIn(this.#sql.events().all<StoredMessage>(key)), now);
    });
    for (const { key, id } of runs) {
      this.#starts.dropLabels(key);
      forget(this.#starts, id);
      this.#sql.controls().run(key);
      this.#sql.entries().run({ key });
      this.#sql.snapshot().run(key);
      this.#sql.blocks().run(key);
      this.#sql.streamRows().run(key);
      this.#sql.streams().run(key);
      this.#sql.passing().run(key);
      this.#sql.readers().run(key);
      this.#sql.run().run(key);
    }
    return told;
  }

  /** Whether the session has runs beside these. */
  hasOthers({ tenant, user, session }: Scope, runs: readonly DroppedRun[] = []): boolean {
    const keys = JSON.stringify(runs.map(({ key }) => key));
    return this.#sql.other().get({ tenant, user, session, keys }) !== undefined;
  }

  /**
   * Some of what the session has beside its runs.
   * @param before given: younger artifacts stay, which may be for a run that is not stored yet.
   * @returns whether that was all.
   */
  session({ tenant, user, session }: Scope, before: number = Number.MAX_SAFE_INTEGER): boolean {
    this.#sql.facts().run({ tenant, user, session });
    return this.#artifacts.ofSession({ tenant, user, session }, before).isLast;
  }
}
