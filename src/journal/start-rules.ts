/** What every store does with a start that is to begin later, or that is made under a key. */
import { type Entry, jsonEquals, PilotageError, type Scope, type Started, type StartKey, timeAfter } from '#core';
import type { NewRun } from './port.ts';
import { ownedBy } from './rules.ts';
import type { ScheduleMove, SchedulePut, StoredSchedule } from './schedules-port.ts';

/** In the index of labels: the name under which a run has its schedule. No label has an empty name. */
export const SCHEDULE_LABEL = '';

/** What the run is found by. */
export function indexedLabels({ labels = {}, schedule }: Started): readonly (readonly [name: string, value: string])[] {
  const own = Object.entries(labels);
  return schedule === undefined ? own : [...own, [SCHEDULE_LABEL, schedule.id]];
}

/** The first entry of a run that begins at this time. */
function startingAt<T extends Started>(started: T, startsAt: number, { deadline }: Pick<NewRun, 'deadline'>): T {
  if (deadline === undefined) return { ...started, startsAt };
  const { ms, at = Number.POSITIVE_INFINITY } = deadline;
  return { ...started, startsAt, limits: { ...started.limits, deadlineAt: Math.min(timeAfter(startsAt, ms), at) } };
}

/** When the run is due by itself: 0 at once. */
export function firstWake({ startsAt = 0 }: Started, now: number): number {
  return startsAt > now ? Math.ceil(startsAt) : 0;
}

/** A start under the key, the newest first. `at`: when it began, or is to begin; of `debounce`, when its burst began. */
export interface KeyRow {
  readonly at: number;
  readonly run: string;
}

/** How many of the rows of a key decide. */
export function rowsThatCount(key: StartKey): number {
  return key.kind === 'throttle' || key.kind === 'rate' ? key.limit : 1;
}

/**
 * The run waits for a time that is to come, and nobody has told it anything. Nobody claims it then: a start under its key may still move its time,
 * and take its place.
 */
export function isYetToBegin(
  { fence, signals, wakeAt }: { readonly fence: number; readonly signals: number; readonly wakeAt: number | null },
  now: number,
): boolean {
  return fence === 0 && signals === 0 && wakeAt !== null && wakeAt > now;
}

export interface KeyedRuns {
  isUnderWay(run: string): boolean;
  /** As `isYetToBegin`. */
  isYetToBegin(run: string): boolean;
}

/** `until`: when the row is of no use any more; `null`: when there is a newer one. */
export type KeyDecision =
  | { readonly do: 'start'; readonly startsAt?: number; readonly at: number; readonly until: number | null }
  | { readonly do: 'replace'; readonly run: string; readonly startsAt: number }
  | { readonly do: 'join'; readonly run: string };

/**
 * @param rows those that count.
 * @throws PilotageError `rate_limited`.
 */
export function decideStart(key: StartKey, rows: readonly KeyRow[], runs: KeyedRuns, now: number): KeyDecision {
  const [newest] = rows;
  switch (key.kind) {
    case 'singleton':
      if (newest !== undefined && runs.isUnderWay(newest.run)) return { do: 'join', run: newest.run };
      return { do: 'start', at: now, until: null };
    case 'debounce': {
      const { waitMs, maxWaitMs = Number.POSITIVE_INFINITY } = key;
      const isOpen = newest !== undefined && runs.isYetToBegin(newest.run);
      const since = isOpen ? newest.at : now;
      const startsAt = Math.max(now, Math.min(now + waitMs, since + maxWaitMs));
      if (isOpen) return { do: 'replace', run: newest.run, startsAt };
      return { do: 'start', startsAt, at: now, until: null };
    }
    case 'throttle': {
      const free = (rows[key.limit - 1]?.at ?? Number.NEGATIVE_INFINITY) + key.perMs;
      // Whoever came first begins first.
      const at = Math.max(now, free, newest?.at ?? now);
      return { do: 'start', ...(at > now ? { startsAt: at } : {}), at, until: at + key.perMs };
    }
    case 'rate': {
      const last = rows[key.limit - 1];
      // A clock that was set back keeps nobody out for longer than the period.
      const allowedAt = last === undefined ? now : Math.min(last.at, now) + key.perMs;
      if (allowedAt > now) throw rateLimited(key, allowedAt);
      return { do: 'start', at: now, until: now + key.perMs };
    }
    default:
      return key satisfies never;
  }
}

function rateLimited(
  { key, limit, perMs }: StartKey & { kind: 'throttle' | 'rate' },
  allowedAt: number,
): PilotageError {
  return new PilotageError(
    'rate_limited',
    `Nothing was started: ${limit} runs have begun under the key ${JSON.stringify(key)} within ${perMs} ms. The next one may begin at ${new Date(allowedAt).toISOString()}.`,
    { data: { key, limit, perMs, allowedAt } },
  );
}

/** The run that takes the place of one that is yet to begin, under its id. @throws PilotageError `scope_mismatch`. */
export function inPlaceOf(
  run: NewRun,
  before: { readonly identity: Scope & { readonly run: string }; readonly at: number },
  startsAt: number,
): { readonly run: NewRun; readonly first: Started & Entry } {
  const { identity } = before;
  if (ownedBy(identity) !== ownedBy(run.identity)) {
    throw new PilotageError(
      'scope_mismatch',
      'The run that waits under this key of debounce belongs to another user or session. Give each of them a key of its own.',
    );
  }
  const [given] = run.entries as readonly [Started & Entry];
  const moved = startingAt(given, startsAt, run);
  // Whoever has read the one before sees by its time that this is another one.
  const first = Object.freeze({
    ...moved,
    identity: { ...moved.identity, run: identity.run },
    at: Math.max(moved.at, before.at + 1),
  });
  return { run: { ...run, identity: first.identity, entries: [first] }, first };
}

/** The run with its time in its first entry. */
export function beginningAt(run: NewRun, startsAt: number | undefined): NewRun {
  if (startsAt === undefined) return run;
  const [first, ...others] = run.entries as readonly [Started & Entry, ...Entry[]];
  return { ...run, entries: [Object.freeze(startingAt(first, startsAt, run)), ...others] };
}

/**
 * What another definition makes of a schedule that is there. `undefined`: it is the same definition.
 * @throws PilotageError `schedule_changed`: its next time was worked out for a schedule that is another one now.
 */
export function redefined(before: StoredSchedule, given: SchedulePut): Pick<StoredSchedule, 'nextAt'> | undefined {
  const hasSameTimes = before.times === given.times;
  if (hasSameTimes && before.agent === given.agent && jsonEquals(before.definition, given.definition)) return undefined;
  if (hasSameTimes) return { nextAt: before.nextAt };
  if (given.mark !== undefined && given.mark !== before.mark) throw scheduleChanged(given);
  return { nextAt: given.nextAt };
}

export function scheduleChanged({ id }: Pick<ScheduleMove, 'id'>): PilotageError {
  return new PilotageError(
    'schedule_changed',
    `Nothing was started: the schedule ${id} is not as it was read. Read it again, and decide anew.`,
    { data: { schedule: id } },
  );
}
