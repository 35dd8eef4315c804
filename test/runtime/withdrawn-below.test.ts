/** What a run shows of questions of its tasks that it has withdrawn, while the tasks have not heard of it: nobody can answer them any more. */
import { describe, expect, it } from 'vitest';
import type { PlannerFunction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { foldEntries } from '#state';
import { agent, agentTool } from '#tools';
import { asks, call } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, hasEnded, innerState, pausesOf } from '../kit/run-record.ts';
import { PARENT, thenTell } from '../kit/tasks.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const DESK = 'p';
const TELLER = 'p.0.0';

/** The same journal for a process that cannot have the runs that are held: another one seems to drive them. */
function holdingBack(base: Journal, ...held: string[]): Journal {
  return changed(base, {
    claim: async (request) => (held.includes(request.run ?? '') ? undefined : base.claim(request)),
  });
}

/** A desk whose call is carried out by a teller, who decides so. */
function bank(journal: Journal, teller: PlannerFunction): World {
  const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
  const doubt = make('doubt', () => new Promise(() => {}), { effect: 'once', timeoutMs: 5 });
  const below = agent({ name: 'teller', planner: teller, tools: [pay, doubt] });
  const planner = thenTell(call('teller', { input: 'pay' }));
  return world({ planner, tools: [agentTool(below, { description: 'pays' })], journal });
}

/** The run in a process that drives it, and not its task, which has asked something. */
async function askedAndHeld(teller: PlannerFunction, held = TELLER) {
  const base = memoryJournal();
  const first = bank(base, teller);
  const run = await start(first, { identity: PARENT });
  const [asked] = await pausesOf(run);
  await first.runtime.close();
  const here = bank(holdingBack(base, held), teller);
  return { base, asked, here, run: here.runtime.run(run.id), elsewhere: () => bank(base, teller) };
}

