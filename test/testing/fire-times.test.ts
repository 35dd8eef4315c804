/** Fire times by the plain definition, around each change of the clocks on a wall, against those by which schedules fire. */
import { expect, it } from 'vitest';
import { fireTimes } from '#runtime';
import { nextFire } from '../simulation/fire-times-by-hand.ts';
import { CHANGES, CRONS } from '../simulation/generate-calendar.ts';

const HOUR = 3_600_000;

it.each(CHANGES)('are the same in $timezone around $at', async ({ timezone, at }) => {
  for (const fields of CRONS) {
    const { after } = await fireTimes({ cron: fields.cron, timezone });
    for (let now = at - 30 * HOUR; now < at + 50 * HOUR; ) {
      const next = after(now) ?? Number.POSITIVE_INFINITY;
      expect([fields.cron, nextFire({ ...fields, timezone }, now)]).toEqual([fields.cron, next]);
      now = next;
    }
  }
});
