/**
 * Each fire time of a schedule, as its definition says by hand, has one run, or a reason why it has none: it was paused, missed, left out while the last
 * run was under way, or the schedule was put with other times.
 */
import type { Entry } from '#core';
import type { StoredSchedule } from '#journal';
import type { EndedRun } from './ended-run.ts';
import { firesBetween, nextFire } from './fire-times-by-hand.ts';
import type { Ledger } from './ledger.ts';
import type { ScheduleChange } from './schedule-ledger.ts';
import type { SimulationScript } from './script.ts';
import type { TimesByHand } from './script-calendar.ts';

type Runs = ReadonlyMap<string, EndedRun>;
type Wrong = (what: string) => void;

/** What nobody has dealt with for so long was missed. */
const MISSED_MS = 60_000;
const MOST_CAUGHT_UP = 1_000;

export function checkSchedules(runs: Runs, script: SimulationScript, ledger: Ledger): void {
  const { calendar, faults } = script;
  if (calendar === undefined) return;
  checkOnce(runs, ledger);
  const isSet = faults.some(({ kind }) => kind === 'clock');
  const known = new Map<string, string | undefined>();
  const then = runsThen(runs, ledger);
  // In the order in which the store was asked: whoever hears of it first is not the first.
  const changes = [...ledger.schedules.changes].sort((one, other) => one.order - other.order);
  const fired = new Map<string, number>();
  /** The run of the last fire time of each, and those that were triggered since. */
  const begun = new Map<string, readonly string[]>();
  for (const change of changes) {
    const { tenant, id, before, after, how } = change;
    const wrong: Wrong = (what) =>
      ledger.violated('schedules', `${id} at ${new Date(change.at).toISOString()}: ${what}`, change.run);
    const name = `${tenant} ${id}`;
    if (known.get(name) !== before?.mark) wrong('it has changed, and nobody has changed it');
    known.set(name, after?.mark);
    if (how === 'put') {
      const behind = before && hiddenBehind(before, fired.get(name));
      checkPut(change, timesIn(calendar.schedules, change), sinceOf(change, then, behind), isSet, wrong);
    }
    if (how === 'move')
      checkMove(change, timesIn(calendar.schedules, change), begun.get(name) ?? [], then, isSet, wrong);
    const origin = change.run === undefined ? undefined : originOf(then(change.run, change.order)?.entries[0]);
    if (origin !== undefined && origin.triggered !== true) fired.set(name, origin.at);
    if (change.run !== undefined && origin !== undefined)
      begun.set(name, [...(origin.triggered === true ? (begun.get(name) ?? []) : []), change.run]);
    if (after === undefined) {
      fired.delete(name);
      begun.delete(name);
    }
  }
}

/** No fire time has two runs, and none has one before it has come. */
function checkOnce(runs: Runs, ledger: Ledger): void {
  const seen = new Map<string, { readonly id: string; readonly session: string }>();
  const deleted = new Set(
    ledger.schedules.changes.filter(({ after }) => after === undefined).map(({ tenant, id }) => `${tenant} ${id}`),
  );
  for (const { id, entries } of runs.values()) {
    const [first] = entries;
    if (first?.kind !== 'started' || first.schedule === undefined || first.fork !== undefined) continue;
    const { schedule, identity, at } = first;
    if (schedule.triggered === true) continue;
    const name = `${identity.tenant} ${schedule.id} ${new Date(schedule.at).toISOString()}`;
    const other = seen.get(name);
    // Made anew for another session it is another one, which may begin at a clock that is behind.
    const isAnother = deleted.has(`${identity.tenant} ${schedule.id}`) && other?.session !== identity.session;
    if (other !== undefined && !isAnother) ledger.violated('schedules', `${name} was begun as ${other.id} too`, id);
    seen.set(name, { id, session: identity.session });
    const meta = first.context?.meta ?? {};
    if (meta['schedule'] !== schedule.id || meta['fire_time'] !== new Date(schedule.at).toISOString())
      ledger.violated('schedules', `its meta is ${JSON.stringify(meta)}, and it is of ${name} and began at ${at}`, id);
  }
}

/** The times that the stored definition stands for, by hand. */
function timesIn(
  schedules: NonNullable<SimulationScript['calendar']>['schedules'],
  { id, after, before, how }: ScheduleChange,
): TimesByHand {
  // What is moved goes by the definition that was read.
  const stored = how === 'put' ? after : before;
  const text = stored?.times;
  const all = schedules.filter((one) => one.id === id).flatMap(({ versions }) => versions.map(({ times }) => times));
  const found = all.find((times) => textOf(times) === text);
  return found ?? { everyMs: Number.NaN };
}

