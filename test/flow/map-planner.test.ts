/** The planner of a map node, driven without a runtime. */
import { describe, expect, it } from 'vitest';
import type { Json, Outcome, Planner } from '#core';
import { MAX_ITEMS, mapPlanner } from '#flow';
import { runView } from '#testing';
import { play } from './by-hand.ts';

const planner: Planner = mapPlanner('map:f/double', 'double.item', 3);

/** The list is made of what the items came to; that of an item is twice it. */
const twice = (node: string, args: Json): Json => (node === '_finish' ? args : Number(args) * 2);

describe('mapPlanner', () => {
  it('calls the item tool once an item, and gives the values in the order of the items', () => {
    const { end, ran, steps } = play(planner, { input: [1, 2, 3, 4], run: twice, pick: (count) => count - 1 });
    expect(end).toEqual({ kind: 'finish', reason: 'goal', payload: [2, 4, 6, 8] });
    expect(ran.filter(({ node }) => node === 'double.item').map(({ args }) => args)).toEqual([4, 3, 2, 1]);
    expect(steps[0]?.decision).toMatchObject({ plan: 'map:f/double', concurrency: 3, failFast: true });
  });

  it('has nothing to call for no items', () => {
    expect(play(planner, { input: [], run: twice })).toMatchObject({ ran: [], steps: [], end: { payload: [] } });
  });

  it('goes on with the rest when the goal was changed on the way', () => {
    const { end, ran } = play(planner, { input: [1, 2, 3, 4], run: twice, cut: (step) => [1, 2][step] ?? 9 });
    expect(end).toMatchObject({ payload: [2, 4, 6, 8] });
    expect(ran.map(({ args }) => args)).toEqual([1, 2, 3, 4, [2, 4, 6, 8]]);
  });

  it('takes a list of at most 10,000 items, and nothing else', () => {
    const many = Array.from({ length: MAX_ITEMS + 1 }, () => 1);
    expect(() => play(planner, { input: many, run: twice })).toThrow(/10001 items/);
    expect(() => play(planner, { input: 'list', run: twice })).toThrow(/takes a list/);
    const view = runView({ context: { args: many.slice(1) } });
    expect(planner.next(view, new AbortController().signal)).toMatchObject({ decision: { plan: 'map:f/double' } });
  });

  it('fails with the first item that does, and says which one it is', () => {
    const failure: Outcome = { kind: 'error', error: { code: 'tool_timeout', message: 'Too slow.' } };
    const run = (node: string, args: Json): Json | Outcome => (args === 3 ? failure : twice(node, args));
    expect(() => play(planner, { input: [1, 3], run })).toThrow(
      expect.objectContaining({
        code: 'node_timeout',
        message: expect.stringContaining('(1)'),
        data: expect.objectContaining({ flow: 'map:f/double', node: 'double.item', instance: '1' }),
      }),
    );
  });

  it('gives no list without an item that somebody took out', () => {
    expect(() => play(planner, { input: [1, 2], run: twice, removed: (id) => id === '1' })).toThrow(/item 1/);
  });
});
