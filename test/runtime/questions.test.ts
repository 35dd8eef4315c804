/** Calls that ask somebody in the middle of their work. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Decision, type Json, local, type Outcome } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, sendControl } from '#runtime';
import type { RunSnapshot } from '#state';
import { VirtualClock } from '#testing';
import { agent, agentTool, type ToolContext } from '#tools';
import { call, named, parallel, script, watched } from '../kit/decisions.ts';
import { entriesOf, observations, pausesOf } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const outcomesOf = ({ steps }: RunSnapshot): readonly Outcome[] =>
  steps.flatMap(({ calls }) => calls.map(({ outcome }) => outcome));

describe('a call that asks', () => {
  it('goes on when its run is started again, if the answer was stored and its process has died before it took that', async () => {
    const ask = make('ask', async (_, context) => context.ask({ question: 'How many nights?' }), { effect: 'pure' });
    const journal = memoryJournal();
    const identity = local('ana', { run: 'hotel' });
    const first = world({ planner: script(call('ask', {})), tools: [ask], journal });
    const run = await start(first, { identity });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await first.runtime.close();
    await sendControl(journal, run.id, { id: 'answer', type: 'ANSWER', payload: { value: 2 } });
    const second = world({ planner: script(call('ask', {})), tools: [ask], journal });
    expect(await (await start(second, { identity })).result()).toMatchObject({ status: 'finished' });
  });

  it.each([
    'pure',
    'read',
    'keyed',
    'once',
  ] as const)('is paused, and goes on with the answer, without a process (%s)', async (effect) => {
    const seen: string[] = [];
    const book = make(
      'book',
      async ({ city }, context) => {
        seen.push('begins');
        const room = await context.once('hold', () => {
          seen.push('holds a room');
          return { room: 12 };
        });
        const nights = await context.ask({ question: 'How many nights?', schema: z.object({ nights: z.int() }) });
        seen.push(`goes on with ${nights.nights}`);
        return { city, ...room, ...nights } as Json;
      },
      { effect },
    );
    const planner = watched(script(call('book', { city: 'Oslo' })));
    const journal = memoryJournal();
    const first = world({ planner, tools: [book], journal });
    const run = await start(first);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({
      reason: 'await_input',
      step: 0,
      call: 0,
      wait: 1,
      payload: { tool: 'book', message: 'How many nights?' },
      schema: { type: 'object', required: ['nights'] },
    });
    await first.runtime.close();
    const second = world({ planner, tools: [book], journal });
    const again = second.runtime.run(run.id);
    await expect(again.answer(pause?.token, { kind: 'answer', value: { nights: 'two' } })).rejects.toMatchObject({
      code: 'payload_invalid',
    });
    expect(await pausesOf(again)).toHaveLength(1);
    await again.answer(pause?.token, { kind: 'answer', value: { nights: 2 } });
    expect(await again.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(seen).toEqual(['begins', 'holds a room', 'begins', 'goes on with 2']);
    expect(observations(await again.state())).toEqual([{ city: 'Oslo', room: 12, nights: 2 }]);
    expect(planner.views).toHaveLength(2);
  });

  it('the n-th question has the n-th answer, and several at once are asked at once', async () => {
    const ask = make('ask', async (_, context) => {
      const first = await context.ask({ question: 'One?' });
      const rest = await Promise.all([context.ask({ question: 'Two?' }), context.ask({ question: 'Three?' })]);
      return [first, ...rest];
    });
    const made = world({ planner: script(call('ask')), tools: [ask], journal: memoryJournal() });
    const run = await start(made);
    const answer = async (message: string, value: Json): Promise<void> => {
      await until(async () => (await pausesOf(run)).some((pause) => pause.payload?.['message'] === message));
      const pause = (await pausesOf(run)).find((one) => one.payload?.['message'] === message);
      await run.answer(pause?.token, { kind: 'answer', value });
    };
    await answer('One?', 'a');
    await answer('Three?', 'c');
    await answer('Two?', 'b');
    await run.result();
    expect(observations(await run.state())).toEqual([['a', 'b', 'c']]);
    expect(await entriesOf(made.journal, run, 'paused')).toHaveLength(3);
  });

  it('hears that somebody declined, that nobody answered in time, and is answered by a message of the user', async () => {
    const ask = make('ask', (args, context) => context.ask({ question: 'Which city?', ...args }));
    const planner = script(call('ask'), call('ask', { expiresInMs: 1_000 }), call('ask'));
    const { runtime, clock, journal } = world({ planner, tools: [ask], journal: memoryJournal() });
    const run = await start({ runtime });
    await until(async () => (await pausesOf(run)).length === 1);
    await run.reject(undefined, { reason: 'not now' });
    await until(async () => (await pausesOf(run))[0]?.step === 1);
    await clock.advance(1_000);
    await until(async () => (await pausesOf(run))[0]?.step === 2);
    await run.steer('USER_MESSAGE', { message: 'Oslo' });
    await run.result();
    const errors = outcomesOf(await run.state()).map((outcome) => ('error' in outcome ? outcome.error.code : outcome));
    expect(errors).toEqual(['question_declined', 'question_expired', { kind: 'value', value: 'Oslo' }]);
    expect(await entriesOf(journal, run, 'control')).toMatchObject([
      { applied: true },
      { applied: true, as: 'answer' },
    ]);
  });

  it('stands beside other calls, which go on', async () => {
    const ask = make('ask', (_, context) => context.ask({ question: 'Well?' }));
    const other = make('other', () => 'done');
    const { runtime } = world({
      planner: script(parallel(named('ask', 'other'))),
      tools: [ask, other],
      journal: memoryJournal(),
    });
    const run = await start({ runtime });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect((await run.state()).open?.calls[1]?.outcome).toMatchObject({ value: 'done' });
    await run.answer(undefined, { kind: 'answer', value: 'yes' });
    await run.result();
    expect(outcomesOf(await run.state())).toMatchObject([{ value: 'yes' }, { value: 'done' }]);
  });

  it('is told when it asks something else than before', async () => {
    let runs = 0;
    const odd = make('odd', async (_, context) => {
      runs += 1;
      if (runs > 1) await context.sleep({ forMs: 1 });
      return context.ask({ question: 'Well?' });
    });
    const { runtime } = world({ planner: script(call('odd')), tools: [odd], journal: memoryJournal() });
    const run = await start({ runtime });
    await run.result();
    await run.answer(undefined, { kind: 'answer', value: 'yes' });
    await run.result();
    expect(outcomesOf(await run.state())).toMatchObject([{ error: { code: 'wait_changed' } }]);
  });

  describe('after a deploy', () => {
    type Asks = (context: ToolContext) => Promise<unknown>;
    const yes = { type: 'boolean' } as const;

    /** The first question is answered to the old code, and the second one to the new code. */
    async function deployed(before: Asks, after: Asks): Promise<Outcome | undefined> {
      const journal = memoryJournal();
      const process = (asks: Asks) =>
        world({
          planner: script(call('odd')),
          tools: [make('odd', (_, context) => asks(context))],
          redact: { rules: ['hunter22'] },
          journal,
        });
      const old = process(before);
      const { id } = await start(old);
      for (const made of [old, process(after)]) {
        const run = made.runtime.run(id);
        expect(await run.result()).toMatchObject({ status: 'paused' });
        await run.answer(undefined, { kind: 'answer', value: true });
        await run.result();
        await made.runtime.close();
      }
      return outcomesOf(await process(after).runtime.run(id).state())[0];
    }

    const asks =
      (...questions: string[]): Asks =>
      async ({ ask }) => {
        const answers: unknown[] = [];
        for (const question of questions) answers.push(await ask({ question, schema: yes }));
        return answers;
      };

    it('that asks in another order the answer to one question is not given to another', async () => {
      const outcome = await deployed(asks('Refund?', 'Delete all?'), asks('Delete all?', 'Refund?'));
      expect(outcome).toMatchObject({ error: { code: 'wait_changed' } });
      expect(JSON.stringify(outcome)).toContain('asked \\"Refund?\\", and asks \\"Delete all?\\" now');
    });

    it('that wants other answers it says so', async () => {
      const outcome = await deployed(asks('Refund?', 'Delete all?'), async ({ ask }) => [
        await ask({ question: 'Refund?', schema: { type: 'string' } }),
      ]);
      expect(outcome).toMatchObject({
        error: { code: 'wait_changed', message: expect.stringContaining('with another schema') },
      });
    });

    it('that changes nothing the answers come to their questions, also where their words have a secret', async () => {
      const same = asks('Is it hunter22?', 'Delete \ud800?');
      expect(await deployed(same, same)).toMatchObject({ value: [true, true] });
    });
  });
});

