/** The schedules of the journal: what starts runs again and again, or says something to a session. */
import {
  assertIdentity,
  assertOptions,
  defined,
  InOrder,
  type JsonObject,
  mapTexts,
  type OptionShape,
  PilotageError,
} from '#core';
import type { ScheduleQuery, StoredSchedule } from '#journal';
import { assertStart, type Starting } from './new-run.ts';
import { Run } from './run.ts';
import type { RunHost } from './run-host.ts';
import {
  assertScheduleId,
  readDefinition,
  type ScheduleOptions,
  type ScheduleRecord,
  scheduleRecord,
  startOptionsOf,
  storedDefinition,
} from './schedule-definition.ts';
import { entryOf, fire, fireId, runsUnderWay } from './schedule-fire.ts';
import type { ScheduleTicker } from './schedule-ticker.ts';
import { SCHEDULED_RUN } from './start-options.ts';

export interface OfTenant {
  /** Default `local`. */
  readonly tenant?: string;
}

export interface ScheduleListOptions extends OfTenant {
  /** How many schedules a page has, by their ids. Default 50, at most 200. */
  readonly limit?: number;
  /** The id of the last schedule of the page before. */
  readonly after?: string;
}

const OF_TENANT: OptionShape<OfTenant> = { tenant: 'text?' };
const LIST: OptionShape<ScheduleListOptions> = { tenant: 'text?', limit: 'any?', after: 'text?' };
/** When many processes change a schedule at the same moment, one is first each time, and the others try again: so many may change it at once. */
const MOST_TRIES = 1_000;

interface Parts {
  readonly host: RunHost;
  readonly starting: Starting;
  readonly ticker: ScheduleTicker;
}

export class Schedules {
  readonly #parts: () => Parts;
  readonly #order = new InOrder();

  /** @param parts throws `runtime_closed` once the runtime is closed. */
  constructor(parts: () => Parts) {
    this.#parts = parts;
  }

