/** Schedules, as a store keeps them: the part of the port that knows what starts runs again and again. */
import type { JsonObject } from '#core';

/** A schedule as the store keeps it. What its definition says is known to the runtime alone. */
export interface StoredSchedule {
  readonly tenant: string;
  /** Unique in its tenant. */
  readonly id: string;
  /** Runtimes that know this agent fire it. */
  readonly agent: string;
  readonly definition: JsonObject;
  /** What its fire times follow from. */
  readonly times: string;
  /** Counts its definitions, from 1. */
  readonly revision: number;
  readonly isPaused: boolean;
  /** The fire time that comes next, or that nobody has dealt with yet. Milliseconds since the epoch; `null`: there is none. */
  readonly nextAt: number | null;
  /** The run that it has started last. */
  readonly lastRun?: string;
  /** Another one after each change, also when the schedule was deleted and made anew. */
  readonly mark: string;
  readonly createdAt: number;
  /** When it was changed last, by the clock that was furthest ahead of those that have changed it. */
  readonly updatedAt: number;
}

export interface SchedulePut
  extends Pick<StoredSchedule, 'tenant' | 'id' | 'agent' | 'definition' | 'times' | 'nextAt'> {
  /** The `mark` of the schedule that was there when `nextAt` was worked out; `null`: there was none. Absent: it is not asked. */
  readonly mark?: string | null;
}

/** The schedule has dealt with its fire times up to, and without, `nextAt`. */
export interface ScheduleMove {
  readonly tenant: string;
  readonly id: string;
  /** As it was read: `schedule_changed` otherwise. */
  readonly mark: string;
  readonly nextAt: number | null;
  /** The run that was started. Absent: none was. */
  readonly run?: string;
}

export interface ScheduleQuery {
  readonly tenant: string;
  /** How many schedules a page has, by their ids. Default 50, at most 200. */
  readonly limit?: number;
  /** The id of the last schedule of the page before. */
  readonly after?: string;
}

export interface DueSchedules {
  /** Those of which a fire time has come, by tenant and id. */
  readonly due: readonly StoredSchedule[];
  /** The first fire time of the others, if there is any. */
  readonly nextAt: number | null;
  /** When it was asked, by the store's clock. */
  readonly readAt: number;
}

export interface ScheduleStore {
  /**
   * Stores a schedule. The same definition again changes nothing; another one is another revision, which is paused when the one before was,
   * and keeps the fire time that comes next when its `times` are the same.
   * @throws PilotageError `schedule_changed` when it is gone, or its `times` are others and it is not as `nextAt` was worked out for: times
   * that it has fired meanwhile must not come again.
   */
  put(schedule: SchedulePut): Promise<StoredSchedule>;
  get(tenant: string, id: string): Promise<StoredSchedule | undefined>;
  /** @throws PilotageError `invalid_config` for a page over 200 or below 1. */
  list(query: ScheduleQuery): Promise<StoredSchedule[]>;
  /** Those of these agents that are not paused. @param after the last one of the page before. */
  due(agents: readonly string[], limit: number, after?: Pick<StoredSchedule, 'tenant' | 'id'>): Promise<DueSchedules>;
  /** Those of all other agents, not paused, of which a fire time came `lateMs` ago or earlier, by tenant and id. */
  unfired(agents: readonly string[], lateMs: number, limit: number): Promise<StoredSchedule[]>;
  /** Moves it on without a run, or pauses it, or lets it go on. @returns false when it is not as it was read. */
  move(move: ScheduleMove & { readonly isPaused?: boolean }): Promise<boolean>;
  /** Its runs stay. @returns whether there was one. */
  delete(tenant: string, id: string): Promise<boolean>;
}
