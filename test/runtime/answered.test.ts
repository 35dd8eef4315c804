/** A question that is answered, and that no process has taken yet, says so in the list of what waits, and in the result of its run. */
import { expect, it } from 'vitest';
import type { Planner } from '#core';
import { memoryJournal } from '#journal';
import type { Waiting } from '#runtime';
import { VirtualClock } from '#testing';
import { agent, agentTool } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { pausesOf, send } from '../kit/run-record.ts';
import { ANY, make } from '../kit/tools.ts';
import { advanceUntil } from '../kit/waiting.ts';
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
  const elsewhere = world({ planner: script(), tools: [tool], journal, goesOn: false });
  const [row] = await elsewhere.runtime.waiting({ run: run.id });
  expect(row).toMatchObject({ token: pause?.token });
  expect(row?.answered).toBe(answered);
  const result = await elsewhere.runtime.run(run.id).result();
  expect(result).toMatchObject({ status: 'paused', pauses: [{ run: run.id, token: pause?.token }] });
  expect(result).not.toHaveProperty('problem');
  expect(result.status === 'paused' && result.pauses[0]?.answered).toBe(answered);
});

const version = (one: string): Planner => ({ name: 'asker', next: script(call('gated')), version: one });

it('a result says why nobody has taken the answer, after a deploy', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const first = world({ planner: version('1'), tools: [gated(1)], journal, clock });
  const { id } = await start(first);
  const [asked] = await pausesOf(first.runtime.run(id));
  await first.runtime.close();
  await journal.signal(id, { id: 'c', type: 'APPROVE', payload: { token: asked?.token ?? '' } });
  const second = world({ planner: version('2'), tools: [gated(1)], journal, clock });
  second.runtime.work();
  await advanceUntil(clock, async () => (await second.runtime.run(id).record()).problem !== undefined);
  const pauses = [{ reason: 'approval_required', answered: true }];
  expect(await second.runtime.run(id).result()).toMatchObject({
    status: 'paused',
    pauses,
    problem: { code: 'run_changed' },
  });
  await second.runtime.close();
});

it('a result has what is answered of a task below, and why the task cannot go on', async () => {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const agents = (one: string) => {
    const worker = agent({ name: 'worker', planner: version(one), tools: [gated(1)] });
    const ask = agentTool(worker, { name: 'ask', description: 'Asks.', inputSchema: ANY, prompt: () => 'q' });
    return [agent({ name: 'boss', planner: script(call('ask')), tools: [ask] }), worker];
  };
  const first = world({ agents: agents('1'), journal, clock });
  const { id } = await start(first);
  const [asked] = await pausesOf(first.runtime.run(id));
  await first.runtime.close();
  await journal.signal(asked?.run ?? '', { id: 'c', type: 'APPROVE', payload: { token: asked?.token ?? '' } });
  const second = world({ agents: agents('2'), journal, clock });
  second.runtime.work();
  const run = second.runtime.run(id);
  await advanceUntil(clock, async () => (await journal.get(asked?.run ?? ''))?.problem !== undefined);
  expect(await run.result()).toMatchObject({
    pauses: [{ run: asked?.run, answered: true }],
    problem: { code: 'run_changed' },
  });
  await second.runtime.close();
});
