/** `context.once` of an attempt that was given up: what it records late is what the call goes on with. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { VirtualClock } from '#testing';
import { tool } from '#tools';
import { call, finish } from '../kit/decisions.ts';
import { advanceUntil, gate, until } from '../kit/waiting.ts';
import { world } from '../kit/world.ts';

it('a work that an attempt before has recorded meanwhile counts, and is recorded once', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const works = [gate(), gate()] as const;
  let attempts = 0;
  const slow = tool({
    name: 'slow',
    description: 'Does a part of its work.',
    inputSchema: z.object({}),
    effect: 'read',
    timeoutMs: 1_000,
    execute: (_, context) => {
      const nth = attempts;
      attempts += 1;
      return context.once('part', async () => {
        await works[nth === 0 ? 0 : 1].opened;
        return `by attempt ${nth + 1}`;
      });
    },
  });
  const made = world({
    planner: ({ trajectory }) => (trajectory.count === 0 ? call('slow') : finish('done')),
    tools: [slow],
    clock,
  });
  const run = await made.runtime.start('go');
  await advanceUntil(clock, () => attempts === 2);
  works[0].open();
  const kept = async (): Promise<unknown[]> =>
    (await made.journal.read(run.id)).filter(({ kind }) => kind === 'call_kept');
  await until(async () => (await kept()).length === 1);
  works[1].open();
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect(await kept()).toHaveLength(1);
  const ended = (await made.journal.read(run.id)).find(({ kind }) => kind === 'call_ended');
  expect(ended).toMatchObject({ outcome: { kind: 'value', value: 'by attempt 1' } });
  await made.runtime.close();
});
