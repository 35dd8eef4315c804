/** A call in doubt inside of a task that the run above it does not need any more. */
import { describe, expect, it } from 'vitest';
import type { CallParallel } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import type { AnyTool, Tool } from '#tools';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { cutJournal } from '../kit/journals.ts';
import { observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { awaits, PARENT, plays, spawns } from '../kit/tasks.ts';
import { ANY, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** A tool that a task carries out, which makes this call and ends with what it came to. */
function carried(name: string, tool: AnyTool): AnyTool {
  const planner = script(call(tool.name), finish('carried out'));
  return {
    name,
    description: name,
    inputSchema: ANY,
    agent: { name, planner: { name, next: planner }, tools: [tool] },
  };
}

/** A payment that has been sent when it is stopped. */
function payment() {
  const entered = gate();
  const keys: string[] = [];
  const pay = make(
    'pay',
    (_, { idempotencyKey, signal }) => {
      keys.push(idempotencyKey);
      if (keys.length > 1) return 'paid';
      entered.open();
      return aborted(signal);
    },
    { effect: 'once' },
  );
  return { pay, keys, entered };
}

const WAYS: readonly (readonly [string, Partial<CallParallel>])[] = [
  ['a branch that fails fast', { failFast: true }],
  ['a join that has what it needs', { join: { kind: 'first_success' } }],
  ['the end of a plan', { plan: 'p' }],
];

async function stopped(how: Partial<CallParallel>, levels = 1) {
  const { pay, keys, entered } = payment();
  let tool: AnyTool = pay;
  for (let level = 1; level <= levels; level += 1) tool = carried(`level${level}`, tool);
  const other = make('other', async () => {
    await entered.opened;
    if (how.failFast === true) throw new Error('no');
    return 1;
  });
  const last = how.plan === undefined ? [] : [{ id: 'end', tool: '_finish', args: {}, after: ['other'] }];
  const branches = [{ id: 'sub', tool: tool.name, args: {} }, { id: 'other', tool: 'other', args: {} }, ...last];
  const planner = watched(script({ kind: 'call_parallel', branches, ...how }));
  const made = world({ planner, tools: [tool, other] });
  const run = await start(made, { identity: PARENT });
  const isParked = async (): Promise<boolean> =>
    (await made.journal.get(run.id))?.status === 'paused' || (await run.state()).ending !== null;
  await advanceUntil(made.clock, isParked);
  return { ...made, run, keys, planner };
}

describe('a task whose call is not needed any more, with a once call under way', () => {
  describe.each(WAYS)('%s', (_, how) => {
    it.each([
      1, 2, 3,
    ])('holds the run above it, %i deep: it is settled from there, and the planner goes on then', async (levels) => {
      const { run, planner, keys } = await stopped(how, levels);
      const [pause, ...more] = await pausesOf(run);
      expect(pause).toMatchObject({ reason: 'in_doubt', payload: { tool: 'pay', key: keys[0] } });
      expect([more, planner.views.length]).toEqual([[], 1]);
      await run.settle(pause?.token, { happened: true, value: 'paid' });
      expect(await run.result()).toMatchObject({ status: 'finished' });
      expect([outcomes(await run.state())[0], keys.length]).toEqual(['cancelled', 1]);
    });

    it('that did not happen is not made: nobody needs it', async () => {
      const { run, keys } = await stopped(how);
      await run.settle(undefined, { happened: false });
      expect(await run.result()).toMatchObject({ status: 'finished' });
      expect(keys).toHaveLength(1);
    });

    it('a cancel of the whole run ends it over the doubt', async () => {
      const { run, runtime } = await stopped(how);
      await run.cancel();
      expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
      expect(await runtime.run('p.0.0').result()).toMatchObject({ reason: 'cancelled' });
      expect(outcomes(await runtime.run('p.0.0').state())).toEqual(['unknown']);
    });

    it('a task that is cancelled in its doubt tells the run above it of the call', async () => {
      const { run, runtime, keys } = await stopped(how);
      await runtime.run('p.0.0').cancel();
      await until(async () => (await run.state()).ending !== null);
      expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
      const { steps } = await run.state();
      const message = expect.stringContaining(`"key":"${keys[0]}"`);
      expect(steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'unknown', error: { code: 'cancelled', message } });
    });
  });
});

describe('a task that is not needed any more, whose process died in a once call', () => {
  /** The process dies in the call of the task, and before anybody knew that another branch was faster. */
  async function cutOff(reconcile?: Tool['reconcile']) {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const entered = gate();
    let made = 0;
    const pay = make(
      'pay',
      () => {
        made += 1;
        entered.open();
        return new Promise(() => {});
      },
      { effect: 'once', ...(reconcile === undefined ? {} : { reconcile }) },
    );
    const tools = [carried('sub', pay), make('other', () => entered.opened.then(() => new Promise(() => {})))];
    const branches = [
      { id: 'sub', tool: 'sub', args: {} },
      { id: 'other', tool: 'other', args: {} },
    ];
    const planner = script({ kind: 'call_parallel', branches, join: { kind: 'first_success' } });
    await start(world({ planner, tools, journal: dying.journal, clock }), { identity: PARENT });
    await entered.opened;
    dying.cut();
    clock.advance(5_001);
    const again = watched(planner);
    // The owner is faster than the task: it has told it that it is not needed before the task is looked at.
    const second = world({
      planner: again,
      tools: [tools[0] as AnyTool, make('other', () => 1)],
      journal: shared,
      clock,
    });
    const run = second.runtime.run('p');
    await shared.signal('p.0.0', {
      id: 'dismiss:p',
      type: 'CANCEL',
      payload: { reason: 'r', cascaded: true },
      dismisses: true,
    });
    await run.resume();
    return { ...second, run, planner: again, made: () => made };
  }

  it('is looked up, and nobody is asked', async () => {
    const { run, runtime, planner, made } = await cutOff(() => ({ status: 'done', value: 'found' }));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(outcomes(await runtime.run('p.0.0').state())).toEqual(['value']);
    expect([planner.views.length, made()]).toEqual([1, 1]);
  });

  it('that did not happen is not made, when who may be at it has had the time to notice', async () => {
    const { run, runtime, clock, made } = await cutOff(() => ({ status: 'not_done' }));
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(outcomes(await runtime.run('p.0.0').state())).toEqual(['cancelled']);
    expect([await run.result(), made()]).toMatchObject([{ status: 'finished', reason: 'goal' }, 1]);
  });

  it('is asked of people where nothing can say it', async () => {
    const { run } = await cutOff();
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ reason: 'in_doubt', payload: { tool: 'pay', can_look_up: false } });
    await run.settle(pause?.token, { happened: true });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });
});

