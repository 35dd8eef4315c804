/**
 * Each fire time has one run, or a reason why it has none. Which run was begun is in the ledger outside; the reasons are what was done to the
 * schedules, and what the processes said when they left a fire time out.
 */
import type { LedgerLine } from '../double-act/ledger.ts';
import { EVERY_MS, isTick, readSubject, SCHEDULES, type ScheduleId } from './calendar.ts';
import { machineMs } from './words.ts';

/** Fire times from `from` on, without `to`, of which some may have no run. */
export interface Gap {
  readonly id: ScheduleId;
  /** `leapt`: the clock of a process was ahead by more than a minute, so that they were missed. */
  readonly why: 'paused' | 'leapt';
  readonly from: number;
  readonly to: number;
}

/** Fire times that a process has left out. `seenAt`, `at`: when it had read the schedule, and when it was done, by the machine's own clock. */
export interface Passed {
  readonly id: string;
  readonly from: number;
  readonly to: number;
  readonly seenAt: number;
  readonly at: number;
  /** The latest that the clock of that process has shown meanwhile. */
  readonly wallMs: number;
}

/** Somebody had paused it, and was told so, and nobody had been told to resume it. By the machine's own clock. */
export interface Rest {
  readonly id: ScheduleId;
  readonly from: number;
  readonly to: number;
}

/** What was heard of the schedules, and done to them. Times with the name `at` are those of the machine's own clock. */
export class ScheduleTestimony {
  /** From when on a schedule is there, and the fire time that came next when it was stopped at last. */
  readonly begins: Map<string, number> = new Map();
  readonly ends: Map<string, number> = new Map();
  readonly gaps: Gap[] = [];
  readonly rests: Rest[] = [];
  readonly passed: Passed[] = [];
  readonly triggersTold: Map<string, number> = new Map();
  readonly triggered: Set<string> = new Set();
  readonly begun: Map<string, number> = new Map();
  /** When the store was asked to begin the run. */
  readonly asked: Map<string, number> = new Map();
  readonly finished: Map<string, number> = new Map();
  /** When processes were killed, and how far ahead the clock of each was. */
  readonly deaths: { readonly at: number; readonly ms: number }[] = [];
  /** Clocks that were set. */
  readonly shifts: { readonly ms: number; readonly at: number }[] = [];
}

export interface ScheduleCounts {
  /** Fire times that had a run. */
  readonly fires: number;
  /** Those that had none. */
  readonly firesLeftOut: number;
  readonly triggers: number;
}

export interface ScheduleProblems {
  readonly lost: readonly string[];
  readonly twice: readonly string[];
  readonly wrong: readonly string[];
  readonly counts: ScheduleCounts;
}

/** Whoever dies in the middle of leaving a fire time out says nothing of it. */
const DIES_WITHIN_MS = 1_000;
/** Two clocks are compared that do not tick together. */
const ROUNDED_MS = 5;
/** How late a fire time is left out at most, by somebody who says nothing of it. */
const LATE_MS = 3_000;

interface Ticked {
  readonly run: string;
  readonly at: number;
  readonly isTrigger: boolean;
}

/** @param ledger all of it. */
export function scheduleProblems(heard: ScheduleTestimony, ledger: readonly LedgerLine[]): ScheduleProblems {
  const lines = ledger.filter(isTick);
  const done = new Set(lines.flatMap(({ what, run }) => (what === 'done' ? [run] : [])));
  const all: { lost: string[]; twice: string[]; wrong: string[] } = { lost: [], twice: [], wrong: [] };
  const counts = { fires: 0, firesLeftOut: 0, triggers: 0 };
  all.lost.push(
    ...[...heard.triggered].filter((run) => !done.has(run)).map((run) => `${run} was triggered, and is gone`),
  );
  for (const { id, overlap } of SCHEDULES) {
    const ticked = tickedOf(id, lines, heard);
    const fires = Map.groupBy(
      ticked.filter(({ isTrigger }) => !isTrigger),
      ({ at }) => at,
    );
    const triggers = ticked.filter(({ isTrigger }) => isTrigger);
    counts.triggers += triggers.length;
    counts.fires += fires.size;
    if (triggers.length > (heard.triggersTold.get(id) ?? 0))
      all.twice.push(`${id} has ${triggers.length} runs at none of its fire times, and was triggered less often`);
    for (const [at, runs] of fires) if (runs.length > 1) all.twice.push(`${named(id, at)} has ${runs.length} runs`);
    all.wrong.push(
      ...[...fires.values()]
        .flat()
        .filter((one) => isEarly(heard, one))
        .map(({ run }) => `${run} is early`),
    );
    all.wrong.push(...firesAtRest(heard, id, [...fires.values()].flat()));
    all.lost.push(...leftOutWrongly(heard, id, ticked));
    if (overlap !== 'parallel') all.wrong.push(...overlaps(id, lines, ticked));
    const [begin, end] = [heard.begins.get(id), heard.ends.get(id)];
    if (begin === undefined || end === undefined) continue;
    const everyMs = EVERY_MS[id];
    for (let at = (Math.floor(begin / everyMs) + 1) * everyMs; at < end; at += everyMs) {
      if (fires.has(at)) continue;
      counts.firesLeftOut += 1;
      if (!isExplained(heard, id, at, ticked)) all.lost.push(`${named(id, at)} has no run, and no reason`);
    }
  }
  return { ...all, counts };
}

