/**
 * When a schedule fires, by the plain definition: every step of the clock is read on the wall of the zone. A cron with one time of the day fires each
 * day, where its time does not exist at the end of the gap, and where it exists twice the first time; one with several fires whenever the wall says so.
 */

/** In the words of a cron, and as the numbers that they stand for; an absent list stands for all. */
export interface CronByHand {
  readonly cron: string;
  readonly timezone: string;
  readonly seconds?: readonly number[];
  readonly minutes?: readonly number[];
  readonly hours?: readonly number[];
  readonly weekdays?: readonly number[];
}

export type FireTimesOf = { readonly everyMs: number } | CronByHand;

const MINUTE = 60_000;
const HOUR = 3_600_000;
/** Clocks on walls are changed at multiples of this time. */
const QUARTER = 900_000;
/** So far somebody looks for the next one. */
const HORIZON = 9 * 24;

/** The first one after this moment. */
export function nextFire(times: FireTimesOf, after: number): number {
  if ('everyMs' in times) return (Math.floor(after / times.everyMs) + 1) * times.everyMs;
  const first = Math.floor(after / HOUR);
  for (let hour = first; hour < first + HORIZON; hour += 1) {
    const found = firesIn(times, hour).find((at) => at > after);
    if (found !== undefined) return found;
  }
  return Number.POSITIVE_INFINITY;
}

/** Those from `from` on, and before `to`. */
export function firesBetween(times: FireTimesOf, from: number, to: number): number[] {
  const found: number[] = [];
  for (let at = nextFire(times, from - 1); at < to; at = nextFire(times, at)) found.push(at);
  return found;
}

/** They follow from the definition alone, so that histories share them. */
const known = new Map<string, readonly number[]>();

function firesIn(cron: CronByHand, hour: number): readonly number[] {
  const name = `${cron.cron} ${cron.timezone} ${hour}`;
  const found = known.get(name) ?? look(cron, hour * HOUR, (hour + 1) * HOUR);
  known.set(name, found);
  return found;
}

function look(cron: CronByHand, from: number, to: number): readonly number[] {
  const { hours, minutes, seconds, timezone } = cron;
  const stepMs = seconds === undefined ? MINUTE : 1_000;
  const isOneTime = hours?.length === 1 && minutes?.length === 1 && (seconds?.length ?? 1) === 1;
  const found: number[] = [];
  for (let at = from; at < to; at += stepMs) {
    const wall = wallOf(at, timezone);
    const isFire = isOneTime
      ? (matches(cron, wall) && !wasBefore(at, wall, timezone)) || endsGapOf(cron, at, stepMs)
      : matches(cron, wall);
    if (isFire) found.push(at);
  }
  return found;
}

/** @param wall what the wall says, as if it were UTC. */
function matches({ seconds = [0], minutes, hours, weekdays }: CronByHand, wall: number): boolean {
  const date = new Date(wall);
  return (
    seconds.includes(date.getUTCSeconds()) &&
    minutes?.includes(date.getUTCMinutes()) !== false &&
    hours?.includes(date.getUTCHours()) !== false &&
    weekdays?.includes(date.getUTCDay()) !== false
  );
}

/** The wall has said the same in the hours before. */
function wasBefore(at: number, wall: number, zone: string): boolean {
  for (let back = QUARTER; back <= 3 * HOUR; back += QUARTER) if (wallOf(at - back, zone) === wall) return true;
  return false;
}

/** The wall is set forward at this moment, over a time of the cron. */
function endsGapOf(cron: CronByHand, at: number, stepMs: number): boolean {
  if (at % QUARTER !== 0) return false;
  const [before, now] = [wallOf(at - stepMs, cron.timezone), wallOf(at, cron.timezone)];
  for (let wall = before + stepMs; wall < now; wall += stepMs) if (matches(cron, wall)) return true;
  return false;
}

const offsets = new Map<string, number>();
const formats = new Map<string, Intl.DateTimeFormat>();

function wallOf(at: number, zone: string): number {
  const quarter = Math.floor(at / QUARTER);
  const name = `${zone} ${quarter}`;
  const offset = offsets.get(name) ?? offsetAt(quarter * QUARTER, zone);
  offsets.set(name, offset);
  return at + offset;
}

function offsetAt(at: number, zone: string): number {
  const options = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const;
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en', { timeZone: zone, hourCycle: 'h23', calendar: 'gregory', ...options });
  formats.set(zone, format);
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = part as Record<string, number>;
  return Date.UTC(year, month - 1, day, hour, minute) - at;
}
