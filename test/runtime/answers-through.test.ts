/** Whoever answers a question of a task through the run above it, and asks for that run's result at once, gets what came of the answer. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { type Agent, type AnyTool, agent, agentTool } from '#tools';
import { call, parallel, script } from '../kit/decisions.ts';
import { shuffledJournal } from '../kit/journals.ts';
import { pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { aborted, gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const asks = (hold: boolean) => make('asks', (_, context) => context.ask({ question: 'Well?', hold }));
const twice = make('twice', async (_, context) => [
  await context.ask({ question: 'One?' }),
  await context.ask({ question: 'Two?' }),
]);
const gated = make('gated', () => 'made', { needsApproval: true });

const one = { kind: 'answer', value: 'yes' } as const;
const WAYS: [string, string, (run: Run, token: string) => Promise<void>][] = [
  ['an answer', 'asks', (run, token) => run.answer(token, one)],
  ['an answer without a token', 'asks', (run) => run.answer(undefined, one)],
  ['an answer to a call that stays open', 'held', (run, token) => run.answer(token, one)],
  ['a rejection', 'asks', (run, token) => run.reject(token)],
  ['an approval', 'gated', (run, token) => run.approve(token)],
  ['words', 'asks', (run) => run.send('yes')],
  ['words that are taken', 'asks', (run) => run.send('yes', { until: 'applied' })],
  ['several answers', 'asks', (run, token) => run.answerAll({ [token]: one })],
];

/** A run above `depth` agents, of which the lowest calls the tool. */
function above(tool: string, depth: number): World {
  const down = (one: Agent): AnyTool => ({ ...agentTool(one, { description: 'd' }), name: 'down' });
  const planner = script(call('down', { input: 'go' }));
  const tools = [asks(false), { ...asks(true), name: 'held' }, twice, gated];
  let below = agent({ name: 'lowest', planner: script(call(tool)), tools });
  for (let level = 1; level < depth; level += 1)
    below = agent({ name: `level${level}`, planner, tools: [down(below)] });
  const made = world({ planner, tools: [down(below)] });
  onTestFinished(() => made.runtime.close());
  return made;
}

describe.each([1, 2])('of a task %i below', (depth) => {
  it.each(WAYS)('%s', async (_, tool, way) => {
    const run = await start(above(tool, depth));
    const [asked] = await pausesOf(run);
    await way(run, asked?.token ?? '');
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('an answer that leads to the next question', async () => {
    const run = await start(above('twice', depth));
    await run.result();
    await run.answer(undefined, one);
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { message: 'Two?' } }] });
    await run.answer(undefined, one);
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });
});

/** A call that asks, and then works until the gate is open. */
function working(): { readonly tool: AnyTool; readonly begun: Promise<void>; readonly goOn: () => void } {
  const [begun, done] = [gate(), gate()];
  const tool = make('works', async (_, context) => {
    await context.ask({ question: 'May I?' });
    begun.open();
    await Promise.race([done.opened, aborted(context.signal)]);
    return 'done';
  });
  return { tool, begun: begun.opened, goOn: () => done.open() };
}

it('shows what is still asked, and not what is answered, while the task that was answered works', async () => {
  const { tool, begun, goOn } = working();
  const down = (name: string, tools: readonly AnyTool[]): AnyTool => ({
    ...agentTool(agent({ name, planner: script(call(tools[0]?.name ?? '')), tools }), { description: 'd' }),
    name,
  });
  const tools = [down('left', [tool]), down('right', [asks(false)])];
  const planner = script(parallel(tools.map(({ name }) => ({ tool: name, args: { input: 'go' } }))));
  const run = await start(world({ planner, tools }));
  await until(async () => (await pausesOf(run)).length === 2);
  const [left, right] = ['May I?', 'Well?'].map(
    (message) => async () => (await pausesOf(run)).find(({ payload }) => payload?.['message'] === message),
  );
  await run.answer((await left?.())?.token, one);
  await begun;
  expect(await pausesOf(run)).toMatchObject([{ payload: { message: 'Well?' } }]);
  await run.answer((await right?.())?.token, one);
  goOn();
  expect(await run.result()).toMatchObject({ status: 'finished' });
});

