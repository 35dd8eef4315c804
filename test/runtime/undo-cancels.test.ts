/** Which cancels of a run that undoes its calls are one, and which is the second that stops it. */
import { describe, expect, it } from 'vitest';
import type { Decision } from '#core';
import { OutcomeUnknown, type Tool } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { holding } from '../kit/tools.ts';
import { bookings } from '../kit/undo.ts';
import { start, world } from '../kit/world.ts';

const book = (what: string): Decision => call('book', { what });

describe('two cancels at the same moment', () => {
  it('are one: the calls of the run are undone', async () => {
    const { booked, tools } = bookings();
    const { tool, entered } = holding();
    const made = world({ planner: script(book('hotel'), call('hold')), tools: [...tools, tool], onFail: 'undo' });
    const run = await start(made);
    await entered;
    await Promise.all([run.cancel(), run.cancel(), made.runtime.run(run.id).cancel({ hard: false })]);
    expect(await run.result()).toMatchObject({ reason: 'cancelled', metadata: { undo: { undone: [{ step: 0 }] } } });
    expect(booked).toEqual([]);
  });

  it('are one for a run that waits for a doubt', async () => {
    const { booked, tools } = bookings({
      book: {
        effect: 'once',
        execute: ({ what }: { what: string }) => {
          if (what === 'flight') throw new OutcomeUnknown();
          booked.push(what);
          return { booking: what };
        },
      } as unknown as Partial<Tool>,
    });
    const run = await start(world({ planner: script(book('hotel'), book('flight')), tools, onFail: 'undo' }));
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await Promise.all([run.cancel(), run.cancel()]);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.settle(undefined, { happened: false });
    expect(await run.result()).toMatchObject({ reason: 'cancelled', metadata: { undo: { undone: [{ step: 0 }] } } });
    expect(booked).toEqual([]);
  });
});
