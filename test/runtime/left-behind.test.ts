/** A runtime that its program has dropped without `close`: programs make one for each request. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, tool } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import { until } from '../kit/waiting.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const NEVER_MS = 1_000_000;

const nap = tool({
  name: 'nap',
  description: 'Waits.',
  effect: 'pure',
  inputSchema: {
    type: 'object',
    properties: { ms: { type: 'integer' } },
    required: ['ms'],
    additionalProperties: false,
  },
  execute: ({ ms }, context) => context.sleep({ forMs: Number(ms) }),
});

function runtimeThatNaps(journal: Journal, ms: number) {
  return createRuntime({
    planner: ({ trajectory }) =>
      trajectory.count === 0
        ? { kind: 'call_tool', tool: 'nap', args: { ms } }
        : { kind: 'finish', reason: 'goal', payload: 'awake' },
    tools: [nap],
    journal,
  });
}

/** Whether it is there after a collection. */
async function isThere(dropped: WeakRef<object>): Promise<boolean> {
  // What a turn of the event loop has looked at stays until it has ended.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  return dropped.deref() !== undefined;
}

it('is not kept in memory when its runs have ended', async () => {
  const dropped = await (async () => {
    const runtime = runtimeThatNaps(memoryJournal(), 0);
    expect((await (await runtime.start('Nap.')).result()).status).toBe('finished');
    return new WeakRef(runtime);
  })();
  await until(async () => !(await isThere(dropped)));
});

it('stays, and wakes its run, while a run of it waits for a time', async () => {
  const journal = memoryJournal();
  const id = await (async () => {
    const runtime = runtimeThatNaps(journal, 300);
    const run = await runtime.start('Nap.');
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    return run.id;
  })();
  await until(async () => {
    collect();
    return (await journal.get(id))?.status === 'finished';
  });
});

it('stays, and hears of what it is told, while a program has a handle of a run', async () => {
  const run = await runtimeThatNaps(memoryJournal(), NEVER_MS).start('Nap.');
  await until(async () => (await run.record()).status === 'waiting');
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  await run.cancel();
  expect(await run.result()).toMatchObject({ reason: 'cancelled' });
});
