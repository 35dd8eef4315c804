/** What is said to a run is not waited for unless asked; a signal cancels it; and nothing that is deaf holds its result back. */
import { describe, expect, it } from 'vitest';
import { local, PilotageError } from '#core';
import { memoryJournal } from '#journal';
import type { Tool } from '#tools';
import { call, finish, named, parallel, pause, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf, kindsOf, pausesOf } from '../kit/run-record.ts';
import { holding, make } from '../kit/tools.ts';
import { gate, quiet, until } from '../kit/waiting.ts';
import { busy, start, world } from '../kit/world.ts';

describe('what is said to a run', () => {
  it.each([
    ['a message', 'USER_MESSAGE', { message: 'hello' }],
    ['a redirect', 'REDIRECT', { goal: 'another' }],
    ['a pause', 'PAUSE', undefined],
    ['a soft cancel', 'CANCEL', { hard: false }],
  ] as const)('%s is stored when steer returns, while a call is under way, and applied later', async (_, type, payload) => {
    const made = await busy();
    await made.run.steer(type, payload);
    expect(await made.journal.inbox(made.run.id)).toMatchObject([{ message: { type } }]);
    const applied = made.run.steer('INJECT_CONTEXT', { note: 'x' }, { until: 'applied' });
    let isApplied = false;
    void applied.then(() => {
      isApplied = true;
    });
    await quiet();
    expect(isApplied).toBe(false);
    made.go();
    await applied.catch((error: { code: string }) => expect(error.code).toBe('run_ended'));
    expect((await entriesOf(made.journal, made.run, 'control')).map(({ control }) => control.type)).toContain(type);
  });

  it('an answer is waited for, because it may be refused, unless one asks otherwise', async () => {
    const made = world({ planner: script(pause, pause) });
    const run = await start(made);
    await pausesOf(run);
    await expect(run.approve('pause_other')).rejects.toMatchObject({ code: 'pause_not_found' });
    await run.steer('APPROVE', { token: 'pause_other' }, { until: 'stored' });
    await until(async () => (await entriesOf(made.journal, run, 'control')).length === 2);
  });
});

it('a wait that ends twice takes no other wait for the same run with it', async () => {
  const unreadable = new PilotageError('journal_unavailable', 'The disk is gone for a moment.');
  const plain = memoryJournal();
  const [second, bothWait, firstIsOver] = [gate(), gate(), gate()];
  const wakes: (() => void)[] = [];
  let isAway = false;
  const journal = changed(plain, {
    watch(run, wake) {
      wakes.push(wake);
      return plain.watch(run, wake);
    },
    async read(run, from) {
      if (isAway) throw unreadable;
      return plain.read(run, from);
    },
    async signal(run, message, options) {
      if (message.type === 'REJECT') {
        bothWait.open();
        await firstIsOver.opened;
        return plain.signal(run, message, options);
      }
      // The wait for this answer ends when nothing can be read, and once more because the answer is not stored.
      isAway = true;
      for (const wake of wakes) wake();
      await quiet();
      isAway = false;
      second.open();
      await bothWait.opened;
      throw unreadable;
    },
  });
  const run = await start(world({ planner: script(pause, finish('done')), journal }));
  const [{ token } = { token: '' }] = await pausesOf(run);
  const code = (error: { code: string }): string => error.code;
  const approved = run.approve(token).then(() => 'applied', code);
  await second.opened;
  const rejected = run.reject('pause_other').then(() => 'applied', code);
  expect(await approved).toBe('journal_unavailable');
  firstIsOver.open();
  expect(await rejected).toBe('pause_not_found');
});

