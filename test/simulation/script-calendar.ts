/** What is played of schedules: those that programs put, what people do with them, and the nights in which all machines sleep. */
import type { CatchUp, OverlapMode } from '#runtime';
import type { CronByHand } from './fire-times-by-hand.ts';

export type TimesByHand = { readonly everyMs: number } | CronByHand;

/** One definition of a schedule. Its runs work by the plan. */
export interface ScheduleVersion {
  readonly times: TimesByHand;
  readonly plan: string;
  readonly overlap: OverlapMode;
  readonly catchUp: CatchUp;
  /** Each fire is a message to this session. */
  readonly session?: string;
}

export interface SimulatedSchedule {
  readonly id: string;
  readonly tenant: string;
  readonly versions: readonly ScheduleVersion[];
}

/** Somebody does something with a schedule, through the runtime of a worker. */
export interface ScheduleAct {
  readonly at: number;
  readonly worker: number;
  /** Which of the schedules. */
  readonly schedule: number;
  readonly does: 'put' | 'pause' | 'resume' | 'trigger' | 'delete';
  /** Of `put`: which of its definitions, counted round. */
  readonly version: number;
}

/** All machines sleep; a process that is started meanwhile is on one of them. */
export interface Night {
  readonly at: number;
  readonly ms: number;
  /** The clock that nobody sets stands still too. */
  readonly isDeep: boolean;
}

export interface Calendar {
  readonly startMs: number;
  /** For so long nothing is said to be over. */
  readonly lastsMs: number;
  readonly schedules: readonly SimulatedSchedule[];
  readonly acts: readonly ScheduleAct[];
  readonly nights: readonly Night[];
  /** Each new process puts the schedules again, as programs do that are started. */
  readonly putAtStart: boolean;
}
