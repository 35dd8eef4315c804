/** What comes for a wait and does not fit the code of its schema does not use the wait up: the call asks, or waits, once more. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { memoryJournal } from '#journal';
import { crashEverywhere } from '#testing';
import { later } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { entriesOf, observations, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** What JSON Schema cannot say. */
const even = z.object({ n: z.int() }).refine(({ n }) => n % 2 === 0, { message: 'must be even' });

describe('an answer that the code of the schema refuses', () => {
  it.each([false, true])('is asked for again with the reason, and another one is taken (held: %s)', async (hold) => {
    let works = 0;
    const asks = make('asks', async (_, context) => {
      await context.once('work', () => {
        works += 1;
        return works;
      });
      return context.ask({ question: 'How many?', schema: even, hold });
    });
    const { runtime } = world({ planner: script(call('asks')), tools: [asks], journal: memoryJournal() });
    const run = await start({ runtime });
    const [first] = await pausesOf(run);
    await run.answer(first?.token, { kind: 'answer', value: { n: 3 } });
    await until(async () => (await runtime.waiting())[0]?.payload?.['refused'] !== undefined);
    const [second] = await pausesOf(run);
    expect(second?.token).not.toBe(first?.token);
    expect(second).toMatchObject({ wait: 1, payload: { message: 'How many?', refused: '/: must be even' } });
    await run.answer(second?.token, { kind: 'answer', value: { n: 4 } });
    await until(async () => (await run.state()).ending !== null);
    expect(observations(await run.state())).toEqual([{ n: 4 }]);
    expect(works).toBe(1);
  });

  it('beside another question keeps its place, and the time that it had', async () => {
    const asks = make('asks', async (_, context) => {
      const [one, other] = await Promise.all([
        context.ask({ question: 'One?', schema: even, expiresInMs: 60_000 }),
        context.ask({ question: 'Other?' }),
      ]);
      return [one, other];
    });
    const { runtime, clock } = world({ planner: script(call('asks')), tools: [asks] });
    const run = await start({ runtime });
    const asked = async (message: string) =>
      (await pausesOf(run)).find((pause) => pause.payload?.['message'] === message);
    const first = await asked('One?');
    clock.advance(1_000);
    await run.answer(first?.token, { kind: 'answer', value: { n: 1 } });
    await run.answer((await asked('Other?'))?.token, { kind: 'answer', value: 'x' });
    const again = await asked('One?');
    expect(again).toMatchObject({ wait: 1, expiresAt: first?.expiresAt, payload: { refused: '/: must be even' } });
    await run.answer(again?.token, { kind: 'answer', value: { n: 2 } });
    await run.result();
    expect(observations(await run.state())).toEqual([[{ n: 2 }, 'x']]);
  });
});

describe('a signal that the code of the schema refuses', () => {
  it('is used up, and the wait goes on to the next one, until its time', async () => {
    const waits = make('waits', async (_, context) => {
      const got = [await context.event({ key: 'k', schema: even, timeoutMs: 60_000 })];
      try {
        got.push(await context.event({ key: 'k', schema: even, timeoutMs: 60_000 }));
      } catch (error) {
        got.push((error as { code: string }).code as never);
      }
      return got;
    });
    const { runtime, clock, journal } = world({ planner: script(call('waits')), tools: [waits] });
    for (const [id, n] of [1, 3, 4, 5].entries()) await runtime.signal('k', { n }, { id: `s${id}` });
    const run = await start({ runtime });
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(observations(await run.state())).toEqual([[{ n: 4 }, 'event_timeout']]);
    const waited = (await entriesOf(journal, run, 'call_waits')).flatMap(({ waits: begun }) => begun);
    expect(waited.map(({ wait, again }) => [wait, again])).toEqual([
      [1, undefined],
      [1, '/: must be even'],
      [1, '/: must be even'],
      [2, undefined],
      [2, '/: must be even'],
    ]);
  });

  it('is no value that comes later: the call waits for the next one', async () => {
    let made = 0;
    const render = make(
      'render',
      () => {
        made += 1;
        return later({ key: 'film' });
      },
      { effect: 'once', outputSchema: even },
    );
    const { runtime } = world({ planner: script(call('render')), tools: [render] });
    const run = await start({ runtime });
    await until(async () => (await runtime.waiting()).length === 1);
    await runtime.signal('film', { n: 1 });
    await until(async () => (await runtime.waiting())[0]?.wait === 2);
    await runtime.signal('film', { n: 2 });
    await until(async () => (await run.state()).ending !== null);
    expect(observations(await run.state())).toEqual([{ n: 2 }]);
    expect(made).toBe(1);
  });
});

it('an answer that is refused, wherever the process dies', async () => {
  const report = await crashEverywhere({
    name: 'an answer that does not fit the code of a schema',
    query: 'q',
    planner: script(call('asks')),
    tools: (around) => [
      make(
        'asks',
        async (_, context) => {
          await context.once('work', () => around.effect(context));
          return context.ask({ question: 'How many?', schema: even });
        },
        {
          effect: 'once',
          reconcile: async (_, context) => {
            if (around.count(context) > 0) await context.once('work', () => 'found done');
            return { status: 'not_done' };
          },
        },
      ),
    ],
    answer: (run, { token, payload }) =>
      run.answer(token, { kind: 'answer', value: { n: payload?.['refused'] === undefined ? 1 : 2 } }),
    check: (state) => {
      const outcome = state.steps[0]?.calls[0]?.outcome;
      return JSON.stringify(outcome).includes('{"n":2}') ? [] : [`The outcome is ${JSON.stringify(outcome)}.`];
    },
  });
  expect(report.violations).toEqual([]);
});