it('goes on with a task whose process went before the run above it heard of the answer', async () => {
  const { tool, begun, goOn } = working();
  const below = agent({ name: 'below', planner: script(call('works')), tools: [tool] });
  const tools = [{ ...agentTool(below, { description: 'd' }), name: 'down' }];
  const shared = { planner: script(call('down', { input: 'go' })), tools, journal: memoryJournal() };
  const first = world(shared);
  const run = await start(first);
  const [asked] = await pausesOf(run);
  const task = first.runtime.run(asked?.run ?? '');
  await task.answer(asked?.token, one);
  await begun;
  await first.runtime.close({ graceMs: 0 });
  const second = world(shared);
  goOn();
  expect(await second.runtime.run(run.id).result()).toMatchObject({ status: 'finished' });
});

it('resume takes the answer that is stored with a task, and leaves the question of the run itself open', async () => {
  const below = agent({ name: 'below', planner: script(call('asks')), tools: [asks(false)] });
  const tools = [{ ...agentTool(below, { description: 'd' }), name: 'down' }, gated];
  const planner = script(
    parallel([
      { tool: 'down', args: { input: 'go' } },
      { tool: 'gated', args: {} },
    ]),
  );
  const shared = { planner, tools, journal: memoryJournal() };
  const first = world(shared);
  const run = await start(first);
  await until(async () => (await pausesOf(run)).length === 2);
  const asked = (await pausesOf(run)).find(({ payload }) => payload?.['message'] === 'Well?');
  await first.runtime.close();
  // It has no agent that could go on with them.
  const desk = world({ agents: [agent({ name: 'desk', planner, tools: [] })], journal: shared.journal });
  await desk.runtime.run(asked?.run ?? '').answer(asked?.token, one);
  await desk.runtime.close();
  const second = world(shared);
  onTestFinished(() => second.runtime.close());
  const again = second.runtime.run(run.id);
  await again.resume();
  await until(async () => (await pausesOf(again)).length === 1);
  expect(await again.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { tool: 'gated' } }] });
  await again.approve();
  expect(await again.result()).toMatchObject({ status: 'finished' });
});

describe('however its reads fall between what the task does, the result', () => {
  const below = (tool: AnyTool): readonly AnyTool[] => {
    const asker = agent({ name: 'below', planner: script(call('asks')), tools: [tool] });
    return [{ ...agentTool(asker, { description: 'd' }), name: 'down' }];
  };
  const planner = script(call('down', { input: 'go' }));
  const SEEDS = Array.from({ length: 40 }, (_, seed) => seed);

  it('is not paused for a question whose answer is stored', async () => {
    for (const seed of SEEDS) {
      const journal = memoryJournal();
      const first = world({ planner, tools: below(asks(false)), journal });
      const run = await start(first);
      const [asked] = await pausesOf(run);
      await first.runtime.close();
      // It has no agent that could go on with them.
      const desk = world({ agents: [agent({ name: 'desk', planner, tools: [] })], journal });
      await desk.runtime.run(asked?.run ?? '').answer(asked?.token, one);
      await desk.runtime.close();
      const second = world({ planner, tools: below(asks(false)), journal: shuffledJournal(journal, seed) });
      const again = second.runtime.run(run.id);
      await again.resume();
      expect(await again.result(), `seed ${seed}`).toMatchObject({ status: 'finished' });
      await second.runtime.close();
    }
  });

  it('is that of the changed code that was accepted, also while another look at the task refuses it', async () => {
    const changed = { ...asks(false), inputSchema: { type: 'object', properties: { more: {} } } } as const;
    for (const seed of SEEDS) {
      const journal = memoryJournal();
      const first = world({ planner, tools: below(asks(false)), journal });
      const run = await start(first);
      await run.result();
      await first.runtime.close();
      const second = world({
        planner,
        tools: below(changed),
        journal: shuffledJournal(journal, seed),
      });
      const again = second.runtime.run(run.id);
      await again.answer(undefined, one);
      await again.resume({ acceptChanges: true });
      expect(await again.result(), `seed ${seed}`).toMatchObject({ status: 'finished' });
      await second.runtime.close();
    }
  });
});
