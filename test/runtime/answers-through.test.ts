/** Whoever answers a question of a task through the run above it, and asks for that run's result at once, gets what came of the answer. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Run } from '#runtime';
import { type Agent, type AnyTool, agent, agentTool } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
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
