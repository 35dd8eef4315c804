/** Points in time as callers give them and as they are stored: whole milliseconds since the epoch, up to the last that a date can have. */
import { PilotageError } from './errors.ts';

const LAST_MS = 8_640_000_000_000_000;
/** An ISO text with its zone: without one it is another time in another place. */
const ISO = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/i;

/** The time so long after another. Whoever gives a longer time than there is means "never", and gets the last time that there is. */
export function timeAfter(now: number, ms: number): number {
  return Math.min(Math.ceil(now + ms), LAST_MS);
}

/** Seconds since the epoch, from the year 2001 to the year 2286; as milliseconds they are days of 1970. */
const [FIRST_SECONDS, LAST_SECONDS] = [1_000_000_000, 9_999_999_999];

/**
 * Whether a time is given in seconds by mistake. A clock that begins at 0, as in a test, has such times itself.
 * @param now milliseconds since the epoch.
 */
export function isInSeconds(ms: number, now: number): boolean {
  return ms >= FIRST_SECONDS && ms <= LAST_SECONDS && now > 100 * LAST_SECONDS;
}

/** What is wrong with such a time. */
export function secondsGiven(of: string, seconds: number): string {
  const day = new Date(seconds).toISOString().slice(0, 10);
  return `${of} is ${seconds}, which as milliseconds since the epoch is ${day}. Give ${1_000 * seconds}, if these are seconds.`;
}

/**
 * A point in time as callers give it.
 * @param of what it is, for messages.
 * @param now milliseconds since the epoch. 0: times in seconds are taken for what they say.
 * @throws PilotageError `invalid_config` for what is not a time, for a day that does not exist, and for a text that does not say in which zone.
 */
export function readMoment(of: string, given: unknown, now: number = 0): number {
  const ms = given instanceof Date ? given.getTime() : typeof given === 'string' ? isoTime(given.trim()) : given;
  if (typeof given === 'number' && isInSeconds(given, now)) {
    throw new PilotageError('invalid_config', secondsGiven(of, given));
  }
  if (typeof ms === 'number' && ms >= 0 && ms <= LAST_MS) return Math.ceil(ms);
  const shown = typeof given === 'string' ? JSON.stringify(given.slice(0, 64)) : String(given);
  const message = `${of} is ${shown}, which cannot be read as a time; give a Date, milliseconds since the epoch, or a text with its zone, such as '2027-01-31T09:00:00+01:00'.`;
  throw new PilotageError('invalid_config', message);
}

function isoTime(text: string): number | undefined {
  const [, year, month, day] = ISO.exec(text) ?? [];
  if (year === undefined) return undefined;
  // JavaScript takes the 31st of February for the third of March.
  const inMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) >= 1 && Number(day) <= inMonth ? Date.parse(text) : undefined;
}
