/** Words that are told to a turn behind its cancel, while it waits to know what it has to undo. */
import { expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, type Planner, tool } from '#pilotage';
import { OutcomeUnknown } from '#pilotage/tools';
import { until } from '../kit/waiting.ts';

const inputSchema = { type: 'object' } as const;
const planner: Planner = {
  name: 'books',
  next: ({ query, trajectory: { count } }) =>
    query === 'Book.' && count < 2
      ? { kind: 'call_tool', tool: count === 0 ? 'book' : 'pay', args: {} }
      : { kind: 'finish', reason: 'goal', payload: `About: ${query}` },
};

it.each(['settled', 'cancelled again', 'settled, in another process'])('begin a turn of their own: %s', async (how) => {
  const journal = memoryJournal();
  const undone: string[] = [];
  const book = tool({
    ...{ name: 'book', description: 'Books.', effect: 'keyed', inputSchema },
    execute: () => ({ booked: true }),
    undo: () => ({ tool: 'release', args: {} }),
  });
  const release = tool({
    ...{ name: 'release', description: 'Releases.', effect: 'keyed', inputSchema },
    execute: () => void undone.push('book'),
  });
  const pay = tool({
    ...{ name: 'pay', description: 'Pays.', effect: 'once', inputSchema },
    execute: () => {
      throw new OutcomeUnknown('The line was cut.');
    },
  });
  const open = () => createRuntime({ planner, tools: [book, release, pay], journal, onFail: 'undo' });
  let runtime = open();
  const { turn } = await runtime.session('talk').send('Book.');
  const result = await runtime.run(turn).result();
  const [doubt] = result.status === 'paused' ? result.pauses : [];
  expect(doubt?.reason).toBe('in_doubt');
  await runtime.run(turn).cancel();
  const words = await runtime.session('talk').send('Is it paid?', { busy: 'steer' });
  const more = await runtime.session('talk').send('Tell me.', { busy: 'steer' });
  await until(async () => (await journal.inbox(turn)).length === 0);
  if (how.includes('another')) {
    await runtime.close();
    runtime = open();
  }
  if (how === 'cancelled again') await runtime.run(turn).cancel();
  else await runtime.run(turn).settle(doubt?.token ?? '', { happened: false });
  await until(async () => (await runtime.run(turn).result()).status === 'finished');
  expect(await runtime.run(turn).result()).toMatchObject({ reason: 'cancelled' });
  expect(undone).toEqual(how === 'cancelled again' ? [] : ['book']);
  expect(words.turn).toBe(turn);
  const turns = await runtime.session('talk').turns();
  const said = await Promise.all(turns.slice(1).map(async (later) => runtime.run(later.turn).payload()));
  expect([more.as, said]).toEqual([words.as, ['About: Is it paid?', 'About: Tell me.']]);
  await runtime.close();
});
