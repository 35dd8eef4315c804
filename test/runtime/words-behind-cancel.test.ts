/** Words that are told to a turn behind its cancel, while it waits to know what it has to undo. */
import { expect, it } from 'vitest';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, PilotageError, type Planner, type Runtime, tool } from '#pilotage';
import { OutcomeUnknown } from '#pilotage/tools';
import { changed } from '../kit/journals.ts';
import { until } from '../kit/waiting.ts';

const inputSchema = { type: 'object' } as const;
const planner: Planner = {
  name: 'books',
  next: ({ query, trajectory: { count } }) =>
    query === 'Book.' && count < 2
      ? { kind: 'call_tool', tool: count === 0 ? 'book' : 'pay', args: {} }
      : { kind: 'finish', reason: 'goal', payload: `About: ${query}` },
};

/** What a turn has booked, which is undone when it is cancelled, and a payment that is in doubt. */
function world(journal: Journal) {
  const undone: string[] = [];
  const faults: unknown[] = [];
  /** Releasing waits for it. */
  const gate: { open: Promise<void>; isAsked: boolean } = { open: Promise.resolve(), isAsked: false };
  const book = tool({
    ...{ name: 'book', description: 'Books.', effect: 'keyed', inputSchema },
    execute: () => ({ booked: true }),
    undo: () => ({ tool: 'release', args: {} }),
  });
  const release = tool({
    ...{ name: 'release', description: 'Releases.', effect: 'keyed', inputSchema },
    execute: async () => {
      gate.isAsked = true;
      await gate.open;
      undone.push('book');
    },
  });
  const pay = tool({
    ...{ name: 'pay', description: 'Pays.', effect: 'once', inputSchema },
    execute: () => {
      throw new OutcomeUnknown('The line was cut.');
    },
  });
  const onFault = (error: unknown): void => void faults.push(PilotageError.is(error) ? error.code : error);
  const tools = [book, release, pay];
  return { undone, faults, gate, open: () => createRuntime({ planner, tools, journal, onFail: 'undo', onFault }) };
}

/** A turn that is cancelled, has its words behind the cancel, and waits to know whether the payment happened. */
async function cancelledInDoubt(runtime: Runtime, journal: Journal) {
  const { turn } = await runtime.session('talk').send('Book.');
  const result = await runtime.run(turn).result();
  const [doubt] = result.status === 'paused' ? result.pauses : [];
  expect(doubt?.reason).toBe('in_doubt');
  await runtime.run(turn).cancel();
  const words = await runtime.session('talk').send('Is it paid?', { busy: 'steer' });
  const more = await runtime.session('talk').send('Tell me.', { busy: 'steer' });
  await until(async () => (await journal.inbox(turn)).length === 0);
  expect([words.turn, more.as]).toEqual([turn, words.as]);
  return { turn, token: doubt?.token ?? '' };
}

it.each(['settled', 'cancelled again', 'settled, in another process'])('begin a turn of their own: %s', async (how) => {
  const journal = memoryJournal();
  const { undone, open } = world(journal);
  let runtime = open();
  const { turn, token } = await cancelledInDoubt(runtime, journal);
  if (how.includes('another')) {
    await runtime.close();
    runtime = open();
  }
  if (how === 'cancelled again') await runtime.run(turn).cancel();
  else await runtime.run(turn).settle(token, { happened: false });
  await until(async () => (await runtime.run(turn).result()).status === 'finished');
  expect(await runtime.run(turn).result()).toMatchObject({ reason: 'cancelled' });
  expect(undone).toEqual(how === 'cancelled again' ? [] : ['book']);
  const turns = await runtime.session('talk').turns();
  const said = await Promise.all(turns.slice(1).map(async (later) => runtime.run(later.turn).payload()));
  expect(said).toEqual(['About: Is it paid?', 'About: Tell me.']);
  await runtime.close();
});

it('begin their turns once, before those of what is told while it undoes', async () => {
  const journal = memoryJournal();
  const { gate, open } = world(journal);
  const runtime = open();
  const { turn, token } = await cancelledInDoubt(runtime, journal);
  const { promise, resolve } = Promise.withResolvers<void>();
  gate.open = promise;
  await runtime.run(turn).settle(token, { happened: false });
  await until(() => gate.isAsked);
  await runtime.session('talk').send('Hello?', { busy: 'steer' });
  resolve();
  await until(async () => (await runtime.run(turn).result()).status === 'finished');
  const turns = await runtime.session('talk').turns();
  const said = await Promise.all(turns.slice(1).map(async (later) => runtime.run(later.turn).payload()));
  expect(said).toEqual(['About: Is it paid?', 'About: Tell me.', 'About: Hello?']);
  await runtime.close();
});

it('hold up no run whose entries this process cannot all read: it ends, and the process tells of it', async () => {
  const stored = memoryJournal();
  const unknown = new PilotageError('journal_entry_unknown', 'Entry 9 is of the unknown kind "later".');
  let isNewer = false;
  const read: Journal['read'] = (run, from, ...rest) =>
    isNewer && from === undefined ? Promise.reject(unknown) : stored.read(run, from, ...rest);
  const journal = changed(stored, { read });
  const { undone, faults, open } = world(journal);
  const runtime = open();
  const { turn, token } = await cancelledInDoubt(runtime, journal);
  isNewer = true;
  await runtime.run(turn).settle(token, { happened: false });
  await until(async () => (await stored.get(turn))?.status === 'cancelled');
  expect([undone, faults]).toEqual([['book'], ['journal_entry_unknown']]);
  await runtime.close();
});