function textOf(times: TimesByHand): string {
  return JSON.stringify('everyMs' in times ? times : { cron: times.cron, timezone: times.timezone });
}

function checkPut(change: ScheduleChange, times: TimesByHand, since: Since, isSet: boolean, wrong: Wrong): void {
  const { before, after } = change;
  if (after === undefined) {
    wrong('it was put, and is not there');
    return;
  }
  if (before !== undefined && before.mark === after.mark) return;
  if (before === undefined) {
    if (after.isPaused || after.revision !== 1) wrong('it begins paused, or not with its first revision');
    checkNext(after, times, since, isSet, wrong);
    return;
  }
  const isSame = JSON.stringify(before.definition) === JSON.stringify(after.definition);
  if (isSame) wrong('the same definition has changed it');
  if (after.isPaused !== before.isPaused) wrong(`another definition has made it ${after.isPaused ? 'pause' : 'go on'}`);
  if (after.revision !== before.revision + 1) wrong(`revision ${after.revision} comes after ${before.revision}`);
  if (after.times !== before.times) {
    checkNext(after, times, since, isSet, wrong);
    return;
  }
  if (after.nextAt !== before.nextAt) wrong('another definition with the same times has moved it');
}

interface Since {
  /** By the clock of whoever changes it. */
  readonly wallMs: number;
  /** It goes on behind this time, which was fired. */
  readonly firedAt: number;
  /** A time that may count as fired: that is not known where a trigger has hidden it, or its run is gone. */
  readonly mayBeAt: number;
}

type Hidden = Pick<Since, 'firedAt' | 'mayBeAt'>;

/** What was fired before a trigger, or by a run that is gone, lies before the time at which the schedule goes on, also when other times were put since. */
function hiddenBehind({ nextAt, updatedAt }: StoredSchedule, firedAt = 0): Hidden {
  const mayBeAt = nextAt === null ? updatedAt : Math.min(updatedAt, nextAt - 1);
  return { firedAt: Math.min(firedAt, mayBeAt), mayBeAt };
}

function sinceOf({ before, wallMs, order }: ScheduleChange, runs: RunsThen, hidden: Hidden | undefined): Since {
  const last = before?.lastRun;
  const run = last === undefined ? undefined : runs(last, order);
  const origin = originOf(run?.entries[0]);
  const isHidden = origin?.triggered === true || (last !== undefined && run === undefined);
  if (isHidden && hidden !== undefined) return { wallMs, ...hidden };
  const firedAt = origin?.at ?? 0;
  return { wallMs, firedAt, mayBeAt: firedAt };
}

/** It goes on with the next fire time from now on, by the clock of whoever says so, and behind what another clock has had it fire. */
function checkNext(
  { nextAt }: StoredSchedule,
  times: TimesByHand,
  { wallMs, firedAt, mayBeAt }: Since,
  isSet: boolean,
  wrong: Wrong,
): void {
  if (nextAt === null || nextFire(times, nextAt - 1) !== nextAt) {
    wrong(`${String(nextAt)} is none of its fire times`);
    return;
  }
  // It was reckoned before it was stored, so that its time may have come meanwhile.
  if (nextAt <= firedAt) wrong(`it goes on at ${new Date(nextAt).toISOString()}, and was fired for later times`);
  if (!isSet && nextAt > nextFire(times, Math.max(wallMs, mayBeAt)))
    wrong(`it begins at ${new Date(nextAt).toISOString()} only`);
}

function checkMove(
  change: ScheduleChange,
  times: TimesByHand,
  begun: readonly string[],
  runs: RunsThen,
  isSet: boolean,
  wrong: Wrong,
): void {
  const { before, after, run, isPaused } = change;
  if (before === undefined || after === undefined) {
    wrong('it was moved, and is not there');
    return;
  }
  if (isPaused === true && after.nextAt !== before.nextAt) wrong('a pause has moved it');
  // From now, whatever another clock has had it fire: that is known by its names.
  if (isPaused === false) checkNext(after, times, { wallMs: change.wallMs, firedAt: 0, mayBeAt: 0 }, isSet, wrong);
  if (isPaused === false && !isSet && after.nextAt !== null && after.nextAt <= (change.readMs ?? 0))
    wrong('it goes on with what the pause has left out');
  if (isPaused !== undefined) return;
  if (after.isPaused !== before.isPaused) wrong('it was made to pause, or to go on, by a fire time');
  const origin = run === undefined ? undefined : originOf(runs(run, change.order)?.entries[0]);
  if (run !== undefined && origin === undefined) {
    wrong('its run is not there, or says nothing of it');
    return;
  }
  if (run !== undefined && after.lastRun !== run) wrong(`its last run is ${String(after.lastRun)}`);
  if (origin?.triggered === true) {
    if (after.nextAt !== before.nextAt) wrong('a trigger has moved it');
    return;
  }
  if (before.isPaused) wrong('it fires, and is paused');
  checkPassed(change, before, after, origin?.at, begun, times, runs, wrong);
}

