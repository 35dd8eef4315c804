/** A run that is to end while a task carries out a call of it: what a task has come to that has ended by then is the call's outcome. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { Decision } from '#core';
import { memoryJournal } from '#journal';
import { agent, agentTool, createRuntime, type StartOptions } from '#pilotage';
import { call, finish, parallel, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { aborted, gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const ask = make('ask', async (_, context) => (await context.ask({ question: 'Well?' })) as string);
const toClerk = { id: 'clerk', tool: 'clerk', args: { input: 'q' } };
const toPerson = { id: 'person', tool: 'ask', args: {} };

/** Cancels the run from a process that has not its agent, lets the task end, and waits until the run has ended. */
async function cancelled(decision: Decision, options: Partial<StartOptions> = {}) {
  const effects: string[] = [];
  const [begun, mayEnd] = [gate(), gate()];
  const book = make(
    'book',
    async () => {
      begun.open();
      await mayEnd.opened;
      effects.push('booked');
      return 'booking';
    },
    { effect: 'once', undo: () => ({ tool: 'unbook', args: {} }) },
  );
  const unbook = make('unbook', () => effects.push('unbooked'), { effect: 'once' });
  const clerk = agent({ name: 'clerk', planner: script(call('book'), finish('booked')), tools: [book, unbook] });
  const tools = [agentTool(clerk, { description: 'Books.' }), ask];
  const main = agent({ name: 'main', planner: script(decision), tools });
  const journal = memoryJournal();
  const { runtime } = world({ agents: [main, clerk], journal });
  const run = await start({ runtime }, options);
  await begun.opened;
  await until(async () => (await journal.get(run.id))?.lease === undefined);
  const away = createRuntime({ agents: [agent({ name: 'away', planner: script() })], journal });
  await away.run(run.id).cancel();
  await away.close();
  mayEnd.open();
  await until(async () => (await run.state()).ending !== null);
  const { steps, ending } = await run.state();
  return { effects, ending, outcome: steps[0]?.calls[0]?.outcome };
}

it.each([
  ['a call', call('clerk', { input: 'q' })],
  ['a branch of a race', parallel([toClerk, toPerson], { join: { kind: 'first_success' } })],
  ['a branch', parallel([toClerk, toPerson])],
])('%s that a task has carried out is undone when its end and the cancel are read together', async (_, decision) => {
  const { effects, ending, outcome } = await cancelled(decision, { onFail: 'undo' });
  expect(outcome).toEqual({ kind: 'value', value: 'booked' });
  expect(effects).toEqual(['booked', 'unbooked']);
  expect(ending).toMatchObject({ reason: 'cancelled', metadata: { undo: { undone: [{ tool: 'clerk' }] } } });
});

it('a call that a task has carried out is told from one that had not ended when the run is cancelled at once', async () => {
  const { effects, ending, outcome } = await cancelled(parallel([toClerk, toPerson]));
  expect(ending).toMatchObject({ reason: 'cancelled' });
  expect(effects).toEqual(['booked']);
  expect(outcome).toMatchObject({
    kind: 'cancelled',
    error: { message: expect.stringContaining('its task had come to') },
  });
});

it('a deadline that comes while the value of a task is checked waits for the check, and the call ends once', async () => {
  const [checking, checked] = [gate(), gate()];
  const outputSchema = z.string().refine(async () => {
    checking.open();
    await checked.opened;
    return true;
  });
  const clerk = agent({ name: 'clerk', planner: script(finish('booked')) });
  const stops = make('stops', (_, { signal }) => aborted(signal));
  const branches = [toClerk, { id: 'stops', tool: 'stops', args: {} }];
  const tools = [agentTool(clerk, { description: 'Books.', outputSchema }), stops];
  const made = world({ planner: script(parallel(branches)), tools });
  const run = await start(made, { limits: { deadlineAt: made.clock.now() + 5_000 } });
  await checking.opened;
  made.clock.advance(5_000);
  // The branch beside it has ended: the run is looked at again, while the value of the task is checked still.
  await until(async () => (await made.journal.read(run.id)).some(({ kind }) => kind === 'call_ended'));
  checked.open();
  expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
  const ends = (await made.journal.read(run.id)).filter(({ kind }) => kind === 'call_ended');
  expect(ends.map((end) => 'call' in end && end.call)).toEqual([1, 0]);
  expect((await run.state()).steps[0]?.calls.map(({ outcome }) => outcome.kind)).toEqual(['value', 'cancelled']);
  expect(made.faults).toEqual([]);
});