describe('what cannot wait', () => {
  it.each([
    ['a work of context.once', (context) => context.once('part', () => context.ask({ question: 'Well?' }))],
    ['an empty question', (context) => context.ask({ question: '' })],
    ['an empty key', (context) => context.event({ key: '' })],
    ['a key that no signal can have', (context) => context.event({ key: 'a\0b' })],
    ['a time without its zone', (context) => context.sleep({ until: '2027-01-31T09:00:00' })],
    ['a time that is none', (context) => context.sleep({ forMs: Number.NaN })],
    ['a time after all that there are', (context) => context.sleep({ until: 1e18 })],
    ['a day that does not exist', (context) => context.sleep({ until: '2027-02-31T09:00:00Z' })],
  ] satisfies [string, (context: ToolContext) => unknown][])('is told so: %s', async (_, wait) => {
    const { runtime } = world({
      planner: script(call('odd')),
      tools: [make('odd', (_args, context) => wait(context))],
    });
    const run = await start({ runtime });
    await run.result();
    expect(outcomesOf(await run.state())).toMatchObject([{ error: { code: 'invalid_config' } }]);
  });
});

it('a wait after the end of its call is refused to whoever awaits it, and ends no process', async () => {
  const late = Promise.withResolvers<readonly string[]>();
  const leaves = make('leaves', (_, context) => {
    const codeOf = (work: () => Promise<unknown>): Promise<string> =>
      work().then(
        () => 'none',
        (error) => error.code,
      );
    setTimeout(() => {
      const works = [
        () => context.once('part', () => 1),
        () => context.sleep({ forMs: 1 }),
        () => context.ask({ question: 'Well?' }),
      ];
      void Promise.all(works.map(codeOf)).then(late.resolve);
    }, 0);
    return 'gone';
  });
  const { runtime } = world({ planner: script(call('leaves')), tools: [leaves] });
  const run = await start({ runtime });
  await run.result();
  expect(await late.promise).toEqual(['cancelled', 'cancelled', 'cancelled']);
});

