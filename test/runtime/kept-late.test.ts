/** `context.once` of an attempt that was given up: what it records late is what the call goes on with, and what it has broken off nobody knows. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { tool } from '#tools';
import { call, finish } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { aborted, advanceUntil, gate, until } from '../kit/waiting.ts';
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

it('a work whose record is on its way to the store when its attempt is given up is not done again', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const kept = memoryJournal({ clock });
  const landed = gate();
  const goesOn = gate();
  const journal = changed(kept, {
    append: async (append) => {
      const said = await kept.append(append);
      if (!append.entries.some((entry) => entry.kind === 'call_kept')) return said;
      landed.open();
      await goesOn.opened;
      return said;
    },
  });
  let attempts = 0;
  let works = 0;
  const slow = tool({
    name: 'slow',
    description: 'Does a part of its work.',
    inputSchema: z.object({}),
    effect: 'read',
    timeoutMs: 1_000,
    execute: (_, context) => {
      attempts += 1;
      return context.once('part', () => {
        works += 1;
        return `by attempt ${attempts}`;
      });
    },
  });
  const made = world({
    planner: ({ trajectory }) => (trajectory.count === 0 ? call('slow') : finish('done')),
    tools: [slow],
    clock,
    journal,
  });
  const run = await made.runtime.start('go');
  await landed.opened;
  await advanceUntil(clock, () => attempts === 2);
  goesOn.open();
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect(works).toBe(1);
  const entries = await made.journal.read(run.id);
  expect(entries.filter(({ kind }) => kind === 'call_kept')).toHaveLength(1);
  expect(entries.find(({ kind }) => kind === 'call_ended')).toMatchObject({ outcome: { value: 'by attempt 1' } });
  await made.runtime.close();
});

it('a `once` call is in doubt when its time limit has broken off a work of it, although it waits for something too', async () => {
  let works = 0;
  const charge = tool({
    name: 'charge',
    description: 'Charges, and waits to be paid.',
    inputSchema: z.object({}),
    effect: 'once',
    timeoutMs: 1_000,
    execute: async (_, { once, event, signal }) => {
      const work = once('charge', () => {
        works += 1;
        return aborted(signal);
      });
      await Promise.allSettled([work, event({ key: 'paid', timeoutMs: 2_000 })]);
      return 'paid';
    },
  });
  const { runtime, clock, journal } = world({
    planner: ({ trajectory }) => (trajectory.count === 0 ? call('charge') : finish('done')),
    tools: [charge],
  });
  const run = await runtime.start('go');
  await advanceUntil(clock, async () => works > 1 || (await entriesOf(journal, run, 'paused')).length > 0);
  expect(works).toBe(1);
  expect(await pausesOf(run)).toMatchObject([{ reason: 'in_doubt' }]);
  await runtime.close();
});
