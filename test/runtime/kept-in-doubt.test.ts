/** A part of the work of a `once` call that failed in the middle while the call waits for something: what may be done is not done again. */
import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { memoryJournal } from '#journal';
import type { ToolContext } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

describe('a once call with a part of its work that failed while the call waits', () => {
  /** Does its part and waits, both at once, and goes on whatever becomes of the part. */
  function charging(fail: (context: ToolContext) => Promise<unknown>) {
    let charged = 0;
    const charge = make(
      'charge',
      async (_, context) => {
        const part = context.once('charge', () => {
          charged += 1;
          return fail(context);
        });
        await Promise.allSettled([part, context.sleep({ forMs: 2_000 })]);
        return 'charged';
      },
      { effect: 'once', timeoutMs: 1_000 },
    );
    const journal = memoryJournal();
    return { ...world({ planner: script(call('charge')), tools: [charge], journal }), journal, charged: () => charged };
  }

  it.each([
    ['its time limit stopped it', ({ signal }: ToolContext) => aborted(signal)],
    [
      'it does not know whether it is done',
      () => Promise.reject(new PilotageError('outcome_unknown', 'The line was cut.')),
    ],
    ['it is done, and cannot be recorded', async () => () => 'no value of a journal'],
  ])('is in doubt when %s', async (_, fail) => {
    const made = charging(fail);
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'paused');
    expect(await run.state()).toMatchObject({ pauses: [{ reason: 'in_doubt' }] });
    await run.settle(undefined, { happened: true, value: 'charged' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made.charged()).toBe(1);
    expect(await entriesOf(made.journal, run, 'call_waits')).toEqual([]);
  });

  it('is at work no more when it only waits, so that what a person says of it counts', async () => {
    const working = gate();
    let parts = 0;
    const slow = make(
      'slow',
      async (_, context) => {
        const part = context.once('part', () => {
          parts += 1;
          return parts === 1 ? working.opened : undefined;
        });
        await Promise.all([part, context.sleep({ forMs: 100 })]);
        return 'done';
      },
      { effect: 'once', timeoutMs: 1_000 },
    );
    const journal = memoryJournal();
    const made = world({ planner: script(call('slow')), tools: [slow], journal });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await journal.get(run.id))?.status === 'paused');
    working.open();
    await quiet();
    await run.settle(undefined, { happened: false });
    await advanceUntil(made.clock, async () => (await journal.get(run.id))?.status === 'finished');
    expect(parts).toBe(1);
  });

  it.each([
    ['it has failed', async () => Promise.reject(new Error('The card was refused.'))],
    [
      'its time limit stopped it before it was sent',
      async ({ signal }: ToolContext) => {
        await aborted(signal).catch(() => {});
        throw new PilotageError('not_sent', 'The line was busy.');
      },
    ],
  ])('is parked, and its part done again, when it is known that %s', async (_, fail) => {
    const made = charging(fail);
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await made.journal.get(run.id))?.status === 'finished');
    expect(await entriesOf(made.journal, run, 'call_ended')).toMatchObject([{ outcome: { value: 'charged' } }]);
    expect(made.charged()).toBe(2);
  });
});
