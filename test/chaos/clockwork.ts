/**
 * Whoever looks after the schedules: pauses, resumes and triggers them through any of the processes, and says again what nobody has acknowledged
 * before its process died. One process beside the others, the keeper, does nothing but schedules: its clock leaps ahead by minutes, and after that
 * each schedule is paused and resumed, so that it goes on from now.
 */
import type { Journal } from '#pilotage/journal';
import { EVERY_MS, type ScheduleId } from './calendar.ts';
import type { Member } from './crew.ts';
import type { ScheduleTestimony } from './judge-schedules.ts';
import { machineMs, type Said } from './words.ts';

const PAUSES = 0.01;
const TRIGGERS = 0.02;
const LEAPS = 0.007;
/** Of the keeper, while its clock is ahead. */
const KILLS = 0.5;
/** How far ahead the keeper's clock leaps, and for how long. What is later than a minute was missed. */
const LEAP_MS = 90_000;
const LEAPS_FOR_MS = 1_200;
const PAUSED_FOR_MS = 2_000;
/** After all is well, each schedule has to deal with the fire times of so long. */
const GOES_ON_MS = 1_500;
const TENANT = 'local';

interface Told {
  readonly op: 'pause' | 'resume';
  readonly by: Member;
  /** Nobody was told the same before who may have done it. */
  readonly isFirst: boolean;
  readonly at: number;
  readonly hasFailed?: true;
}

interface Watched {
  readonly id: ScheduleId;
  /** What was told, and nobody has acknowledged yet. */
  told: Told | undefined;
  pausedFrom: number | undefined;
  /** When that was acknowledged, and until when nobody was told to resume it. */
  restsFrom: number;
  resumeAt: number;
  /** The fire time that came next before a clock leapt ahead, until the schedule goes on from now. */
  leaptFrom: number | undefined;
}

export interface ClockworkOptions {
  readonly journal: Journal;
  readonly heard: ScheduleTestimony;
  readonly random: () => number;
  /** Somebody whose clock is right, more or less. */
  able(): Member | undefined;
  /** A process that does nothing but schedules. */
  bear(): Member;
  /** Sets the clock of that process so far ahead. */
  shift(keeper: Member, ms: number): Promise<void>;
}

export class Clockwork {
  readonly #options: ClockworkOptions;
  readonly #watched: readonly Watched[];
  #keeper: Member;
  #leapEnds: number | undefined;
  /** Since when no clock is ahead. */
  #rightSince = 0;
  #healing: { step: 'restart' | 'wait' | 'stop' | 'done'; since: number } | undefined;
  leaps = 0;
  kills = 0;
  pauses = 0;

