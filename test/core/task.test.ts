/** The ids of tasks: where a task stands in its tree can be read off its own. */
import { describe, expect, it } from 'vitest';
import { runsAbove, taskId } from '#core';

describe('the id of a task', () => {
  it('is that of its owner with the step and the call', () => {
    expect(taskId('run_a', 2, 11)).toBe('run_a.2.11');
  });

  it('has the runs above it, the nearest first, also when the first one has dots in its id', () => {
    const child = taskId('my.run.1', 0, 3);
    const grandchild = taskId(child, 12, 0);
    expect(runsAbove(grandchild, 2)).toEqual([child, 'my.run.1']);
    expect(runsAbove(child, 1)).toEqual(['my.run.1']);
    expect(runsAbove('my.run.1', 0)).toEqual([]);
  });
});
