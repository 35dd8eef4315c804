/** What an answer costs in a run with many open questions. */
import { expect, it } from 'vitest';
import type { Message } from '#core';
import { memoryJournal } from '#journal';
import { tool } from '#tools';
import { changed } from '../kit/journals.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const QUESTIONS = 60;

it('what was said to the run is looked through once for all its questions', async () => {
  let looks = 0;
  /** Whether a message withdraws questions is asked by this field of it. */
  const watched = (message: Message): Message =>
    Object.defineProperty({ ...message }, 'withdraws', {
      enumerable: true,
      get: () => {
        looks += 1;
        return undefined;
      },
    });
  const inMemory = memoryJournal();
  const journal = changed(inMemory, {
    inbox: async (run) =>
      (await inMemory.inbox(run)).map((received) => ({ ...received, message: watched(received.message) })),
  });
  const question = tool({
    name: 'question',
    description: 'Asks.',
    effect: 'pure',
    inputSchema: { type: 'object' },
    execute: (_, context) => context.ask({ question: 'How many?' }),
  });
  const branches = Array.from({ length: QUESTIONS }, (_, at) => ({ id: `b${at}`, tool: 'question', args: {} }));
  const here = world({
    journal,
    tools: [question],
    planner: (run) =>
      run.trajectory.count === 0
        ? { kind: 'call_parallel', plan: 'p', branches }
        : { kind: 'finish', reason: 'goal', payload: 'done' },
  });
  const run = await start(here);
  await until(async () => (await run.state()).pauses.length === QUESTIONS);
  for (const { token } of (await run.state()).pauses) await run.answer(token, { kind: 'answer', value: 1 });
  expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  expect(looks).toBeGreaterThan(0);
  expect(looks).toBeLessThan(8 * QUESTIONS ** 2);
  await here.runtime.close();
});
