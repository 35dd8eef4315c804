/** Schedules, and starts under keys, of a journal in memory. */
import { deepFreeze, type StartKey } from '#core';
import { pageSize } from './rules.ts';
import type {
  DueSchedules,
  ScheduleMove,
  SchedulePut,
  ScheduleQuery,
  ScheduleStore,
  StoredSchedule,
} from './schedules-port.ts';
import { type KeyDecision, type KeyRow, redefined, rowsThatCount, scheduleChanged } from './start-rules.ts';

interface MemoryDeps {
  assertOpen(): void;
  now(): number;
}

export class MemorySchedules implements ScheduleStore {
  readonly #deps: MemoryDeps;
  /** By tenant and id. */
  readonly #schedules = new Map<string, StoredSchedule>();
  #marks = 0;

  constructor(deps: MemoryDeps) {
    this.#deps = deps;
  }

  async put(put: SchedulePut): Promise<StoredSchedule> {
    const { mark, ...given } = put;
    this.#deps.assertOpen();
    const now = this.#deps.now();
    const before = this.#schedules.get(keyOf(given.tenant, given.id));
    if (before === undefined) {
      if (typeof mark === 'string') throw scheduleChanged(given);
      return this.#set({ ...given, revision: 1, isPaused: false, mark: '', createdAt: now, updatedAt: now });
    }
    const next = redefined(before, put);
    if (next === undefined) return before;
    const [revision, updatedAt] = [before.revision + 1, Math.max(before.updatedAt, now)];
    return this.#set({ ...before, ...given, ...next, revision, updatedAt });
  }

  #set(schedule: StoredSchedule): StoredSchedule {
    this.#marks += 1;
    const stored = deepFreeze({ ...schedule, mark: String(this.#marks) });
    this.#schedules.set(keyOf(schedule.tenant, schedule.id), stored);
    return stored;
  }

  async get(tenant: string, id: string): Promise<StoredSchedule | undefined> {
    this.#deps.assertOpen();
    return this.#schedules.get(keyOf(tenant, id));
  }

  async list(query: ScheduleQuery): Promise<StoredSchedule[]> {
    this.#deps.assertOpen();
    const limit = pageSize(query);
    const { tenant, after = '' } = query;
    const own = [...this.#schedules.values()].filter((each) => each.tenant === tenant && each.id > after);
    return own.sort(byPlace).slice(0, limit);
  }

  async due(
    agents: readonly string[],
    limit: number,
    after?: Pick<StoredSchedule, 'tenant' | 'id'>,
  ): Promise<DueSchedules> {
    this.#deps.assertOpen();
    const readAt = this.#deps.now();
    const due: StoredSchedule[] = [];
    let next: number | null = null;
    for (const schedule of this.#schedules.values()) {
      const { nextAt, isPaused, agent } = schedule;
      if (nextAt === null || isPaused || !agents.includes(agent)) continue;
      if (nextAt > readAt) next = Math.min(next ?? nextAt, nextAt);
      else if (after === undefined || byPlace(schedule, after) > 0) due.push(schedule);
    }
    return { due: due.sort(byPlace).slice(0, limit), nextAt: next, readAt };
  }

  async unfired(agents: readonly string[], lateMs: number, limit: number): Promise<StoredSchedule[]> {
    this.#deps.assertOpen();
    const before = this.#deps.now() - lateMs;
    const isLate = ({ nextAt, isPaused, agent }: StoredSchedule): boolean =>
      nextAt !== null && nextAt <= before && !isPaused && !agents.includes(agent);
    return [...this.#schedules.values()].filter(isLate).sort(byPlace).slice(0, limit);
  }

  async move(move: ScheduleMove & { readonly isPaused?: boolean }): Promise<boolean> {
    this.#deps.assertOpen();
    if (!this.#isAsRead(move)) return false;
    this.apply(move);
    return true;
  }

  async delete(tenant: string, id: string): Promise<boolean> {
    this.#deps.assertOpen();
    return this.#schedules.delete(keyOf(tenant, id));
  }

  #isAsRead({ tenant, id, mark }: ScheduleMove): boolean {
    return this.#schedules.get(keyOf(tenant, id))?.mark === mark;
  }

  /** @throws PilotageError `schedule_changed`. */
  assertAsRead(move: ScheduleMove): void {
    if (!this.#isAsRead(move)) throw scheduleChanged(move);
  }

  apply({ tenant, id, nextAt, run, isPaused }: ScheduleMove & { readonly isPaused?: boolean }): void {
    const before = this.#schedules.get(keyOf(tenant, id));
    if (before === undefined) return;
    this.#set({
      ...before,
      nextAt,
      ...(run === undefined ? {} : { lastRun: run }),
      isPaused: isPaused ?? before.isPaused,
      updatedAt: Math.max(before.updatedAt, this.#deps.now()),
    });
  }
}

function keyOf(tenant: string, id: string): string {
  return JSON.stringify([tenant, id]);
}

function byPlace(one: Pick<StoredSchedule, 'tenant' | 'id'>, other: Pick<StoredSchedule, 'tenant' | 'id'>): number {
  if (one.tenant !== other.tenant) return one.tenant < other.tenant ? -1 : 1;
  return one.id === other.id ? 0 : one.id < other.id ? -1 : 1;
}

interface StoredKeyRow extends KeyRow {
  /** When it is of no use any more; `null`: when there is a newer one. */
  readonly until: number | null;
}

/** Which runs were started under which keys, the newest first. */
export class MemoryKeys {
  readonly #rows = new Map<string, StoredKeyRow[]>();

  rows(tenant: string, key: StartKey): readonly StoredKeyRow[] {
    return this.#rows.get(placeOf(tenant, key)) ?? [];
  }

  add(tenant: string, key: StartKey, run: string, { at, until }: Extract<KeyDecision, { do: 'start' }>): void {
    const kept = this.rows(tenant, key).slice(0, rowsThatCount(key) - 1);
    this.#rows.set(placeOf(tenant, key), [{ at, run, until }, ...kept]);
  }

  /** The runs are gone, or what they were started with. @param now given: those that still count then are left. */
  forget(runs: ReadonlySet<string>, now: number = Number.POSITIVE_INFINITY): void {
    for (const [place, rows] of this.#rows) {
      const left = rows.filter(({ run, until }) => !runs.has(run) || (until !== null && until >= now));
      if (left.length === 0) this.#rows.delete(place);
      else if (left.length < rows.length) this.#rows.set(place, left);
    }
  }
}

function placeOf(tenant: string, { kind, key }: StartKey): string {
  return JSON.stringify([tenant, kind, key]);
}
