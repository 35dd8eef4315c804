/** A question of a call that was parked, and has gone on since with something else that it waited for. */
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { VirtualClock } from '#testing';
import { type Tool, ToolFailure } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { entriesOf, observations, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

describe('a question of a parked call', () => {
  /** Asks, and waits for an event that does not come: it goes on with that, and is not stopped in the work that it does before it has its answer. */
  const asksAndLooks = (look: () => Promise<void>, more: Partial<Tool>): Tool =>
    make(
      'asks',
      async (_, { ask, event, once }) => {
        const answer = ask({ question: 'May I?' });
        await event({ key: 'order-17', timeoutMs: 0 }).catch(() => {});
        await once('look', look);
        return (await answer) as Json;
      },
      more,
    );

  it('is open still when its call has gone on meanwhile, and is in doubt', async () => {
    let looks = 0;
    const tool = asksAndLooks(
      () => {
        looks += 1;
        return looks === 1 ? new Promise<void>(() => {}) : Promise.resolve();
      },
      { effect: 'once' },
    );
    const clock = new VirtualClock();
    const options = { planner: script(call('asks')), tools: [tool], journal: memoryJournal({ clock }), clock };
    const first = createRuntime(options);
    const run = await start({ runtime: first });
    await advanceUntil(clock, () => looks === 1);
    let closed = false;
    void first.close({ graceMs: 0 }).then(() => {
      closed = true;
    });
    await advanceUntil(clock, () => closed);
    const second = createRuntime(options);
    second.work();
    const again = second.run(run.id);
    const reasons = async () => (await pausesOf(again)).map(({ reason }) => reason);
    await advanceUntil(clock, async () => (await reasons()).includes('in_doubt'));
    expect(await reasons()).toEqual(['await_input', 'in_doubt']);
    const [question, doubt] = await pausesOf(again);
    await again.settle(doubt?.token, { happened: false });
    await advanceUntil(clock, () => looks === 2);
    expect(await again.result()).toMatchObject({ status: 'paused', pauses: [{ token: question?.token }] });
    await again.answer(question?.token, { kind: 'answer', value: 'yes' });
    await again.result();
    expect(observations(await again.state())).toEqual(['yes']);
    await second.close();
  });

  it.each([
    'before',
    'after',
  ])('is open still when its call has gone on meanwhile, and is tried again (answered %s that)', async (when) => {
    let looks = 0;
    const tool = asksAndLooks(
      async () => {
        looks += 1;
        if (looks === 1) throw new ToolFailure('busy', { retryAfterMs: 120_000 });
      },
      { effect: 'read', retries: 2 },
    );
    const { runtime, clock, journal } = world({ planner: script(call('asks')), tools: [tool] });
    const run = await start({ runtime });
    await advanceUntil(clock, async () => (await entriesOf(journal, run, 'call_away')).length === 1);
    const [question, ...others] = await pausesOf(run);
    expect(others).toEqual([]);
    if (when === 'after') await advanceUntil(clock, () => looks === 2);
    await run.answer(question?.token, { kind: 'answer', value: 'yes' });
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(observations(await run.state())).toEqual(['yes']);
  });
});