/** The runs of a schedule, in the order in which they came to their effect. Those at none of its fire times were triggered. */
function tickedOf(id: ScheduleId, lines: readonly LedgerLine[], heard: ScheduleTestimony): Ticked[] {
  const runs = new Map<string, Ticked>();
  for (const { run, subject } of lines) {
    const { id: of, at } = readSubject(subject);
    if (of !== id) continue;
    runs.set(run, { run, at, isTrigger: at % EVERY_MS[id] !== 0 || heard.triggered.has(run) });
  }
  return [...runs.values()];
}

/** No clock was so far ahead when it began. */
function isEarly({ begun, shifts }: ScheduleTestimony, { run, at }: Ticked): boolean {
  const by = begun.get(run);
  if (by === undefined) return false;
  return [{ ms: 0, at: 0 }, ...shifts].every((shift) => shift.at > by || wallOf(by) + shift.ms + ROUNDED_MS < at);
}

/** The run of a fire time comes to its effect when the one before it has come to the end of its own, whatever was triggered between them. */
function overlaps(id: ScheduleId, lines: readonly LedgerLine[], ticked: readonly Ticked[]): string[] {
  const known = new Map(ticked.map((one) => [one.run, one]));
  const entered = new Set<string>();
  let before: Ticked | undefined;
  return lines.flatMap(({ run, what }) => {
    const one = known.get(run);
    if (one === undefined) return [];
    if (what === 'done' && before?.run === run) before = undefined;
    if (what !== 'entered' || entered.has(run)) return [];
    entered.add(run);
    if (one.isTrigger) return [];
    const open = before;
    before = one;
    return open === undefined ? [] : [`${named(id, one.at)} is begun in the middle of ${open.run}`];
  });
}

function isExplained(heard: ScheduleTestimony, id: ScheduleId, at: number, ticked: readonly Ticked[]): boolean {
  const { overlap, catchUp } = SCHEDULES.find((one) => one.id === id) ?? {};
  const gaps = heard.gaps.filter((gap) => gap.id === id && gap.from <= at && at < gap.to);
  if (gaps.some(({ why }) => why === 'paused' || catchUp !== 'all')) return true;
  if (overlap !== 'skip') return false;
  const passed = heard.passed.filter((one) => one.id === id && one.from <= at && at < one.to);
  const died = heard.deaths.filter((death) => {
    const late = wallOf(death.at) + death.ms - at;
    const look = { id, from: at, to: at, wallMs: at, seenAt: death.at - DIES_WITHIN_MS, at: death.at };
    return late >= 0 && late < LATE_MS && isUnderWay(heard, look, ticked);
  });
  return passed.length + died.length > 0;
}

/** Somebody says that a fire time was left out, and no run was under way. */
function leftOutWrongly(heard: ScheduleTestimony, id: ScheduleId, ticked: readonly Ticked[]): string[] {
  const leaps = heard.gaps.filter((gap) => gap.id === id && gap.why === 'leapt');
  return heard.passed
    .filter((look) => look.id === id && !leaps.some(({ from, to }) => from < look.to && look.from < to))
    .filter((look) => look.to - EVERY_MS[id] > look.wallMs || !isUnderWay(heard, look, ticked))
    .map(({ from }) => `${named(id, from)} was left out, and no run was under way, or it was not due`);
}

/** What another process has put does not end a pause. */
function firesAtRest({ rests, asked }: ScheduleTestimony, id: ScheduleId, fires: readonly Ticked[]): string[] {
  return fires.flatMap(({ run, at }) => {
    const by = asked.get(run) ?? Number.NaN;
    const isAtRest = rests.some((rest) => rest.id === id && rest.from < by && by < rest.to);
    return isAtRest ? [`${named(id, at)} was begun while it was paused`] : [];
  });
}

/** Whether a run was under way that was begun before, when somebody looked. */
function isUnderWay(heard: ScheduleTestimony, look: Passed, ticked: readonly Ticked[]): boolean {
  return ticked.some((one) => {
    const begun = heard.begun.get(one.run) ?? Number.NEGATIVE_INFINITY;
    const isBefore = begun <= look.at || (!one.isTrigger && one.at < look.to);
    return isBefore && endOf(heard, one, ticked) >= look.seenAt;
  });
}

/** When the run was over. When nobody has said so: when the next one was begun. */
function endOf({ begun, finished }: ScheduleTestimony, { run }: Ticked, ticked: readonly Ticked[]): number {
  const from = begun.get(run) ?? Number.NEGATIVE_INFINITY;
  const later = ticked.flatMap((one) => (one.isTrigger ? [] : (begun.get(one.run) ?? []))).filter((at) => at > from);
  return finished.get(run) ?? Math.min(Number.POSITIVE_INFINITY, ...later);
}

/** The wall clock, which is right in this process, at a time of the machine's own clock. */
function wallOf(at: number): number {
  return at + (Date.now() - machineMs());
}

function named(id: string, at: number): string {
  return `${id} at ${new Date(at).toISOString()}`;
}
