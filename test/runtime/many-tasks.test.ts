/** What a step costs in a run with many tasks in the background, each in a group of its own. */
import { expect, it, vi } from 'vitest';
import { MAX_LIVE_TASKS } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { agent } from '#tools';

const TASKS = 60;

const spec = (query: string) => ({ description: 'd', query, agent: 'asks', retainTurn: false });

it('the members of all groups are found with one look at the tasks', async () => {
  const filter = vi.spyOn(Array.prototype, 'filter');
  const spawner = agent({
    name: 'spawner',
    planner: ({ trajectory: { count } }) =>
      count < TASKS
        ? { kind: 'spawn_task', task: 'background', spec: spec(`q ${count}`) }
        : { kind: 'finish', reason: 'goal', payload: 'done' },
  });
  // Its tasks stay open, and so do their groups: a run has at most so many at once, and is told so of the rest.
  const asks = agent({ name: 'asks', planner: () => ({ kind: 'request_pause', reason: 'await_input' }) });
  const runtime = createRuntime({ agents: [spawner, asks], journal: memoryJournal() });
  const run = await runtime.start('Spawn.');
  await run.result();
  const looks = filter.mock.contexts
    .filter((list): list is readonly { kind?: unknown }[] => Array.isArray(list) && list[0]?.kind === 'background')
    .reduce((sum, list) => sum + list.length, 0);
  filter.mockRestore();
  const { tasks } = await run.state();
  expect(tasks.length).toBe(MAX_LIVE_TASKS);
  expect(looks).toBeLessThan(3 * TASKS * tasks.length);
  await runtime.close();
});