  /**
   * Stores a schedule. The same one again changes nothing, so that every start of a program may put it; another definition under its id is
   * another revision, and a paused schedule stays paused.
   * @throws PilotageError `invalid_config`, `identity_required`, `agent_unknown`, or what a start with these options throws.
   */
  async put(options: ScheduleOptions): Promise<ScheduleRecord> {
    const { host, starting, ticker } = this.#parts();
    const { tenant, definition: given } = readDefinition(options);
    const { id } = options;
    const { agents } = starting;
    const { agent } = options.agent === undefined ? agents.default : agents.named(options.agent);
    const definition = mapTexts(storedDefinition(given), host.deps.redaction.known) as JsonObject;
    const now = host.deps.clock.now();
    // What would be wrong at each fire is refused here.
    assertStart(given.query, startOptionsOf({ id, agent, definition }, now));
    await entryOf(
      starting,
      { tenant, id, agent, definition },
      { name: fireId({ tenant, id }, now), origin: { id, at: now } },
    );
    const times = JSON.stringify(given.times);
    const { schedules } = host.deps.journal;
    const stored = await this.#inTurn(tenant, id, async () => {
      const before = await schedules.get(tenant, id);
      const nextAt = await this.#nextAt(times, before);
      if (nextAt === null) {
        const message = `The schedule ${id} would never fire: there is no such time from now on.`;
        throw new PilotageError('invalid_config', message);
      }
      return schedules.put({ tenant, id, agent, definition, times, nextAt, mark: before?.mark ?? null });
    });
    await ticker.goesOn(stored);
    ticker.look();
    return scheduleRecord(stored);
  }

  /** `undefined` for one that is not there. */
  async get(id: string, options: OfTenant = {}): Promise<ScheduleRecord | undefined> {
    const stored = await this.#find(id, options);
    return stored && scheduleRecord(stored);
  }

  /** @throws PilotageError `invalid_config` for a page over 200 or below 1. */
  async list(options: ScheduleListOptions = {}): Promise<ScheduleRecord[]> {
    const { host } = this.#parts();
    assertOptions('schedules.list', options, LIST);
    const { limit, after } = options;
    const query: ScheduleQuery = { tenant: tenantOf(options), ...defined({ limit, after }) };
    return (await host.deps.journal.schedules.list(query)).map(scheduleRecord);
  }

  /** It does not fire until it is resumed. Runs that are under way go on. @throws PilotageError `schedule_not_found`. */
  pause(id: string, options: OfTenant = {}): Promise<ScheduleRecord> {
    return this.#change(id, options, async ({ nextAt }) => ({ isPaused: true, nextAt }));
  }

  /** Fire times of the pause are left out. @throws PilotageError `schedule_not_found`. */
  async resume(id: string, options: OfTenant = {}): Promise<ScheduleRecord> {
    const { host, ticker } = this.#parts();
    const resumed = await this.#change(id, options, async (schedule) => {
      const { nextAt, isPaused } = schedule;
      if (!isPaused) return { nextAt, isPaused };
      // From now, also where a clock that was ahead has fired later times: when those come, they are known by their names.
      return { isPaused: false, nextAt: (await ticker.timesOf(schedule)).after(host.deps.clock.now()) };
    });
    ticker.look();
    return resumed;
  }

  /**
   * Fires it now, beside its fire times, also while it is paused or its last run is under way.
   * @throws PilotageError `schedule_not_found`, or what a start with its options throws.
   */
  async trigger(id: string, options: OfTenant = {}): Promise<Run> {
    const { host, starting } = this.#parts();
    const name = `${SCHEDULED_RUN}${id}_${crypto.randomUUID()}`;
    return this.#inTurn(named(id, options), id, async () => {
      const schedule = await this.#there(id, options);
      const beside = await runsUnderWay(host, schedule);
      const origin = {
        ...({ id, at: host.deps.clock.now(), triggered: true } as const),
        ...(beside.length === 0 ? {} : { beside }),
      };
      return new Run(await fire(host, starting, schedule, { name, origin, nextAt: schedule.nextAt }), host);
    });
  }

  /** The first of these times behind now, and behind the last one that was fired: by another clock it may be later. */
  async #nextAt(times: string, before: StoredSchedule | undefined): Promise<number | null> {
    const { host, ticker } = this.#parts();
    const now = host.deps.clock.now();
    const firedAt = before === undefined ? now : await this.#firedAt(before);
    return (await ticker.timesOf({ times })).after(Math.max(now, firedAt));
  }

  /** The last fire time that was fired, or a moment between it and the next one; 0: none was fired. */
  async #firedAt({ id, nextAt, lastRun, updatedAt }: StoredSchedule): Promise<number> {
    if (lastRun === undefined) return 0;
    const fired = (await this.#parts().host.deps.journal.get(lastRun))?.schedule;
    if (fired?.id === id && fired.triggered !== true) return fired.at;
    // A trigger hides the run of the fire time before it, and a run may be gone with its session. Whoever fired it has changed the schedule at that
    // time or later.
    return nextAt === null ? updatedAt : Math.min(updatedAt, nextAt - 1);
  }

  /** Its runs stay. @returns false when there was none. */
  async delete(id: string, options: OfTenant = {}): Promise<boolean> {
    const { host } = this.#parts();
    const tenant = named(id, options);
    return host.deps.journal.schedules.delete(tenant, id);
  }

  async #find(id: string, options: OfTenant): Promise<StoredSchedule | undefined> {
    const { host } = this.#parts();
    const tenant = named(id, options);
    return host.deps.journal.schedules.get(tenant, id);
  }

  async #there(id: string, options: OfTenant): Promise<StoredSchedule> {
    const stored = await this.#find(id, options);
    if (stored !== undefined) return stored;
    const message = `The tenant ${tenantOf(options)} has no schedule ${id}. schedules.list() gives those that there are.`;
    throw new PilotageError('schedule_not_found', message, { data: { schedule: id } });
  }

  /** Changes of a schedule by one process come one after another: side by side each would make all others begin again. */
  #inTurn<T>(tenant: string, id: string, change: () => Promise<T>): Promise<T> {
    return this.#order.after([JSON.stringify([tenant, id])], () => untilUnchanged(change));
  }

  async #change(
    id: string,
    options: OfTenant,
    to: (schedule: StoredSchedule) => Promise<Pick<StoredSchedule, 'isPaused' | 'nextAt'>>,
  ): Promise<ScheduleRecord> {
    const { schedules } = this.#parts().host.deps.journal;
    return this.#inTurn(named(id, options), id, async () => {
      const schedule = await this.#there(id, options);
      const change = await to(schedule);
      const { tenant, mark } = schedule;
      const isDone = change.isPaused === schedule.isPaused || (await schedules.move({ tenant, id, mark, ...change }));
      if (isDone) return scheduleRecord(await this.#there(id, options));
      throw new PilotageError('schedule_changed', `The schedule ${id} changes all the time. Try again.`);
    });
  }
}

/** What is worked out from a schedule, again and again until no other process has changed it meanwhile. @throws PilotageError `schedule_changed`. */
async function untilUnchanged<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!PilotageError.is(error, 'schedule_changed') || tries === MOST_TRIES) throw error;
    }
  }
}

function named(id: string, options: OfTenant): string {
  assertOptions('schedules', options, OF_TENANT);
  assertScheduleId(id);
  return tenantOf(options);
}

function tenantOf({ tenant = 'local' }: OfTenant): string {
  assertIdentity({ tenant, user: '-', session: '-', run: '-' });
  return tenant;
}