describe('a call that sleeps', () => {
  it('the run waits, without a process, and the call goes on at its time', async () => {
    const slow = make('slow', async (_, context) => {
      await context.sleep({ forMs: 86_400_000 });
      return 'a day later';
    });
    const journal = memoryJournal();
    const { runtime, clock } = world({ planner: script(call('slow')), tools: [slow], journal });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await clock.advance(86_400_000);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(observations(await run.state())).toEqual(['a day later']);
  });

  it('loses a race against a call that is faster, and wins one against a call that is slower', async () => {
    const slow = make('sleeps', async (_, context) => {
      await context.sleep({ forMs: 10_000 });
      return 'slept';
    });
    const asks = make('asks', (_, context) => context.ask({ question: 'Well?' }));
    const quick = make('quick', () => 'quick');
    const first = { join: { kind: 'first_success' } } as const;
    const planner = script(parallel(named('sleeps', 'quick'), first), parallel(named('asks', 'sleeps'), first));
    const journal = memoryJournal();
    const { runtime, clock } = world({ planner, tools: [slow, quick, asks], journal });
    const run = await start({ runtime });
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'finished');
    const state = await run.state();
    expect(state.steps.map(({ calls }) => calls.map(({ outcome }) => outcome.kind))).toEqual([
      ['cancelled', 'value'],
      ['cancelled', 'value'],
    ]);
    expect(state.pauses).toEqual([]);
  });
});

