/** A question that is answered, and that no process has taken yet, says so in the list of what waits. */
import { expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import type { Waiting } from '#runtime';
import { call, script } from '../kit/decisions.ts';
import { pausesOf, send } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const asks = make('asks', (_, context) => context.ask({ question: 'Well?' }));
const gated = (approvals: number) => make('gated', () => 'made', { needsApproval: { approvals } });

it.each([
  ['an answer', asks, 'ANSWER', { value: 'yes' }, true],
  ['words of the user', asks, 'USER_MESSAGE', { message: 'yes' }, true],
  ['a new goal, which withdraws the question', asks, 'REDIRECT', { goal: 'another' }, true],
  ['an approval', gated(1), 'APPROVE', {}, true],
  ['an approval that is not enough', gated(2), 'APPROVE', {}, undefined],
] as const)('%s', async (_, tool, type, said, answered) => {
  const journal = memoryJournal();
  const made = world({ planner: script(call(tool.name)), tools: [tool], journal });
  const run = await start(made);
  const [pause] = await pausesOf(run);
  const look = async (): Promise<Waiting | undefined> => (await made.runtime.waiting({ run: run.id }))[0];
  expect((await look())?.answered).toBeUndefined();
  await made.runtime.close();
  const named = type === 'USER_MESSAGE' || type === 'REDIRECT' ? said : { ...said, token: pause?.token ?? '' };
  await send(journal, run, { id: 'c', type, payload: named });
  const elsewhere = world({ planner: script(), tools: [tool], journal });
  const [row] = await elsewhere.runtime.waiting({ run: run.id });
  expect(row).toMatchObject({ token: pause?.token });
  expect(row?.answered).toBe(answered);
});