function originOf(first: Entry | undefined): { readonly at: number; readonly triggered?: true } | undefined {
  return first?.kind === 'started' ? first.schedule : undefined;
}

/** Every fire time that it has passed with this change has its run, or a reason. */
function checkPassed(
  { look, order }: ScheduleChange,
  before: StoredSchedule,
  after: StoredSchedule,
  fired: number | undefined,
  begun: readonly string[],
  times: TimesByHand,
  runs: RunsThen,
  wrong: Wrong,
): void {
  const { overlap, catchUp } = before.definition as Record<string, unknown>;
  const [from, to] = [before.nextAt ?? Number.NaN, after.nextAt ?? Number.NaN];
  const now = look?.at ?? Number.NaN;
  const passed = firesBetween(times, from, to);
  const shown = (at: number | undefined): string => (at === undefined ? 'nothing' : new Date(at).toISOString());
  if (!(passed.length > 0 && nextFire(times, to - 1) === to && passed.every((at) => at <= now))) {
    wrong(`it goes from ${shown(from)} to ${shown(to)}, and it is ${shown(now)}`);
    return;
  }
  const isMissed = now - from > MISSED_MS;
  // A run that is gone names none that it hides.
  const isThere = before.lastRun !== undefined && runs(before.lastRun, order) !== undefined;
  const lastEnd = Math.max(...[before.lastRun, ...(isThere ? begun : [])].map((run) => endOf(run, order, runs)));
  if (fired !== undefined && overlap !== 'parallel' && lastEnd > order)
    wrong('it fires while its last run, or one that was triggered since, is under way');
  const index = fired === undefined ? passed.length : passed.indexOf(fired);
  if (index < 0 || (fired !== undefined && index !== passed.length - 1)) {
    wrong(`${shown(fired)} is none of ${passed.map(shown).join(', ')}, or not the last of them`);
    return;
  }
  const left = passed.slice(0, index);
  if (left.length === 0) return;
  const wasLeftOut = fired === undefined && overlap === 'skip' && lastEnd > (look?.order ?? 0);
  if (wasLeftOut) return;
  const isExplained =
    isMissed &&
    ((catchUp === 'last' && fired !== undefined && nextFire(times, fired) > now) ||
      (catchUp === 'none' && left.every((at) => at < now - MISSED_MS)) ||
      (catchUp === 'all' && firesBetween(times, from, now + 1).length - left.length >= MOST_CAUGHT_UP));
  if (!isExplained) wrong(`${left.map(shown).join(', ')} had no run, with ${String(overlap)} and ${String(catchUp)}`);
}

/** When the run, and what went on with it, had ended, or was gone with its session. */
function endOf(run: string | undefined, order: number, runs: RunsThen): number {
  const known = run === undefined ? undefined : runs(run, order);
  if (known === undefined) return run === undefined ? 0 : runs.goneAt(run, order);
  const last = known.entries.at(-1);
  const next = last?.kind === 'finished' ? last.successor?.run : undefined;
  return next === undefined ? known.end : Math.max(known.end, endOf(next, order, runs));
}

/** A run as it was under its name at that moment: it may be gone since, and another one may have come. */
interface RunsThen {
  (run: string, order: number): { readonly entries: readonly Entry[]; readonly end: number } | undefined;
  /** When the last one of that name before was gone with its session; 0: there was none. */
  goneAt(run: string, order: number): number;
}

function runsThen(runs: Runs, { sessions: { gone } }: Ledger): RunsThen {
  const goneAt = (id: string, order: number): number => {
    const lost = gone.findLast((one) => one.order <= order && one.runs.has(id));
    return lost === undefined ? 0 : Math.min(lost.order, lost.runs.get(id)?.endedAt ?? lost.order);
  };
  const then = (id: string, order: number): ReturnType<RunsThen> => {
    const lost = gone.find((one) => one.order > order && (one.runs.get(id)?.landed[0] ?? Number.NaN) <= order);
    const run = lost?.runs.get(id) ?? runs.get(id);
    if (run === undefined || (run.landed[0] ?? 0) > order) return undefined;
    const { entries, endedAt = Number.POSITIVE_INFINITY } = run;
    return { entries, end: Math.min(endedAt, lost?.order ?? endedAt) };
  };
  return Object.assign(then, { goneAt });
}
