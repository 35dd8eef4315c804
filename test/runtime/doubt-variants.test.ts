/** Ways around a doubt: tools that changed meanwhile, promises of other kinds, values that nobody can keep. */
import { describe, expect, it } from 'vitest';
import type { Decision, Limits } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import type { AnyTool, Reconciled } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { cutJournal } from '../kit/journals.ts';
import { entriesOf, outcomes, pausesOf } from '../kit/run-record.ts';
import { ANY, make } from '../kit/tools.ts';
import { aborted, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** A run whose process died inside of its `once` call of `pay`, and the way to another process with another tool of that name. */
async function cutOffInPay({
  clock = new VirtualClock(),
  limits = {},
}: {
  clock?: VirtualClock;
  limits?: Limits;
} = {}) {
  const shared = memoryJournal({ clock });
  const dying = cutJournal(shared);
  const entered = gate();
  const pay = make(
    'pay',
    () => {
      entered.open();
      return new Promise(() => {});
    },
    { effect: 'once' },
  );
  const { id } = await start(world({ planner: script(call('pay')), tools: [pay], journal: dying.journal, clock }), {
    limits,
  });
  await entered.opened;
  dying.cut();
  clock.advance(5_001);
  return async (changed: AnyTool) => {
    const run = world({ planner: script(call('pay')), tools: [changed], journal: shared, clock }).runtime.run(id);
    await run.resume({ acceptChanges: true });
    return run;
  };
}

describe('a once call that was cut off, of a tool that says something else of itself today', () => {
  it.each(['read', 'pure', 'keyed'] as const)('%s: it is in doubt, as it was begun', async (effect) => {
    let made = 0;
    const resumeWith = await cutOffInPay();
    const run = await resumeWith(make('pay', () => ++made, { effect }));
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    expect(made).toBe(0);
    await run.settle(undefined, { happened: false });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made).toBe(1);
  });

  it('a planner carries it out now: no task is started before it is settled', async () => {
    const resumeWith = await cutOffInPay();
    const planner = { name: 'carrier', next: () => finish('carried') };
    const carried: AnyTool = {
      name: 'pay',
      description: 'pay',
      inputSchema: ANY,
      agent: { name: 'carrier', planner, tools: [] },
    };
    const run = await resumeWith(carried);
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    expect((await run.state()).tasks).toEqual([]);
    await run.settle(undefined, { happened: false });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).tasks).toHaveLength(1);
  });
});

describe('what a once tool gives', () => {
  it('is begun once, also where `then` is what does the work', async () => {
    let made = 0;
    class Lazy extends Promise<string> {
      // biome-ignore lint/suspicious/noThenProperty: what lazy query builders do.
      override then<A = string, B = never>(
        given?: ((value: string) => A | PromiseLike<A>) | null,
        failed?: ((error: unknown) => B | PromiseLike<B>) | null,
      ): Promise<A | B> {
        made += 1;
        return Promise.resolve('paid').then(given, failed);
      }
    }
    const pay = make('pay', () => new Lazy(() => {}), { effect: 'once' });
    const run = await start(world({ planner: script(call('pay')), tools: [pay] }));
    await run.result();
    expect([made, outcomes(await run.state())]).toEqual([1, ['value']]);
  });

  it('is at work still where it is no Promise of this world: it is not made beside it', async () => {
    let made = 0;
    const never = new Promise<string>(() => {});
    const pay = make(
      'pay',
      () => {
        made += 1;
        // biome-ignore lint/suspicious/noThenProperty: what query builders give.
        return { then: never.then.bind(never) };
      },
      { effect: 'once', timeoutMs: 100 },
    );
    const { clock, runtime } = world({ planner: script(call('pay')), tools: [pay] });
    const run = await start({ runtime });
    await quiet();
    clock.advance(100);
    await quiet();
    clock.advance(1_000);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.settle(undefined, { happened: false });
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    expect(made).toBe(1);
  });

  it('has happened, whatever it throws when it is read: a plan made anew does not make it again', async () => {
    let made = 0;
    const hostile = new Proxy(
      {},
      {
        ownKeys() {
          throw Object.assign(new Error('not now'), { code: 'try_again' });
        },
      },
    );
    const pay = make(
      'pay',
      () => {
        made += 1;
        return hostile;
      },
      { effect: 'once' },
    );
    const plan: Decision = {
      kind: 'call_parallel',
      branches: [{ id: 'a', tool: 'pay', args: {}, reuse: true }],
      plan: 'p',
    };
    const run = await start(world({ planner: script(plan, plan), tools: [pay] }));
    await run.result();
    const { steps } = await run.state();
    const told = steps.map(({ calls }) => calls[0]?.outcome);
    expect([made, told.length]).toEqual([1, 2]);
    const message = expect.stringContaining('The call has happened');
    for (const outcome of told) expect(outcome).toMatchObject({ error: { code: 'unserializable', message } });
  });
});

