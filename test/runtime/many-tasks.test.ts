/** What a step costs in a run with many tasks in the background, each in a group of its own. */
import { expect, it, vi } from 'vitest';
import { MAX_LIVE_TASKS, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { agent } from '#tools';
import { finish } from '../kit/decisions.ts';
import { looksAt } from '../kit/looks.ts';
import { make } from '../kit/tools.ts';

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

const isTaskOrGroup = (item: object): boolean => 'onCancel' in item || 'sealed' in item;

/** Starts them one by one, and waits for those that are under way when there can be no more. */
const startsAll =
  (tasks: number): PlannerFunction =>
  ({ trajectory: { tasks: started, background } }) => {
    const live = started.length - background.length;
    if (started.length < tasks && live < MAX_LIVE_TASKS) return { kind: 'call_tool', tool: 'note', args: {} };
    return live > 0 ? { kind: 'request_pause', reason: 'external_event' } : finish('done');
  };

it('nothing walks over tasks that have ended: neither a step, nor whoever reads the run', async () => {
  const looksFor = async (tasks: number): Promise<number> => {
    const note = make('note', () => 1, { background: true });
    const journal = memoryJournal();
    const options = { planner: startsAll(tasks), tools: [note], journal };
    const [runtime, other] = [createRuntime(options), createRuntime(options)];
    const looks = await looksAt(isTaskOrGroup, async () => {
      const run = await runtime.start('Start them.', { limits: { steps: 10 * tasks } });
      for await (const _ of run.events({ overPauses: true }));
      const again = other.run(run.id);
      for await (const _ of again.events({ from: 0 }));
      expect((await again.state()).tasks.filter(({ end }) => end?.status === 'complete').length).toBe(tasks);
    });
    await Promise.all([runtime.close(), other.close()]);
    return looks;
  };
  const [few, many] = [await looksFor(50), await looksFor(200)];
  expect(many).toBeLessThan(6 * few);
});