describe('the signal of a start', () => {
  it('cancels the run, which is recorded with the reason, and stops what is in flight', async () => {
    const { tool, entered } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool] });
    const controller = new AbortController();
    const run = await start(made, { signal: controller.signal });
    await entered;
    controller.abort(new Error('the request was closed'));
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    const [taken] = await entriesOf(made.journal, run, 'control');
    expect(taken?.control).toMatchObject({
      type: 'CANCEL',
      payload: { reason: expect.stringContaining('the request was closed') },
    });
  });

  it('that is aborted already starts nothing', async () => {
    const made = world({ planner: script() });
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(start(made, { signal })).rejects.toThrow('too late');
    expect(await made.runtime.list()).toEqual([]);
  });

  it('that aborts while the run is being stored cancels it', async () => {
    const controller = new AbortController();
    const made = world({ planner: script(call('hold')), tools: [holding().tool] });
    const create = made.journal.create.bind(made.journal);
    made.journal.create = async (run) => {
      const claim = await create(run);
      controller.abort();
      return claim;
    };
    const run = await start(made, { signal: controller.signal });
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
  });

  it('is listened to until the run has ended, here or elsewhere, or the runtime is closed', async () => {
    const listening = new Set<unknown>();
    const signalOf = (): AbortSignal => {
      const { signal } = new AbortController();
      const add = signal.addEventListener.bind(signal);
      const remove = signal.removeEventListener.bind(signal);
      signal.addEventListener = (type: string, listener: never, options: never) => {
        listening.add(listener);
        add(type, listener, options);
      };
      signal.removeEventListener = (type: string, listener: never) => {
        listening.delete(listener);
        remove(type, listener);
      };
      return signal;
    };
    const made = world({ planner: script(pause) });
    const first = await start(made, { signal: signalOf() });
    await pausesOf(first);
    expect(listening.size).toBe(1);
    await first.approve();
    await first.result();
    await until(() => listening.size === 0);
    const second = await start(made, { signal: signalOf() });
    await pausesOf(second);
    await until(async () => (await made.journal.get(second.id))?.lease === undefined);
    const other = world({ planner: script(pause), journal: made.journal, clock: made.clock });
    await other.runtime.run(second.id).approve();
    await until(() => listening.size === 0);
    await pausesOf(await start(made, { signal: signalOf() }));
    await made.runtime.close();
    expect(listening.size).toBe(0);
  });

  it('of a resume and of a fork does the same', async () => {
    const controller = new AbortController();
    const made = world({ planner: script(pause, call('hold')), tools: [holding().tool] });
    const run = await start(made);
    await pausesOf(run);
    const forked = await run.fork({ signal: controller.signal });
    await run.resume({ signal: controller.signal });
    controller.abort();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(await forked.result()).toMatchObject({ reason: 'cancelled' });
  });

  it('is no part of what a task is asked for with', async () => {
    const made = world({ planner: script() });
    const { tenant, user, session } = local('ana');
    const spawn = (signal?: AbortSignal) =>
      made.runtime.tasks.spawn('q', {
        identity: { tenant, user, session },
        idempotencyKey: 'k',
        ...(signal && { signal }),
      });
    await spawn(new AbortController().signal);
    expect(await spawn()).toMatchObject({ reused: true });
  });
});

describe('what ignores its signal', () => {
  const deaf = (effect: Tool['effect']): Tool =>
    make('deaf', () => new Promise(() => {}), { effect: effect ?? 'pure', timeoutMs: 3_600_000 });

  it.each([
    'pure',
    'read',
    'keyed',
  ] as const)('a call that is %s does not hold a deadline’s result back, nor a cancel’s', async (effect) => {
    const made = world({ planner: script(call('deaf')), tools: [deaf(effect)] });
    // The clock stands a tenth of a second after the deadline: a result that waits for the call would never come.
    const late = await start(made, { limits: { deadlineAt: made.clock.now() + 300 } });
    await until(async () => (await late.state()).open !== null);
    await quiet();
    made.clock.advance(300);
    await quiet();
    made.clock.advance(100);
    expect(await late.result()).toMatchObject({ reason: 'deadline_exceeded' });
    const run = await start(made);
    await until(async () => (await run.state()).open !== null);
    await run.cancel();
    await quiet();
    made.clock.advance(100);
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    const [ended] = await entriesOf(made.journal, run, 'call_ended');
    const message = ended?.outcome.kind === 'cancelled' ? ended.outcome.error.message : '';
    expect(message).toContain('was abandoned');
    // A call of it that was under way may have had its effect.
    expect(message.includes('The call may have happened all the same.')).toBe(effect === 'keyed');
  });

  it('a planner does not hold a deadline’s result back', async () => {
    const asked = gate();
    const made = world({
      planner: {
        name: 'p',
        next: () => {
          asked.open();
          return new Promise<never>(() => {});
        },
      },
    });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 200 } });
    await asked.opened;
    await quiet();
    made.clock.advance(200);
    await quiet();
    made.clock.advance(100);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
  });

  it('a call that nobody needs any more does not hold its step back', async () => {
    const made = world({
      planner: script(parallel(named('deaf', 'quick'), { join: { kind: 'first_success' } })),
      tools: [deaf('pure'), make('quick', () => 'won')],
    });
    const run = await start(made);
    await quiet();
    made.clock.advance(100);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });

  it('but a once call is heard out for the grace: a value that comes by then counts', async () => {
    const slow = gate();
    const tool = make('slow', () => slow.opened.then(() => 'done'), { effect: 'once', timeoutMs: 3_600_000 });
    const made = world({ planner: script(call('slow')), tools: [tool] });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 1_000 } });
    await until(async () => (await kindsOf(made.journal, run)).includes('call_began'));
    await quiet();
    made.clock.advance(1_900);
    slow.open();
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toEqual({ kind: 'value', value: 'done' });
  });
});
