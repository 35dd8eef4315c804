/** The statements on schedules. What moves one on in the commit of its run is called inside that transaction. */
import { pageSize } from '../rules.ts';
import type {
  DueSchedules,
  ScheduleMove,
  SchedulePut,
  ScheduleQuery,
  ScheduleStore,
  StoredSchedule,
} from '../schedules-port.ts';
import { redefined, scheduleChanged } from '../start-rules.ts';
import { type ScheduleRow, storedScheduleOf } from '../stored-rows.ts';
import { type Database, NOW_1, type Sql, type SqlValue } from './database.ts';

interface DueRow extends Omit<ScheduleRow, 'key'> {
  readonly read_at: number;
  readonly first_at: number | null;
  readonly key: number | null;
}

type Move = ScheduleMove & { readonly isPaused?: boolean };

const COLUMNS =
  'key, tenant, id, agent, definition, times, revision, changes, paused, next_at, last_run, created_at, updated_at';
const FIND = `SELECT ${COLUMNS} FROM {schedules} WHERE tenant = $1 AND id = $2`;
const LIST = `
  SELECT ${COLUMNS} FROM {schedules} WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3::bigint`;
/** One row of nothing but times when none is due. Each agent's next one is found in the index by itself. */
const DUE = `
  WITH moment AS MATERIALIZED (SELECT ${NOW_1} AS now)
  SELECT moment.now AS read_at, following.first_at, due.*
  FROM moment CROSS JOIN LATERAL (
    SELECT min(next.next_at) AS first_at FROM unnest($2::text[]) AS named (agent) CROSS JOIN LATERAL (
      SELECT next_at FROM {schedules} WHERE NOT paused AND agent = named.agent AND next_at > moment.now
      ORDER BY next_at LIMIT 1
    ) AS next
  ) AS following LEFT JOIN LATERAL (
    SELECT ${COLUMNS} FROM {schedules}
    WHERE NOT paused AND agent = ANY($2::text[]) AND next_at <= moment.now AND (tenant, id) > ($3, $4)
    ORDER BY tenant, id LIMIT $5::bigint
  ) AS due ON TRUE
  ORDER BY due.tenant, due.id`;
const UNFIRED = `
  SELECT ${COLUMNS} FROM {schedules}
  WHERE NOT paused AND agent <> ALL($2::text[]) AND next_at <= ${NOW_1} - $3::bigint
  ORDER BY tenant, id LIMIT $4::bigint`;
const INSERT = `
  INSERT INTO {schedules} (tenant, id, agent, definition, times, next_at, created_at, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT (tenant, id) DO NOTHING RETURNING ${COLUMNS}`;
const DEFINE = `
  UPDATE {schedules} SET agent = $2, definition = $3, times = $4, next_at = $5, revision = revision + 1, changes = changes + 1,
    updated_at = greatest(updated_at, $6)
  WHERE key = $1 RETURNING ${COLUMNS}`;
const moveAt = (now: string): string => `
  UPDATE {schedules} SET next_at = $4, last_run = coalesce($5, last_run), paused = coalesce($6::boolean, paused),
    changes = changes + 1, updated_at = greatest(updated_at, ${now})
  WHERE tenant = $2 AND id = $3 AND key || ':' || changes = $7`;
/** The first parameter is the time of the transaction, or what the journal's own clock says where it has one. */
const MOVE_ON = moveAt('$1');
const MOVE = moveAt(NOW_1);
const DELETE = 'DELETE FROM {schedules} WHERE tenant = $1 AND id = $2';

export class PostgresSchedules implements ScheduleStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  put(given: SchedulePut): Promise<StoredSchedule> {
    const { tenant, id, agent, times, nextAt, mark } = given;
    const definition = JSON.stringify(given.definition);
    return this.#database.write([], async (sql, { now }) => {
      for (;;) {
        if (typeof mark !== 'string') {
          const made = await sql.row<ScheduleRow>(INSERT, tenant, id, agent, definition, times, nextAt, now);
          if (made !== undefined) return storedScheduleOf(made);
        }
        const row = await sql.row<ScheduleRow>(`${FIND} FOR UPDATE`, tenant, id);
        // Somebody has deleted it in between.
        if (row === undefined && typeof mark === 'string') throw scheduleChanged(given);
        if (row === undefined) continue;
        const before = storedScheduleOf(row);
        const next = redefined(before, given);
        if (next === undefined) return before;
        const values = [row.key, agent, definition, times, next.nextAt, now] as const;
        return storedScheduleOf((await sql.row<ScheduleRow>(DEFINE, ...values)) as ScheduleRow);
      }
    });
  }

  get(tenant: string, id: string): Promise<StoredSchedule | undefined> {
    return this.#database.read(async (sql) => {
      const row = await sql.row<ScheduleRow>(FIND, tenant, id);
      return row && storedScheduleOf(row);
    });
  }

  async list(query: ScheduleQuery): Promise<StoredSchedule[]> {
    const { tenant, after = '' } = query;
    const limit = pageSize(query);
    const rows = await this.#database.read((sql) => sql.rows<ScheduleRow>(LIST, tenant, after, limit));
    return rows.map(storedScheduleOf);
  }

  async due(
    agents: readonly string[],
    limit: number,
    { tenant, id }: Pick<StoredSchedule, 'tenant' | 'id'> = { tenant: '', id: '' },
  ): Promise<DueSchedules> {
    const { given } = this.#database;
    const rows = await this.#database.read((sql) => sql.rows<DueRow>(DUE, given, agents, tenant, id, limit));
    const [{ read_at: readAt, first_at: nextAt }] = rows as [DueRow];
    const due = rows.flatMap(({ key, ...row }) => (key === null ? [] : [storedScheduleOf({ key, ...row })]));
    return { due, nextAt, readAt };
  }

  async unfired(agents: readonly string[], lateMs: number, limit: number): Promise<StoredSchedule[]> {
    const { given } = this.#database;
    const rows = await this.#database.read((sql) => sql.rows<ScheduleRow>(UNFIRED, given, agents, lateMs, limit));
    return rows.map(storedScheduleOf);
  }

  async move(move: Move): Promise<boolean> {
    const { given } = this.#database;
    return this.#database.read(async (sql) => (await sql.run(MOVE, given, ...valuesOf(move))) > 0);
  }

  async delete(tenant: string, id: string): Promise<boolean> {
    return this.#database.read(async (sql) => (await sql.run(DELETE, tenant, id)) > 0);
  }
}

/**
 * In the commit of the run: of two that have read the schedule alike, the second waits for the first.
 * @throws PilotageError `schedule_changed`.
 */
export async function moveOn(sql: Sql, move: ScheduleMove, now: number): Promise<void> {
  if ((await sql.run(MOVE_ON, now, ...valuesOf(move))) === 0) throw scheduleChanged(move);
}

function valuesOf({ tenant, id, mark, nextAt, run, isPaused }: Move): readonly SqlValue[] {
  return [tenant, id, nextAt, run ?? null, isPaused ?? null, mark];
}