describe('a call that stays open while it asks', () => {
  it.each(['pure', 'once'] as const)('reads as paused, and goes on where it is (%s)', async (effect) => {
    let begun = 0;
    const server = make(
      'server',
      async (_, context) => {
        begun += 1;
        const answer = await context.ask({ question: 'May I?', schema: { type: 'boolean' }, hold: true });
        return { answer, begun };
      },
      { effect, timeoutMs: 1_000 },
    );
    const journal = memoryJournal();
    const { runtime, clock } = world({ planner: script(call('server')), tools: [server], journal });
    const run = await start({ runtime });
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { message: 'May I?' } }] });
    expect((await journal.get(run.id))?.status).toBe('paused');
    const seen = [];
    for await (const event of run.events()) seen.push(event.type);
    expect(seen.at(-1)).toBe('run.paused');
    // Nobody hurries who is asked.
    clock.advance(10_000);
    await run.answer(undefined, { kind: 'answer', value: true });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(observations(await run.state())).toEqual([{ answer: true, begun: 1 }]);
  });

  it.each([
    'read',
    'keyed',
    'once',
  ] as const)('asks again in another process, or is in doubt, when its own is gone (%s)', async (effect) => {
    let begun = 0;
    const server = make(
      'server',
      (_, context) => {
        begun += 1;
        return context.ask({ question: 'May I?', hold: true });
      },
      { effect },
    );
    const clock = new VirtualClock();
    const options = { planner: script(call('server')), tools: [server], journal: memoryJournal({ clock }), clock };
    const first = createRuntime(options);
    const run = await start({ runtime: first });
    await run.result();
    let closed = false;
    void first.close({ graceMs: 0 }).then(() => {
      closed = true;
    });
    await advanceUntil(clock, () => closed);
    const second = createRuntime(options);
    second.work();
    const again = second.run(run.id);
    const pauseFor = async (reason: string) => (await pausesOf(again)).find((pause) => pause.reason === reason);
    if (effect === 'once') {
      await advanceUntil(clock, async () => (await pauseFor('in_doubt')) !== undefined);
      await again.settle((await pauseFor('in_doubt'))?.token, { happened: false });
    }
    await advanceUntil(clock, () => begun === 2);
    expect(await again.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'await_input' }] });
    await again.answer((await pauseFor('await_input'))?.token, { kind: 'answer', value: 'yes' });
    await again.result();
    expect(observations(await again.state())).toEqual(['yes']);
    expect(await entriesOf(options.journal, again, 'paused')).toHaveLength(effect === 'once' ? 3 : 1);
    await second.close();
  });

  it('is not what a run is that somebody has paused while a call does its work', async () => {
    const { tool: hold, entered, release } = holding();
    // A pause is heard between the nodes of a plan.
    const plan = {
      ...parallel([
        { id: 'first', tool: 'hold', args: {} },
        { id: 'then', tool: 'echo', args: {}, after: ['first'] },
      ]),
      plan: 'p',
    } as Decision;
    const run = await start(world({ planner: script(plan), tools: [hold, echo] }));
    await entered;
    let isTold = false;
    const result = run.result().finally(() => {
      isTold = true;
    });
    await run.pause();
    await until(async () => (await run.state()).pauses.length === 1);
    await quiet();
    expect(isTold).toBe(false);
    release();
    expect(await result).toMatchObject({ status: 'paused' });
    expect((await run.state()).open?.calls[0]?.outcome).toMatchObject({ value: 'run 1' });
  });
});

it('a call that has its answer, and waits for its turn behind a task, is heard out when the goal is changed', async () => {
  const child = agent({ name: 'below', planner: script({ kind: 'request_pause', reason: 'await_input' }) });
  const asks = make('asks', (_, context) => context.ask({ question: 'Well?' }));
  // One at a time: the task keeps the place while it waits, too.
  const plan = {
    kind: 'call_parallel',
    plan: 'p',
    concurrency: 1,
    branches: [
      { id: 'first', tool: 'asks', args: {} },
      { id: 'second', tool: 'below', args: { input: 'x' } },
    ],
  } as Decision;
  const run = await start(world({ planner: script(plan), tools: [asks, agentTool(child, { description: 'd' })] }));
  await until(async () => (await pausesOf(run)).length === 2);
  const [own] = (await run.state()).pauses;
  await run.answer(own?.token, { kind: 'answer', value: 'yes' });
  await until(async () => (await run.state()).pauses.length === 0);
  await run.steer('REDIRECT', { goal: 'elsewhere' });
  await until(async () => (await run.state()).open?.calls[0] != null);
  expect((await run.state()).open?.calls[0]?.outcome).toMatchObject({ kind: 'value', value: 'yes' });
});
