/**
 * When a schedule fires: the fire times follow from its definition alone, and not from when anybody looks.
 *
 * T1 The times after any moment are the same, whichever moments were asked about before.
 * T2 Times of a cron are those of the clock on the wall of its zone. One time of the day that does not exist there, since the clock is set
 *    forward, fires when the gap ends; one that exists twice fires the first time. A cron with several times in the day fires at those that
 *    exist, each time that they do.
 */
import { PilotageError, shownAmount } from '#core';

/** What becomes of fire times that were missed while nobody was there. */
export const CATCH_UP_MODES = ['none', 'last', 'all'] as const;
export type CatchUp = (typeof CATCH_UP_MODES)[number];

/** Either a cron, or a length of time. */
export type ScheduleTimes =
  | { readonly cron: string; readonly timezone: string }
  /** At the multiples of this time since the epoch. */
  | { readonly everyMs: number };

export interface FireTimes {
  /** The first one after this moment; `null`: there is none. */
  after(ms: number): number | null;
}

const LEAST_EVERY_MS = 1_000;
const MOST_EVERY_MS = 366 * 86_400_000;
const MAX_CRON = 200;
/** A fire time that nobody has dealt with for so long was missed. */
const ON_TIME_MS = 60_000;
/** So many missed fire times are made up for at most: the newest. */
const MOST_CAUGHT_UP = 1_000;
const FIRST_WINDOW_MS = 60_000;

/** @throws PilotageError `invalid_config`. */
export function readTimes(given: { cron?: string; everyMs?: number; timezone?: string }): ScheduleTimes {
  const { cron, everyMs, timezone } = given;
  if ((cron === undefined) === (everyMs === undefined)) {
    throw refusal(`A schedule needs either cron, such as cron: '0 9 * * 1-5', or everyMs, such as everyMs: 3_600_000.`);
  }
  if (cron !== undefined) return { cron: cron.trim().replaceAll(/\s+/g, ' '), timezone: timezone ?? 'UTC' };
  if (timezone !== undefined)
    throw refusal('The option timezone goes with cron: everyMs counts from the epoch in any zone.');
  const isWhole = Number.isInteger(everyMs);
  if (everyMs !== undefined && isWhole && everyMs >= LEAST_EVERY_MS && everyMs <= MOST_EVERY_MS) return { everyMs };
  throw refusal(
    `everyMs is ${shownAmount(everyMs)}; give a whole number, ${LEAST_EVERY_MS} to ${MOST_EVERY_MS} milliseconds (a second to 366 days).`,
  );
}

/** @throws PilotageError `invalid_config` for a cron or a zone that cannot be read. */
export async function fireTimes(times: ScheduleTimes): Promise<FireTimes> {
  return 'everyMs' in times ? every(times.everyMs) : cronTimes(times);
}

function every(everyMs: number): FireTimes {
  return { after: (ms) => (Math.floor(ms / everyMs) + 1) * everyMs };
}

async function cronTimes({ cron, timezone }: Extract<ScheduleTimes, { cron: string }>): Promise<FireTimes> {
  assertZone(timezone);
  const isPattern = cron.length <= MAX_CRON && (/^@[a-z]+$/i.test(cron) || /^\S+( \S+){4,5}$/.test(cron));
  if (!isPattern) throw wrongCron(cron, 'it has five fields, or six with seconds in front');
  // Who has no cron loads nothing for it.
  const { Cron } = await import('croner');
  let read: InstanceType<typeof Cron>;
  try {
    read = new Cron(cron, { timezone, paused: true });
  } catch (error) {
    throw wrongCron(cron, error instanceof Error ? error.message : String(error));
  }
  return { after: (ms) => read.nextRun(new Date(Math.floor(ms)))?.getTime() ?? null };
}

function assertZone(timezone: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
  } catch (cause) {
    const message = `The time zone ${JSON.stringify(timezone.slice(0, 64))} is not known; give a name such as Europe/Berlin, or UTC.`;
    throw new PilotageError('invalid_config', message, { cause });
  }
}

function wrongCron(cron: string, why: string): PilotageError {
  const shown = JSON.stringify(cron.slice(0, 64));
  return refusal(
    `The cron ${shown} cannot be read: ${why}. Give minute, hour, day, month and day of the week, such as '0 9 * * 1-5'.`,
  );
}

/**
 * The fire times that are to be begun now, the oldest first. `from`: the first one that nobody has dealt with.
 */
export function timesToFire(times: FireTimes, from: number, now: number, catchUp: CatchUp): readonly number[] {
  if (from > now) return [];
  // Whoever sees them a little late makes up for nothing.
  if (now - from <= ON_TIME_MS) return newest(times, from, now, MOST_CAUGHT_UP);
  switch (catchUp) {
    case 'none':
      return newest(times, now - ON_TIME_MS, now, MOST_CAUGHT_UP);
    case 'last':
      return newest(times, from, now, 1);
    case 'all':
      return newest(times, from, now, MOST_CAUGHT_UP);
    default:
      return catchUp satisfies never;
  }
}

/** The last ones of those from `from` up to `to`, in windows that grow: a clock may have jumped over years. */
function newest(times: FireTimes, from: number, to: number, most: number): readonly number[] {
  for (let windowMs = FIRST_WINDOW_MS; ; windowMs *= 2) {
    const since = Math.max(from, to - windowMs);
    const found: number[] = [];
    for (let at = times.after(since - 1); at !== null && at <= to; at = times.after(at)) found.push(at);
    if (found.length >= most || since === from) return found.slice(-most);
  }
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