describe('a run that is to end', () => {
  /** The process dies in the call, and its time is over when the next one comes. */
  async function late(pay: AnyTool) {
    const clock = new VirtualClock();
    const resumeWith = await cutOffInPay({ clock, limits: { deadlineAt: clock.now() + 5_000 } });
    return resumeWith(pay);
  }

  it('looks up what became of the call that its process was in, and asks nobody', async () => {
    const pay = make('pay', () => 'paid', { effect: 'once', reconcile: () => ({ status: 'done', value: 'found' }) });
    const run = await late(pay);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { value: 'found' }, attempts: 1 });
  });

  it('asks people where the tool cannot say, and looks once more when somebody resumes it', async () => {
    const answers: Reconciled[] = [{ status: 'unknown' }, { status: 'done', value: 'found' }];
    let made = 0;
    const pay = make(
      'pay',
      () => {
        made += 1;
        return 'paid';
      },
      { effect: 'once', reconcile: () => answers.shift() as Reconciled },
    );
    const run = await late(pay);
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { can_look_up: true } }] });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect([outcomes(await run.state()), made, answers]).toEqual([['value'], 0, []]);
  });

  it('has nothing to look up without a reconcile: its doubt is settled', async () => {
    const run = await late(make('pay', () => 'paid', { effect: 'once' }));
    const [before] = await pausesOf(run);
    expect(before).toMatchObject({ payload: { can_look_up: false } });
    await expect(run.resume()).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.settle(before?.token, { happened: true, value: 'found' });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(outcomes(await run.state())).toEqual(['value']);
  });
});

describe('several calls in doubt', () => {
  it('are settled in any order: each is made or not made by what is said of it, and counted once', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const keys: string[] = [];
    const entered = gate();
    const dies = make(
      'pay',
      (_, { idempotencyKey }) => {
        if (keys.push(idempotencyKey) === 5) entered.open();
        return new Promise(() => {});
      },
      { effect: 'once', costUsd: 0.00001 },
    );
    const pays = {
      ...dies,
      execute: (_: unknown, context: { idempotencyKey: string }) => keys.push(context.idempotencyKey),
    };
    const branches = [1, 2, 3, 4, 5].map((n) => ({ tool: 'pay', args: { n } }));
    const planner = script({ kind: 'call_parallel', branches });
    const { id } = await start(world({ planner, tools: [dies], journal: dying.journal, clock }));
    await entered.opened;
    dying.cut();
    clock.advance(5_001);
    const run = world({ planner, tools: [pays], journal: shared, clock }).runtime.run(id);
    await run.resume();
    const pauses = await pausesOf(run);
    await expect(run.settle(undefined, { happened: false })).rejects.toMatchObject({ code: 'pause_not_found' });
    for (const at of [3, 0, 4, 1, 2]) await run.settle(pauses[at]?.token, { happened: at % 2 === 1 });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const { totals } = await run.state();
    expect([keys.length, new Set(keys).size, totals.calls, totals.costMicroUsd]).toEqual([8, 5, 5, 50]);
  });
});

describe('a call in doubt beside one that is slow to stop', () => {
  /** Of three calls one is in doubt at once when it is stopped, and one ignores that. */
  function threeCalls() {
    const entered = gate();
    const pay = make(
      'pay',
      (_, { signal }) => {
        entered.open();
        return aborted(signal);
      },
      { effect: 'once' },
    );
    const deaf = make('deaf', () => new Promise(() => {}));
    const heeds = make('heeds', (_, { signal }) => aborted(signal));
    const wins = make('wins', () => entered.opened);
    const branches = (...names: string[]) => names.map((tool) => ({ tool, args: {} }));
    return { tools: [pay, deaf, heeds, wins], branches, entered };
  }

  it('is not given up with the others when the join has what it needs', async () => {
    const { tools, branches } = threeCalls();
    const decision: Decision = {
      kind: 'call_parallel',
      branches: branches('pay', 'deaf', 'wins'),
      join: { kind: 'first_success' },
    };
    const { clock, runtime } = world({ planner: script(decision), tools });
    const run = await start({ runtime });
    await quiet();
    clock.advance(1_000);
    expect(await pausesOf(run)).toMatchObject([{ reason: 'in_doubt' }]);
    await run.settle(undefined, { happened: true, value: 'paid' });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state())).toEqual(['value', 'cancelled', 'value']);
  });

  it('that did not happen is not made when nobody needs it any more, also while the slow one stops', async () => {
    const { tools, branches } = threeCalls();
    const decision: Decision = {
      kind: 'call_parallel',
      branches: branches('pay', 'deaf', 'wins'),
      join: { kind: 'first_success' },
    };
    const { clock, runtime, journal } = world({ planner: script(decision), tools });
    const run = await start({ runtime });
    await until(async () => (await run.state()).pauses.length > 0);
    await run.settle(undefined, { happened: false });
    await quiet();
    clock.advance(1_000);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state())).toEqual(['cancelled', 'cancelled', 'value']);
    expect(await entriesOf(journal, run, 'call_began')).toHaveLength(1);
  });

  it('is held at the deadline, and the slow one ends once', async () => {
    const { tools, branches, entered } = threeCalls();
    const decision: Decision = { kind: 'call_parallel', branches: branches('pay', 'deaf', 'heeds') };
    const { clock, runtime, journal, faults } = world({ planner: script(decision), tools });
    const run = await start({ runtime }, { limits: { deadlineAt: clock.now() + 5_000 } });
    await entered.opened;
    clock.advance(5_000);
    await quiet();
    clock.advance(1_000);
    expect(await pausesOf(run)).toMatchObject([{ reason: 'in_doubt' }]);
    await run.settle(undefined, { happened: true });
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
    expect(outcomes(await run.state())).toEqual(['value', 'cancelled', 'cancelled']);
    expect([await entriesOf(journal, run, 'call_ended'), faults]).toMatchObject([[{}, {}], []]);
  });
});
