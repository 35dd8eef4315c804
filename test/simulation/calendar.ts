/** Whoever puts schedules, and does things with them; at last nobody wants them any more. */
import { PilotageError } from '#core';
import type { Journal } from '#journal';
import type { Runtime } from '#runtime';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';
import type { Calendar, ScheduleAct, SimulatedSchedule } from './script-calendar.ts';
import { isStoreError } from './store-errors.ts';

export interface CalendarWorld {
  readonly ledger: Ledger;
  readonly journal: Journal;
  does<T>(worker: number, act: (runtime: Runtime, process: SimulatedProcess) => T): T | undefined;
}

/** What is rightly said to whoever does something with a schedule at a bad moment. */
const ORDINARY: ReadonlySet<string> = new Set(['schedule_not_found', 'schedule_changed', 'runtime_closed']);

export class Scheduling {
  readonly #world: CalendarWorld;
  readonly #calendar: Calendar;
  /** By schedule: which definition was put last; absent while nobody wants it. */
  readonly #wanted = new Map<number, number>();

  constructor(world: CalendarWorld, calendar: Calendar) {
    this.#world = world;
    this.#calendar = calendar;
  }

  act(act: ScheduleAct): void {
    if (act.does === 'put') this.#wanted.set(act.schedule, act.version);
    if (act.does === 'delete') this.#wanted.delete(act.schedule);
    void this.#world.does(act.worker, (runtime) => this.#say(act, runtime));
  }

  /** A new process has been started. */
  started(runtime: Runtime): void {
    if (!this.#calendar.putAtStart) return;
    for (const [schedule, version] of this.#wanted)
      void this.#say({ schedule, version, does: 'put', at: 0, worker: 0 }, runtime);
  }

  async #say({ schedule: index, version, does }: ScheduleAct, runtime: Runtime): Promise<void> {
    const { ledger } = this.#world;
    const schedule = this.#calendar.schedules[index];
    if (schedule === undefined) return;
    const { id, tenant } = schedule;
    ledger.tell(
      'people',
      () => `${does} ${id}${does === 'put' ? ` as version ${version % schedule.versions.length}` : ''}`,
    );
    try {
      if (does === 'put') await put(runtime, schedule, version);
      else if (does === 'trigger') this.#triggered((await runtime.schedules.trigger(id, { tenant })).id);
      else await runtime.schedules[does](id, { tenant });
    } catch (error) {
      const isOrdinary = PilotageError.is(error) && ORDINARY.has(error.code);
      if (!isOrdinary && !isStoreError(error))
        ledger.violated('no fault', `whoever does ${does} with ${id} was told: ${String(error)}`);
    }
  }

  #triggered(run: string): void {
    const [first] = this.#world.ledger.runs.get(run)?.entries ?? [];
    const isIt = first?.kind === 'started' && first.schedule?.triggered === true;
    if (!isIt) this.#world.ledger.violated('schedules', 'a trigger was acknowledged, and its run is not there', run);
  }

  /** The runs that were under way when somebody triggered this one. */
  #beside(run: string): readonly string[] {
    const [first] = this.#world.ledger.runs.get(run)?.entries ?? [];
    return (first?.kind === 'started' ? first.schedule?.beside : undefined) ?? [];
  }

  #endedBefore(run: string, at: number): boolean {
    const { runs, appends } = this.#world.ledger;
    const last = appends.findLast((append) => append.run === run);
    return runs.get(run)?.endedAt !== undefined && (last?.at ?? 0) < at;
  }

  /** Everybody has been well for a while: nothing is left behind. Nobody wants the schedules any more. */
  async close(now: number): Promise<void> {
    const { journal, ledger } = this.#world;
    const found = this.#calendar.schedules.map(({ id, tenant }) => journal.schedules.get(tenant, id));
    const all = (await Promise.all(found)).filter((stored) => stored !== undefined);
    for (const stored of all) {
      const { id, tenant, nextAt, isPaused, lastRun = '', definition, updatedAt } = stored;
      const inTheWay = [lastRun, ...this.#beside(lastRun)];
      const waits = definition['overlap'] === 'queue' && inTheWay.some((run) => !this.#endedBefore(run, now - LATE_MS));
      // What has been missed is made up for one by one, with a store that may be far away, and of one schedule after another.
      const others = all.filter((other) => other.updatedAt > updatedAt).length;
      const isMoving = updatedAt >= now - LATE_MS * (1 + others);
      if (!isPaused && nextAt !== null && nextAt < now - LATE_MS && !waits && !isMoving)
        ledger.violated('schedules', `${id} is still at the fire time ${new Date(nextAt).toISOString()}`);
      await journal.schedules.delete(tenant, id);
    }
  }
}

/** So late a process that is well may look, with a store that is far away. */
const LATE_MS = 7_000;

async function put(runtime: Runtime, { id, tenant, versions }: SimulatedSchedule, nth: number): Promise<void> {
  const version = versions[nth % versions.length];
  if (version === undefined) return;
  const { times, plan, overlap, catchUp, session } = version;
  const when = 'everyMs' in times ? times : { cron: times.cron, timezone: times.timezone };
  await runtime.schedules.put({
    ...when,
    id,
    query: plan,
    overlap,
    catchUp,
    identity: { tenant, user: 'ann' },
    labels: { of: id },
    ...(session === undefined ? {} : { session }),
  });
}
