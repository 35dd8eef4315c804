/**
 * Fires what is due of the schedules of the journal: over one timer for the fire time that comes first, and a slow look for what other
 * processes have put. It begins with the first look, of a runtime that works, or uses schedules; others have no timer for what they do not
 * use. That a fire happens once is decided by the store. The timer holds no process.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { describeThrown, PilotageError, steadyMs } from '#core';
import { isJournalGone, isTransientStoreError, type StoredSchedule } from '#journal';
import type { Agents } from './agents.ts';
import type { Starting } from './new-run.ts';
import type { RunHost } from './run-host.ts';
import { definitionOf } from './schedule-definition.ts';
import { fire, fireId, runsUnderWay } from './schedule-fire.ts';
import { type FireTimes, fireTimes, timesToFire } from './schedule-times.ts';

const LOOK_EVERY_MS = 5_000;
/** While a fire time waits for the run before it, which may end in another process. */
const LOOK_AT_QUEUE_MS = 1_000;
const PAGE = 200;
/** Whoever knows the agent of a schedule fires it within seconds. */
const LATE_MS = 60_000;
const outside = AsyncLocalStorage.snapshot();

export class ScheduleTicker {
  readonly #host: RunHost;
  readonly #starting: Starting;
  readonly #agents: Pick<Agents, 'takenOver'>;
  /** What was told of a schedule last: one that stays broken is told of once. */
  readonly #told = new Map<string, string>();
  /** Schedules of agents that this process does not take over, of which it was told that nobody fires them. */
  #unfired = new Set<string>();
  /** By the steady clock. Not before this process has been there for so long: those that know the agent may start just now, too. */
  #lookedAtOthers: number | undefined;
  /** By what they follow from. */
  readonly #times = new Map<string, Promise<FireTimes>>();
  #cancel = (): void => {};
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  /** The runs for whose end a fire time waits. */
  readonly #awaited = new Set<string>();
  #isClosed = false;

  constructor(host: RunHost, starting: Starting, agents: Pick<Agents, 'takenOver'>) {
    this.#host = host;
    this.#starting = starting;
    this.#agents = agents;
  }