describe('a question of a task that the run above has withdrawn', () => {
  it.each([
    ['REDIRECT', thenTell(call('pay'))],
    ['USER_MESSAGE', thenTell(call('pay'))],
    ['REDIRECT', thenTell(asks)],
  ] as const)('is not shown any more once %s was applied, also before the task has heard of it', async (type, teller) => {
    const { base, asked, run, elsewhere } = await askedAndHeld(teller);
    await run.steer(type, { goal: 'do not pay', message: 'do not pay' }, { until: 'applied' });
    expect((await run.state()).tasks).toMatchObject([{ id: TELLER, pauses: [] }]);
    await until(async () => (await base.get(DESK))?.status === 'waiting');
    expect((await innerState(base, { id: TELLER })).pauses).toHaveLength(1);
    // The task had told of it before it heard.
    const [told] = await entriesOf(base, run, 'task_paused');
    if (told === undefined) throw new Error('The run was told nothing.');
    const { task, pauses, asOf } = told;
    await base.signal(DESK, { id: 'late', type: 'TASK_PAUSES', task, pauses, asOf });
    await run.steer('INJECT_CONTEXT', { note: 'it rains' }, { until: 'applied' });
    expect((await run.state()).tasks).toMatchObject([{ pauses: [] }]);
    await expect(run.approve(asked?.token)).rejects.toMatchObject({ code: 'superseded' });
    const other = elsewhere().runtime;
    await other.run(TELLER).resume();
    await until(() => hasEnded({ journal: base }, TELLER));
    await other.run(DESK).resume();
    expect(await other.run(DESK).result()).toMatchObject({ status: 'finished' });
    const events = await collect(other.run(DESK));
    expect(only(events, 'task.paused')).toHaveLength(1);
    expect(only(events, 'task.resumed').map(({ taskId }) => taskId)).toEqual([TELLER]);
  });

  it('is not shown by the run two levels above either', async () => {
    const base = memoryJournal();
    const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
    const teller = agent({ name: 'teller', planner: thenTell(call('pay')), tools: [pay] });
    const tools = [agentTool(teller, { description: 'pays' })];
    const clerk = agent({ name: 'clerk', planner: thenTell(call('teller', { input: 'pay' })), tools });
    const bankOn = (journal: Journal) =>
      world({
        planner: thenTell(call('clerk', { input: 'pay' })),
        tools: [agentTool(clerk, { description: 'sees to it' })],
        journal,
      });
    const first = bankOn(base);
    const run = await start(first, { identity: PARENT });
    expect(await pausesOf(run)).toHaveLength(1);
    await first.runtime.close();
    const here = bankOn(holdingBack(base, 'p.0.0.0.0')).runtime;
    await here.run(TELLER).steer('REDIRECT', { goal: 'do not pay' }, { until: 'applied' });
    await until(async () => (await base.inbox(DESK)).length > 0);
    await here.run(DESK).resume();
    await until(async () => (await base.get(DESK))?.status === 'waiting');
    expect((await here.run(DESK).state()).tasks).toMatchObject([{ pauses: [] }]);
  });

  it('is another one than what the task asks after it has heard: that is shown, and can be answered', async () => {
    const teller = thenTell(call('pay', { sum: 5 }), call('pay', { sum: 1 }));
    const { base, asked, run, here, elsewhere } = await askedAndHeld(teller, DESK);
    await run.steer('REDIRECT', { goal: 'pay less' });
    await here.runtime.run(TELLER).resume();
    await until(async () => (await base.get(TELLER))?.status === 'paused');
    const again = await pausesOf(here.runtime.run(TELLER));
    expect(again).toMatchObject([{ payload: { args: { sum: 1 } } }]);
    expect(again[0]?.token).not.toBe(asked?.token);
    await here.runtime.close();
    const other = elsewhere().runtime.run(DESK);
    await other.resume();
    expect(await pausesOf(other)).toMatchObject([{ run: TELLER, token: again[0]?.token }]);
    await other.approve();
    expect(await other.result()).toMatchObject({ status: 'finished' });
  });

  it('leaves the pause of an operator open, as it is in the task', async () => {
    const base = memoryJournal();
    const first = bank(base, thenTell(call('pay')));
    const run = await start(first, { identity: PARENT });
    const [asked] = await pausesOf(run);
    await first.runtime.run(TELLER).steer('PAUSE', {}, { until: 'applied' });
    await until(async () => (await pausesOf(run)).length === 2);
    await first.runtime.close();
    const here = bank(holdingBack(base, TELLER), thenTell(call('pay'))).runtime.run(DESK);
    await here.steer('REDIRECT', { goal: 'do not pay' }, { until: 'applied' });
    expect((await pausesOf(here)).map(({ reason }) => reason)).toEqual(['external_event']);
    for await (const event of here.events()) {
      if (event.type === 'task.paused' && event.pauses[0]?.reason === 'external_event') break;
    }
    await expect(here.approve(asked?.token)).rejects.toMatchObject({ code: 'superseded' });
  });

  it('is read as ever from a journal whose entries do not say what they withdrew', async () => {
    const { base, asked, run } = await askedAndHeld(thenTell(call('pay')));
    await run.steer('REDIRECT', { goal: 'do not pay' }, { until: 'applied' });
    const entries = await base.read(DESK);
    expect(entries.at(-1)).toMatchObject({ kind: 'control', withdrew: [asked?.token] });
    const older = entries.map((entry) => {
      if (entry.kind !== 'control') return entry;
      const { withdrew: _, ...rest } = entry;
      return rest;
    });
    expect(foldEntries(entries.slice(0, -1)).tasks).toEqual(foldEntries(older).tasks);
    expect(foldEntries(older).tasks).toMatchObject([{ pauses: [{ token: asked?.token }] }]);
  });

  it('stays about a call in doubt, and where only context was added', async () => {
    const base = memoryJournal();
    const made = bank(base, thenTell(call('doubt')));
    const run = await start(made, { identity: PARENT });
    await until(async () => {
      made.clock.advance(10);
      return (await base.get(DESK))?.status === 'paused';
    });
    await run.steer('REDIRECT', { goal: 'another' }, { until: 'applied' });
    expect(await pausesOf(run)).toMatchObject([{ run: TELLER, reason: 'in_doubt' }]);

    const asking = await askedAndHeld(thenTell(asks));
    await asking.run.steer('INJECT_CONTEXT', { note: 'it rains' }, { until: 'applied' });
    expect(await pausesOf(asking.run)).toMatchObject([{ token: asking.asked?.token }]);
  });
});