describe('a deadline', () => {
  it('of the run above does not end a task in doubt, nor itself before', async () => {
    const { pay, entered, keys } = payment();
    const clock = new VirtualClock();
    const made = world({ planner: script(call('sub')), tools: [carried('sub', pay)], clock });
    const run = await start(made, { identity: PARENT, limits: { deadlineAt: clock.now() + 5_000 } });
    await entered.opened;
    clock.advance(5_000);
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ reason: 'in_doubt', payload: { key: keys[0] } });
    await run.settle(pause?.token, { happened: true });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(keys).toHaveLength(1);
  });
});

describe('a task of a group that is cancelled', () => {
  it('names the call that may have happened in its end', async () => {
    const { pay, entered, keys } = payment();
    const fails = make('fails', () => entered.opened);
    const group = { groupId: 'g', failFast: true } as const;
    const parent = script(spawns('A', group), spawns('B', group), awaits('p.0.0', { groupId: 'g' }), awaits('p.0.0'));
    const noPath = { kind: 'finish', reason: 'no_path' } as const;
    const planner = plays({ q: parent, A: script(call('pay')), B: script(call('fails'), noPath) });
    const made = world({ planner, tools: [pay, fails] });
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const { tasks } = await run.state();
    const error = {
      code: 'cancelled',
      message: expect.stringContaining('may have happened'),
      data: { in_doubt: [{ tool: 'pay', key: keys[0] }] },
    };
    expect(tasks[0]?.end).toMatchObject({ status: 'cancelled', error });
    expect(JSON.stringify(observations(await run.state()))).toContain(keys[0]);
  });
});
