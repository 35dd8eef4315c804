/** The statements on schedules. What moves one on in the commit of its run is called inside the writer's transaction. */
import type { DatabaseSync } from 'node:sqlite';
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
import { atMost, type PreparedStatement, prepared } from './statements.ts';
import type { StoreAccess } from './stores.ts';

const IS_ACTIVE = 'paused = 0 AND agent IN (SELECT value FROM json_each(:agents))';

function statementsOn(db: DatabaseSync) {
  const sql = prepared(db);
  return {
    find: sql('SELECT * FROM schedules WHERE tenant = :tenant AND id = :id'),
    list: sql(`SELECT * FROM schedules WHERE tenant = :tenant AND id > :after ORDER BY id ${atMost(':limit')}`),
    due: sql(`
      SELECT * FROM schedules WHERE ${IS_ACTIVE} AND next_at <= :now AND (tenant, id) > (:tenant, :id)
      ORDER BY tenant, id ${atMost(':limit')}`),
    next: sql(`SELECT min(next_at) AS at FROM schedules WHERE ${IS_ACTIVE} AND next_at > :now`),
    unfired: sql(`
      SELECT * FROM schedules WHERE paused = 0 AND next_at <= :before AND agent NOT IN (SELECT value FROM json_each(:agents))
      ORDER BY tenant, id ${atMost(':limit')}`),
    insert: sql(`
      INSERT INTO schedules (tenant, id, agent, definition, times, next_at, created_at, updated_at)
      VALUES (:tenant, :id, :agent, :definition, :times, :nextAt, :now, :now)`),
    define: sql(`
      UPDATE schedules SET agent = :agent, definition = :definition, times = :times, next_at = :nextAt,
        revision = revision + 1, changes = changes + 1, updated_at = max(updated_at, :now)
      WHERE key = :key`),
    move: sql(`
      UPDATE schedules SET next_at = :nextAt, last_run = coalesce(:run, last_run), paused = coalesce(:paused, paused),
        changes = changes + 1, updated_at = max(updated_at, :now)
      WHERE tenant = :tenant AND id = :id AND key || ':' || changes = :mark`),
    delete: sql('DELETE FROM schedules WHERE tenant = :tenant AND id = :id'),
  } satisfies Record<string, PreparedStatement>;
}

export class SqliteSchedules implements ScheduleStore {
  readonly #sql: ReturnType<typeof statementsOn>;
  readonly #access: StoreAccess;
  readonly #now: () => number;

  constructor(db: DatabaseSync, access: StoreAccess, now: () => number) {
    this.#sql = statementsOn(db);
    this.#access = access;
    this.#now = now;
  }

  async put(given: SchedulePut): Promise<StoredSchedule> {
    const { tenant, id, agent, times, nextAt, mark } = given;
    const definition = JSON.stringify(given.definition);
    return this.#access.write((now) => {
      const row = this.#find(tenant, id);
      if (row === undefined) {
        if (typeof mark === 'string') throw scheduleChanged(given);
        this.#sql.insert().run({ tenant, id, agent, definition, times, nextAt, now });
        return this.#stored(tenant, id);
      }
      const before = storedScheduleOf(row);
      const next = redefined(before, given);
      if (next === undefined) return before;
      this.#sql.define().run({ key: row.key, agent, definition, times, ...next, now });
      return this.#stored(tenant, id);
    });
  }

  async get(tenant: string, id: string): Promise<StoredSchedule | undefined> {
    return this.#access.read(() => {
      const row = this.#find(tenant, id);
      return row && storedScheduleOf(row);
    });
  }

  async list(query: ScheduleQuery): Promise<StoredSchedule[]> {
    const { tenant, after = '' } = query;
    const limit = pageSize(query);
    return this.#access.read(() => this.#sql.list().all<ScheduleRow>({ tenant, after, limit }).map(storedScheduleOf));
  }

  async due(
    agents: readonly string[],
    limit: number,
    { tenant, id }: Pick<StoredSchedule, 'tenant' | 'id'> = { tenant: '', id: '' },
  ): Promise<DueSchedules> {
    return this.#access.read(() => {
      const now = this.#now();
      const named = JSON.stringify(agents);
      const rows = this.#sql.due().all<ScheduleRow>({ agents: named, now, tenant, id, limit });
      const next = this.#sql.next().get<{ at: number | null }>({ agents: named, now });
      return { due: rows.map(storedScheduleOf), nextAt: next?.at ?? null, readAt: now };
    });
  }

  async unfired(agents: readonly string[], lateMs: number, limit: number): Promise<StoredSchedule[]> {
    return this.#access.read(() => {
      const asked = { agents: JSON.stringify(agents), before: this.#now() - lateMs, limit };
      return this.#sql.unfired().all<ScheduleRow>(asked).map(storedScheduleOf);
    });
  }

  async move(move: ScheduleMove & { readonly isPaused?: boolean }): Promise<boolean> {
    return this.#access.write((now) => this.#move(move, now));
  }

  async delete(tenant: string, id: string): Promise<boolean> {
    return this.#access.write(() => this.#sql.delete().run({ tenant, id }).changes > 0);
  }

  /** In the commit of the run. @throws PilotageError `schedule_changed`, before anything is changed. */
  moveOn(move: ScheduleMove, now: number): void {
    if (!this.#move(move, now)) throw scheduleChanged(move);
  }

  #move(
    { tenant, id, mark, nextAt, run, isPaused }: ScheduleMove & { readonly isPaused?: boolean },
    now: number,
  ): boolean {
    const paused = isPaused === undefined ? null : Number(isPaused);
    return this.#sql.move().run({ tenant, id, mark, nextAt, run: run ?? null, paused, now }).changes > 0;
  }

  #find(tenant: string, id: string): ScheduleRow | undefined {
    return this.#sql.find().get<ScheduleRow>({ tenant, id });
  }

  #stored(tenant: string, id: string): StoredSchedule {
    return storedScheduleOf(this.#find(tenant, id) as ScheduleRow);
  }
}
