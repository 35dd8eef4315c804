/** Fire times follow from the definition alone, also where clocks on the wall are changed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fireTimes, type ScheduleTimes, timesToFire } from '#runtime';

async function between(times: ScheduleTimes, from: string, to: string): Promise<string[]> {
  const { after } = await fireTimes(times);
  const found: string[] = [];
  for (let at = after(Date.parse(from) - 1); at !== null && at < Date.parse(to); at = after(at)) {
    found.push(new Date(at).toISOString().slice(5, 16));
  }
  return found;
}

const berlin = (cron: string): ScheduleTimes => ({ cron, timezone: 'Europe/Berlin' });
const newYork = (cron: string): ScheduleTimes => ({ cron, timezone: 'America/New_York' });

describe('a local time that does not exist', () => {
  it('fires when the gap ends, if it is the one time of the day', async () => {
    expect(await between(berlin('30 2 * * *'), '2026-03-28T00:00Z', '2026-03-31T00:00Z')).toEqual([
      '03-28T01:30',
      '03-29T01:00',
      '03-30T00:30',
    ]);
    expect(await between(newYork('30 2 * * *'), '2026-03-07T00:00Z', '2026-03-10T00:00Z')).toEqual([
      '03-07T07:30',
      '03-08T07:00',
      '03-09T06:30',
    ]);
  });

  it('is left out, if there are several times in the day', async () => {
    expect(await between(berlin('*/30 * * * *'), '2026-03-29T00:00Z', '2026-03-29T02:00Z')).toEqual([
      '03-29T00:00',
      '03-29T00:30',
      '03-29T01:00',
      '03-29T01:30',
    ]);
    expect(await between(newYork('0 1-3 * * *'), '2026-03-08T00:00Z', '2026-03-09T00:00Z')).toEqual([
      '03-08T06:00',
      '03-08T07:00',
    ]);
  });
});

describe('a local time that exists twice', () => {
  it('fires the first time, if it is the one time of the day', async () => {
    expect(await between(berlin('30 2 * * *'), '2026-10-24T00:00Z', '2026-10-27T00:00Z')).toEqual([
      '10-24T00:30',
      '10-25T00:30',
      '10-26T01:30',
    ]);
    expect(await between(newYork('30 1 * * *'), '2026-11-01T00:00Z', '2026-11-03T00:00Z')).toEqual([
      '11-01T05:30',
      '11-02T06:30',
    ]);
  });

  it('fires both times, if there are several times in the day', async () => {
    expect(await between(berlin('0 * * * *'), '2026-10-24T23:00Z', '2026-10-25T03:00Z')).toEqual([
      '10-24T23:00',
      '10-25T00:00',
      '10-25T01:00',
      '10-25T02:00',
    ]);
    expect(await between(newYork('*/30 1 * * *'), '2026-11-01T00:00Z', '2026-11-02T00:00Z')).toEqual([
      '11-01T05:00',
      '11-01T05:30',
      '11-01T06:00',
      '11-01T06:30',
    ]);
  });
});

/** Days around each change of the clock, and a plain one. */
const DAYS = ['2026-03-28', '2026-10-24', '2026-03-07', '2026-10-31', '2026-06-01'].map((day) =>
  Date.parse(`${day}T12:00Z`),
);
const CRONS = [
  '30 2 * * *',
  '30 1 * * *',
  '0 * * * *',
  '*/15 * * * *',
  '*/20 2 * * *',
  '0 0 * * 0',
  '15 1,2 * * *',
  '0 3 * * *',
];
const anyTimes = fc.oneof(
  fc.record({ cron: fc.constantFrom(...CRONS), timezone: fc.constantFrom('Europe/Berlin', 'America/New_York', 'UTC') }),
  fc.record({ everyMs: fc.integer({ min: 60_000, max: 7_200_000 }) }),
);

describe('looks at a schedule', () => {
  it('find the same fire times, however time is split into them', async () => {
    const property = fc.asyncProperty(
      anyTimes,
      fc.constantFrom(...DAYS),
      fc.array(fc.integer({ min: 1, max: 6 * 3_600_000 }), { minLength: 1, maxLength: 12 }),
      async (definition, from, parts) => {
        const times = await fireTimes(definition);
        const end = from + parts.reduce((sum, part) => sum + part, 0);
        const all: number[] = [];
        for (let at = times.after(from); at !== null && at <= end; at = times.after(at)) all.push(at);
        const found: number[] = [];
        let next = times.after(from);
        let now = from;
        for (const part of parts) {
          now += part;
          if (next === null) break;
          const due = timesToFire(times, next, now, 'all');
          found.push(...due);
          if (due.length > 0) next = times.after(now);
        }
        expect(found).toEqual(all);
        // Asked from any moment, too.
        for (const at of parts)
          expect(times.after(from + at)).toBe(all.find((time) => time > from + at) ?? times.after(end));
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  it('begin what is a little late, whatever is made up for', async () => {
    const times = await fireTimes({ everyMs: 10_000 });
    for (const catchUp of ['none', 'last', 'all'] as const) {
      expect(timesToFire(times, 10_000, 65_000, catchUp)).toEqual([10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    }
    expect(timesToFire(times, 10_000, 100_000, 'none')).toEqual([
      40_000, 50_000, 60_000, 70_000, 80_000, 90_000, 100_000,
    ]);
    expect(timesToFire(times, 10_000, 100_000, 'last')).toEqual([100_000]);
  });

  it('go over years at once', async () => {
    const times = await fireTimes({ cron: '0 0 29 2 *', timezone: 'UTC' });
    expect(timesToFire(times, Date.UTC(2024, 1, 29), Date.UTC(2047, 0, 1), 'last')).toEqual([Date.UTC(2044, 1, 29)]);
  });
});
