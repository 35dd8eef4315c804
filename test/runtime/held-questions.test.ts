/** A question of a call that stays open while it asks ends with the call, however that ends. */
import { describe, expect, it } from 'vitest';
import { type Append, type Journal, memoryJournal } from '#journal';
import { type Tool, ToolFailure } from '#tools';
import { call, named, parallel, script } from '../kit/decisions.ts';
import { observations, pausesOf } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Asks, and stops when it is told to. */
const server = (more: Partial<Tool> = {}): Tool =>
  make(
    'server',
    (_, context) => Promise.race([context.ask({ question: 'May I?', hold: true }), aborted(context.signal)]),
    more,
  );

/** A journal that says of the first append with such an entry only when `known` is opened that it is stored. */
function farAway(isLate: (entry: { readonly kind: string; readonly call?: number }) => boolean) {
  const inner = memoryJournal();
  const [stored, known] = [gate(), gate()];
  const append = async (request: Append): Promise<void> => {
    await inner.append(request);
    if (!request.entries.some(isLate)) return;
    stored.open();
    await known.opened;
  };
  const journal: Journal = new Proxy(inner, {
    get: (target, name) => {
      const member: unknown = name === 'append' ? append : Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { inner, journal, stored, known };
}

describe('a question of a call that stays open', () => {
  it('is asked no more when the call is in doubt, and anew when it is made again', async () => {
    const journal = memoryJournal();
    const { runtime } = world({ planner: script(call('server')), tools: [server({ effect: 'once' })], journal });
    const run = await start({ runtime });
    const [question] = await pausesOf(run);
    await run.cancelCall({ step: 0, call: 0 });
    await until(async () => (await pausesOf(run))[0]?.reason === 'in_doubt');
    const [doubt, ...others] = await pausesOf(run);
    expect(others).toEqual([]);
    const rows = async (): Promise<(string | undefined)[]> =>
      (await runtime.waiting({ run: run.id })).map(({ reason }) => reason);
    expect(await rows()).toEqual(['in_doubt']);
    await expect(run.answer(question?.token, { kind: 'answer', value: 'yes' })).rejects.toMatchObject({
      code: 'superseded',
    });
    await run.settle(doubt?.token, { happened: false });
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome.kind).toBe('cancelled');
    expect(await rows()).toEqual([]);
  });

  it('is asked no more while its call waits for its next attempt, which asks anew', async () => {
    let attempts = 0;
    const busy = make(
      'busy',
      async (_, context) => {
        attempts += 1;
        const asked = context.ask({ question: 'May I?', hold: true });
        if (attempts > 1) return asked;
        await until(() => asking());
        throw new ToolFailure('busy', { retryAfterMs: 120_000 });
      },
      { retries: 2, effect: 'read' },
    );
    const journal = memoryJournal();
    const { runtime, clock } = world({ planner: script(call('busy')), tools: [busy], journal });
    let isAsked = false;
    const asking = (): boolean => isAsked;
    const run = await start({ runtime });
    const rows = () => runtime.waiting({ run: run.id });
    await until(async () => (await rows()).length === 1);
    isAsked = true;
    await until(async () => (await rows()).length === 0);
    expect(await journal.get(run.id)).toMatchObject({ status: 'waiting' });
    await advanceUntil(clock, async () => (await rows()).length === 1);
    await run.answer(undefined, { kind: 'answer', value: 'yes' });
    await run.result();
    expect(observations(await run.state())).toEqual(['yes']);
  });

  it('that was answered is not asked again by the next attempt, whenever the answer came', async () => {
    const asked: string[] = [];
    const gone = gate();
    let attempts = 0;
    const flaky = make(
      'flaky',
      async (_, { ask }) => {
        attempts += 1;
        const [first, second] = [ask({ question: 'One?', hold: true }), ask({ question: 'Two?', hold: true })];
        if (attempts === 1) {
          await first;
          throw new ToolFailure('busy', { retryable: true });
        }
        await gone.opened;
        return [await first, await second, await ask({ question: 'Three?', hold: true })];
      },
      { retries: 2, effect: 'read' },
    );
    const { runtime, clock } = world({ planner: script(call('flaky')), tools: [flaky] });
    const run = await start({ runtime });
    const answer = async (message: string): Promise<void> => {
      const question = async () => (await pausesOf(run)).find(({ payload }) => payload?.['message'] === message);
      await until(async () => (await question()) !== undefined);
      asked.push(message);
      await run.answer((await question())?.token, { kind: 'answer', value: message.toLowerCase() });
    };
    await until(async () => (await pausesOf(run)).length === 2);
    await answer('One?');
    await advanceUntil(clock, async () => attempts === 2);
    await answer('Two?');
    gone.open();
    await answer('Three?');
    await run.result();
    expect(observations(await run.state())).toEqual([['one?', 'two?', 'three?']]);
    expect(asked).toEqual(['One?', 'Two?', 'Three?']);
  });

  it('takes the answer of somebody who has read it before its own process knows that it is stored', async () => {
    const { inner, journal, stored: second, known } = farAway(({ kind, call: of }) => kind === 'paused' && of === 1);
    const planner = script(
      parallel([
        { id: 'a', tool: 'server', args: {} },
        { id: 'b', tool: 'server', args: {} },
      ]),
    );
    const { runtime } = world({ planner, tools: [server({ effect: 'read' })], journal });
    const run = await start({ runtime });
    await second.opened;
    const other = world({ planner, journal: inner });
    const [one, two] = await pausesOf(other.runtime.run(run.id));
    // Whoever is far away from the store hears of what it has stored after others.
    const heard = run.answer(two?.token, { kind: 'answer', value: 'two' });
    await quiet();
    known.open();
    await heard;
    await run.answer(one?.token, { kind: 'answer', value: 'one' });
    await run.result();
    const answers = (await run.state()).steps[0]?.calls.map(({ outcome }) => outcome);
    expect(answers).toMatchObject([{ value: 'one' }, { value: 'two' }]);
  });

  it('is answered to the next attempt when the one before had failed before it was stored', async () => {
    let attempts = 0;
    const flaky = make(
      'flaky',
      async (_, { ask }) => {
        attempts += 1;
        const asked = ask({ question: 'One?', hold: true });
        if (attempts > 1) return asked;
        asked.catch(() => {});
        throw new ToolFailure('busy', { retryable: true });
      },
      { retries: 2, effect: 'read' },
    );
    const { journal, stored, known } = farAway(({ kind }) => kind === 'paused');
    const { runtime, clock } = world({ planner: script(call('flaky')), tools: [flaky], journal });
    const run = await start({ runtime });
    await stored.opened;
    await advanceUntil(clock, () => attempts === 2);
    await quiet();
    known.open();
    await until(async () => (await pausesOf(run)).length === 1);
    await run.answer(undefined, { kind: 'answer', value: 'one' });
    await run.result();
    expect(observations(await run.state())).toEqual(['one']);
  });

  it('is not ended by the time limit of its call while another one of it has been answered', async () => {
    const heard = gate();
    const both = make(
      'both',
      (_, { ask }) => {
        const [first, second] = [ask({ question: 'One?', hold: true }), ask({ question: 'Two?', hold: true })];
        void first.then(() => heard.open());
        return Promise.all([first, second]);
      },
      { timeoutMs: 100, retries: 0 },
    );
    const { runtime, clock } = world({ planner: script(call('both')), tools: [both] });
    const run = await start({ runtime });
    await until(async () => (await pausesOf(run)).length === 2);
    const [one, two] = await pausesOf(run);
    await run.answer(one?.token, { kind: 'answer', value: 1 });
    await heard.opened;
    clock.advance(1_000);
    await run.answer(two?.token, { kind: 'answer', value: 2 });
    await run.result();
    expect(observations(await run.state())).toEqual([[1, 2]]);
  });

  it.each(['value', 'error', 'cancelled'] as const)('is closed with its call (%s)', async (how) => {
    const ends = gate();
    const asks = make('asks', async (_, context) => {
      void context.ask({ question: 'May I?', hold: true }).catch(() => {});
      if (how === 'cancelled') return aborted(context.signal);
      await ends.opened;
      if (how === 'error') throw new Error('broken');
      return 'done';
    });
    const { tool: hold, entered, release } = holding();
    const planner = script(parallel(named('asks', 'echo')), call('hold'));
    const { runtime, journal } = world({ planner, tools: [asks, echo, hold] });
    const run = await start({ runtime });
    await until(async () => (await runtime.waiting({ run: run.id })).length === 1);
    ends.open();
    if (how === 'cancelled') await run.cancelCall({ step: 0, call: 0 });
    await entered;
    expect(await runtime.waiting({ run: run.id })).toEqual([]);
    expect(await journal.get(run.id)).toMatchObject({ status: 'running' });
    release();
    await until(async () => (await run.state()).ending !== null);
    expect((await run.state()).steps[0]?.calls[0]?.outcome.kind).toBe(how);
  });
});
