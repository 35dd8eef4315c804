/** Ways around a doubt: tools that changed meanwhile, promises of other kinds, values that nobody can keep. */
import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import type { AnyTool } from '../../src/tools/tool.ts';
import { ANY, call, cutJournal, finish, gate, make, outcomes, quiet, script, start, world } from './support.ts';

/** A run whose process died inside of its `once` call of `pay`, and the way to another process with another tool of that name. */
async function cutOffInPay() {
  const clock = new VirtualClock();
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
  const { id } = await start(world({ planner: script(call('pay')), tools: [pay], journal: dying.journal, clock }));
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
    const carried: AnyTool = { name: 'pay', description: 'pay', input: ANY, carriedOutBy: { planner, tools: [] } };
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