  /** Something may be due, or another time may come first. */
  look(): void {
    // The timer would carry whoever used schedules first, such as the trace of a request, into every run that is fired.
    outside(() => this.#lookOnce());
  }

  #lookOnce(): void {
    if (this.#isClosed) return;
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      return;
    }
    this.#cancel();
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined;
      if (!this.#lookAgain) return;
      this.#lookAgain = false;
      this.look();
    });
  }

  /** Fires what is due, once, and looks no further. @throws the store's error. */
  async fire(): Promise<void> {
    await this.#looking;
    if (!this.#isClosed) await outside(() => this.#fireDue());
  }

  /** A run has ended here. */
  ended(run: string): void {
    if (this.#awaited.delete(run)) this.look();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#looking;
  }

  /** @throws PilotageError `invalid_config`. */
  timesOf({ times }: Pick<StoredSchedule, 'times'>): Promise<FireTimes> {
    const known = this.#times.get(times) ?? fireTimes(JSON.parse(times));
    // What cannot be read is not kept.
    this.#times.set(times, known);
    known.catch(() => this.#times.delete(times));
    return known;
  }

  /** The runs of the schedule that are under way. Those whose process has died go on here: it must not stand still over them where nobody calls `work()`. */
  async goesOn(schedule: Pick<StoredSchedule, 'lastRun'>): Promise<readonly string[]> {
    const runs = await runsUnderWay(this.#host, schedule);
    for (const run of runs) this.#host.fleet.wake(run);
    return runs;
  }

  #arm(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancel();
    this.#cancel = this.#host.deps.clock.after(delayMs, () => this.look(), { holds: false });
  }

  async #look(): Promise<void> {
    const { clock } = this.#host.deps;
    const from = clock.now();
    let delayMs = LOOK_EVERY_MS;
    try {
      delayMs = await this.#fireDue();
      await this.#tellUnfired();
      this.#told.delete('');
    } catch (error) {
      if (isJournalGone(error) || this.#isClosed) return;
      // What the store cannot do now is done at the next look.
      if (!isTransientStoreError(error)) this.#tell('', error);
    }
    // The clock may have gone on meanwhile, or was set.
    const leftMs = Math.min(delayMs, from + delayMs - clock.now());
    if (leftMs > 0) this.#arm(leftMs);
    else this.#lookAgain = true;
  }

  /** @returns when to look again. */
  async #fireDue(): Promise<number> {
    this.#awaited.clear();
    const { schedules } = this.#host.deps.journal;
    let isQueued = false;
    for (let after: StoredSchedule | undefined; ; ) {
      const { due, nextAt, readAt } = await schedules.due(this.#agents.takenOver, PAGE, after);
      for (const schedule of due) {
        if (this.#isClosed) return LOOK_EVERY_MS;
        isQueued = (await this.#fireOne(schedule, readAt)) || isQueued;
      }
      after = due.at(-1);
      if (due.length === PAGE) continue;
      const mostMs = isQueued ? LOOK_AT_QUEUE_MS : LOOK_EVERY_MS;
      // Those that were moved on have another next time.
      const first = due.length === 0 ? nextAt : (await schedules.due(this.#agents.takenOver, 1)).nextAt;
      return first === null ? mostMs : Math.min(mostMs, Math.max(1, first - readAt));
    }
  }

  /** @returns whether a fire time waits for the run before it. */
  async #fireOne(schedule: StoredSchedule, now: number): Promise<boolean> {
    const name = JSON.stringify([schedule.tenant, schedule.id]);
    try {
      const isQueued = await this.#catchUp(schedule, now);
      this.#told.delete(name);
      return isQueued;
    } catch (error) {
      // Another process was first, and goes on with it.
      if (PilotageError.is(error, 'schedule_changed') || this.#isClosed) return false;
      if (isJournalGone(error)) throw error;
      this.#tell(name, error);
      return false;
    }
  }

  async #catchUp(given: StoredSchedule, now: number): Promise<boolean> {
    const { clock, journal } = this.#host.deps;
    const { schedules } = journal;
    const begunAt = steadyMs(clock);
    const { overlap, catchUp } = definitionOf(given);
    const times = await this.timesOf(given);
    const inTheWay = async (before: StoredSchedule): Promise<readonly string[]> =>
      overlap === 'parallel' ? [] : this.goesOn(before);
    const wait = (runs: readonly string[]): true => {
      for (const run of runs) this.#awaited.add(run);
      return true;
    };
    if (overlap === 'queue') {
      const busy = await inTheWay(given);
      if (busy.length > 0) return wait(busy);
    }
    let schedule = given;
    const skipTo = async (nextAt: number | null): Promise<false> => {
      const { tenant, id, mark } = schedule;
      await schedules.move({ tenant, id, mark, nextAt });
      return false;
    };
    const wanted = timesToFire(times, schedule.nextAt ?? Number.POSITIVE_INFINITY, now, catchUp);
    for (const [index, at] of wanted.entries()) {
      const busy = await inTheWay(schedule);
      if (busy.length > 0) return overlap === 'queue' ? wait(busy) : skipTo(times.after(now));
      const nextAt = wanted[index + 1] ?? times.after(Math.max(now, at));
      const { tenant, id } = schedule;
      await fire(this.#host, this.#starting, schedule, { name: fireId(schedule, at), origin: { id, at }, nextAt });
      const moved = await schedules.get(tenant, id);
      if (moved?.nextAt !== nextAt || moved.revision !== schedule.revision || moved.isPaused || this.#isClosed)
        return false;
      // What it has missed holds up no other schedule: the rest is made up for at the next look, which comes at once.
      if (steadyMs(clock) - begunAt >= LOOK_EVERY_MS) return false;
      schedule = moved;
    }
    return wanted.length === 0 ? skipTo(times.after(now)) : false;
  }

  /** A process cannot know which agents others have; a fire time that nobody has dealt with for long says that none has this one. */
  async #tellUnfired(): Promise<void> {
    const { clock, journal, onFault } = this.#host.deps;
    this.#lookedAtOthers ??= steadyMs(clock);
    if (this.#isClosed || steadyMs(clock) - this.#lookedAtOthers < LATE_MS) return;
    this.#lookedAtOthers = steadyMs(clock);
    const late = await journal.schedules.unfired(this.#agents.takenOver, LATE_MS, PAGE);
    const unfired = new Set<string>();
    for (const schedule of late) {
      const isQueued =
        definitionOf(schedule).overlap === 'queue' && (await runsUnderWay(this.#host, schedule)).length > 0;
      if (isQueued) continue;
      const name = JSON.stringify([schedule.tenant, schedule.id]);
      unfired.add(name);
      if (!this.#unfired.has(name)) onFault(nobodyFires(schedule));
    }
    this.#unfired = unfired;
  }

  #tell(name: string, error: unknown): void {
    const words = describeThrown(error);
    if (this.#told.get(name) !== words) this.#host.deps.onFault(error);
    this.#told.set(name, words);
  }
}

function nobodyFires({ tenant, id, agent, nextAt }: StoredSchedule): PilotageError {
  const since = new Date(nextAt ?? 0).toISOString();
  const message = `The schedule ${id} of the tenant ${tenant} was to fire at ${since}, and no process has done so: none that works takes over runs of its agent ${JSON.stringify(agent)}. Start one that does, put the schedule with another agent, or delete it.`;
  return new PilotageError('agent_unknown', message, { data: { schedule: id, agent } });
}
