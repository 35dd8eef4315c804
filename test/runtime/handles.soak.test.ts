import { describe, expect, it } from 'vitest';
import { VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

describe('a live handle', () => {
  it('leaves nothing behind after 10,000 runs', async () => {
    let open = 0;
    const count = { name: 'count', open: () => ++open, close: () => void open-- };
    const clock = new VirtualClock();
    const tool: Tool = { ...make('use', () => null), handles: { count } };
    const failing: Tool = {
      ...make('fail', () => null),
      handles: { none: { ...count, name: 'none', open: () => Promise.reject(new Error('no')) } },
    };
    const made = world({ planner: script(call('use'), call('fail')), tools: [tool, failing], clock });
    for (let batch = 0; batch < 100; batch += 1) {
      const runs = await Promise.all(Array.from({ length: 100 }, () => start(made)));
      await Promise.all(runs.map((run) => run.result()));
    }
    expect(open).toBe(0);
    await made.runtime.close();
    expect(clock.pending).toBe(0);
    expect(made.faults).toEqual([]);
  }, 60_000);
});