  constructor(options: ClockworkOptions) {
    this.#options = options;
    this.#keeper = options.bear();
    this.#watched = (Object.keys(EVERY_MS) as ScheduleId[]).map((id) => ({
      id,
      told: undefined,
      pausedFrom: undefined,
      restsFrom: 0,
      resumeAt: 0,
      leaptFrom: undefined,
    }));
  }

  get keeper(): Member {
    return this.#keeper;
  }

  get isDone(): boolean {
    return this.#healing?.step === 'done';
  }

  /** Looks once, while everybody is hindered. */
  async look(): Promise<void> {
    const { random, bear } = this.#options;
    if (this.#keeper.isDead) this.#keeper = bear();
    for (const each of this.#watched) {
      if (this.#isTold(each)) continue;
      const isToRestart = each.leaptFrom !== undefined && this.#leapEnds === undefined;
      if (each.pausedFrom === undefined && isToRestart) this.#pause(each, 0);
      else if (each.pausedFrom === undefined && random() < PAUSES) this.#pause(each, random() * PAUSED_FOR_MS);
      else if (each.pausedFrom !== undefined && machineMs() >= each.resumeAt) this.#tell(each, 'resume');
      else if (random() < TRIGGERS) this.#trigger(each);
    }
    if (this.#leapEnds === undefined) {
      if (random() < LEAPS) await this.#leap();
    } else if (machineMs() > this.#leapEnds) await this.#endLeap();
  }

  /** Looks once, when everybody is well: the schedules go on from now for a while, and then they rest. */
  async heal(): Promise<void> {
    if (this.isDone) return;
    if (this.#keeper.isDead) this.#keeper = this.#options.bear();
    if (this.#leapEnds !== undefined) await this.#endLeap();
    this.#healing ??= { step: 'restart', since: machineMs() };
    const { step } = this.#healing;
    if (this.#watched.some((each) => this.#isTold(each))) return;
    if (step === 'restart') this.#restart();
    if (step === 'wait' && (await this.#haveGoneOn())) this.#healing.step = 'stop';
    if (step === 'stop') {
      for (const each of this.#watched) if (each.pausedFrom === undefined) this.#pause(each, Number.POSITIVE_INFINITY);
      if (this.#watched.every(({ pausedFrom }) => pausedFrom !== undefined)) this.#healing.step = 'done';
    }
    if (!this.isDone) return;
    for (const { id, pausedFrom } of this.#watched) this.#options.heard.ends.set(id, pausedFrom ?? Number.NaN);
  }

  hear(said: Extract<Said, { said: 'scheduled' }>, from: Member | undefined): void {
    const { heard } = this.#options;
    const each = this.#watched.find(({ id }) => id === said.id);
    if (each?.told === undefined || each.told.by !== from || each.told.op !== said.op) return;
    const { isFirst, at } = each.told;
    if (said.nextAt === undefined) {
      each.told = { ...each.told, hasFailed: true };
      return;
    }
    each.told = undefined;
    if (said.op === 'pause') {
      each.pausedFrom = said.nextAt;
      each.restsFrom = machineMs();
      return;
    }
    const everyMs = EVERY_MS[each.id];
    // It may have fired since it was resumed. By whom it was resumed is not known when somebody was told before.
    const fromNow = isFirst ? (Math.floor(said.wallMs / everyMs) + 1) * everyMs : said.nextAt;
    const to = Math.min(said.nextAt, fromNow);
    heard.gaps.push({ id: each.id, why: 'paused', from: each.pausedFrom ?? to, to });
    if (each.leaptFrom !== undefined && this.#leapEnds === undefined && at > this.#rightSince) {
      heard.gaps.push({ id: each.id, why: 'leapt', from: each.leaptFrom, to });
      each.leaptFrom = undefined;
    }
    each.pausedFrom = undefined;
  }

  /** Whether somebody is at it. What was told to a process that died, or that could not do it, is told to another one. */
  #isTold(each: Watched): boolean {
    if (each.told === undefined) return false;
    if (each.told.by.isDead || each.told.hasFailed === true) this.#tell(each, each.told.op, false);
    return true;
  }

  #tell(each: Watched, op: 'pause' | 'resume', isFirst = true): void {
    const by = this.#options.able();
    if (by === undefined) return;
    each.told = { op, by, isFirst, at: machineMs() };
    if (op === 'resume' && isFirst)
      this.#options.heard.rests.push({ id: each.id, from: each.restsFrom, to: machineMs() });
    by.tell({ do: 'schedule', id: each.id, op });
  }

  #pause(each: Watched, forMs: number): void {
    this.pauses += 1;
    each.resumeAt = machineMs() + forMs;
    this.#tell(each, 'pause');
  }

  #trigger({ id }: Watched): void {
    const by = this.#options.able();
    if (by === undefined) return;
    this.#options.heard.triggersTold.set(id, (this.#options.heard.triggersTold.get(id) ?? 0) + 1);
    by.tell({ do: 'schedule', id, op: 'trigger' });
  }

  async #leap(): Promise<void> {
    const { journal, random, shift } = this.#options;
    if (!this.#keeper.isReady) return;
    for (const each of this.#watched)
      each.leaptFrom ??= (await journal.schedules.get(TENANT, each.id))?.nextAt ?? undefined;
    this.leaps += 1;
    this.#leapEnds = machineMs() + random() * LEAPS_FOR_MS;
    void shift(this.#keeper, LEAP_MS * (1 + random()));
  }

  /** Its clock is right again, or the process is another one. Until then nothing that goes on goes on from now. */
  async #endLeap(): Promise<void> {
    const { random, shift } = this.#options;
    if (random() < KILLS) {
      this.kills += 1;
      await this.#keeper.kill();
    } else await shift(this.#keeper, 0);
    this.#leapEnds = undefined;
    this.#rightSince = machineMs();
  }

  #restart(): void {
    if (this.#healing === undefined) return;
    const { since } = this.#healing;
    for (const each of this.#watched) {
      if (each.pausedFrom !== undefined) this.#tell(each, 'resume');
      else if (each.resumeAt < since) this.#pause(each, 0);
    }
    const isRight = this.#watched.every(
      ({ pausedFrom, told, resumeAt }) => pausedFrom === undefined && told === undefined && resumeAt >= since,
    );
    if (isRight) this.#healing = { step: 'wait', since: Date.now() };
  }

  async #haveGoneOn(): Promise<boolean> {
    const { journal } = this.#options;
    const stored = await Promise.all(this.#watched.map(({ id }) => journal.schedules.get(TENANT, id)));
    const until = (this.#healing?.since ?? 0) + GOES_ON_MS;
    return stored.every((one) => (one?.nextAt ?? 0) > until);
  }
}
