/** A plan that is made anew repeats nothing that is done. An outside ledger has what was paid, and under which key. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Effect, Json, JsonObject, Planner, PlannerFunction } from '#core';
import { graph } from '#planners/graph';
import { htn, htnDomain } from '#planners/htn';
import { pipeline } from '#planners/pipeline';
import type { PlanStep, PlanYield } from '#plans';
import type { Run } from '#runtime';
import { type ScriptedReply, scriptedModel } from '#testing';
import type { Tool } from '#tools';
import { collect } from '../kit/events.ts';
import { make } from '../kit/tools.ts';
import { aborted, advanceUntil } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

interface Paid {
  readonly args: Json;
  readonly key: string;
}

interface Till {
  readonly paid: Paid[];
  readonly tools: readonly Tool[];
}

/** @param fails what a payment does instead of giving a receipt, by how many were made before. */
function till(effect: Effect, fails: (before: number, signal: AbortSignal) => unknown = () => undefined): Till {
  const paid: Paid[] = [];
  const pay = make(
    'pay',
    async (args, { idempotencyKey, signal }) => {
      paid.push({ args, key: idempotencyKey.split('/').at(-1) ?? '' });
      return (await fails(paid.length - 1, signal)) ?? { receipt: paid.length };
    },
    { effect, timeoutMs: 1_000 },
  );
  const broken = make('broken', () => {
    throw new Error('It is broken.');
  });
  const price = make('price', () => ({ amount: 5 }));
  return { paid, tools: [pay, broken, price] };
}

type Given = Omit<PlanStep, 'id'> & { readonly id: string };

const pay = (id: string, more: Partial<PlanStep> = {}): Given => ({
  id,
  type: 'tool',
  toolId: 'pay',
  input: { to: 'ana', amount: 5 },
  ...more,
});
const broken: Given = { id: 'broken', type: 'tool', toolId: 'broken', input: {} };
const price = (id: string): Given => ({ id, type: 'tool', toolId: 'price', input: {} });
const end = (id: string, input: Json = 'the end'): Given => ({ id, type: 'finish', input });

const submitted = (...steps: readonly Given[]): ScriptedReply => ({
  calls: [{ tool: 'submit_plan', args: { planId: 'p', steps: steps as unknown as Json } }],
});
const inLines = (...steps: readonly Given[]): ScriptedReply => ({
  text: [...steps.map((step) => JSON.stringify({ type: 'step', step })), '{"type":"finish"}'].join('\n'),
});

/** One after the other, each when the one before has failed. */
type Plans = readonly (readonly Given[])[];

/** How a plan is made a second time, whatever it is. */
const MAKERS: Readonly<Record<string, (plans: Plans) => Planner>> = {
  'a pipeline': (plans) =>
    pipeline({ model: scriptedModel(plans.map((steps) => submitted(...steps))), replans: plans.length }),
  'a pipeline that streams': (plans) =>
    pipeline({ stream: true, model: scriptedModel(plans.map((steps) => inLines(...steps))), replans: plans.length }),
  'a graph planner that is asked again': (plans) => {
    // The graph planner plans anew for another goal; here for every step that fails.
    const given = graph({ plan: ({ trajectory }) => ({ steps: plans[trajectory.count] as readonly PlanStep[] }) });
    return {
      name: 'again',
      next: (run, signal) => {
        const last = run.trajectory.step(run.trajectory.count - 1);
        const isDone = last?.calls.every(({ outcome }) => outcome.kind === 'value') === true;
        const redirect = { id: 'r', type: 'REDIRECT' as const, payload: { goal: 'again' } };
        return given.next(last === undefined || isDone ? run : { ...run, controls: [redirect] }, signal);
      },
    };
  },
};

async function played(planner: Planner | PlannerFunction, { tools }: Till): Promise<World & { readonly run: Run }> {
  const made = world({ planner, tools });
  const run = await start(made);
  await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
  return { ...made, run };
}

describe.each(Object.entries(MAKERS))('%s', (_, makerOf) => {
  it.each<Effect>(['once', 'keyed'])('does not do again what is done, under whichever id: %s', async (effect) => {
    const book = till(effect);
    const plans = [
      [pay('p'), broken],
      [pay('q', { input: { amount: 5, to: 'ana' } }), end('end', { $from: 'q' })],
    ];
    const { run } = await played(makerOf(plans), book);
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: { receipt: 1 } });
    expect(book.paid).toHaveLength(1);
    const { steps } = await run.state();
    expect(steps[1]?.calls[0]).toMatchObject({ attempts: 0, reuses: { step: 0, call: 0 } });
    const events = await collect(run);
    expect(events.filter((event) => event.type === 'tool.completed' && event.tool === 'pay')).toMatchObject([
      { attempts: 1 },
      { attempts: 0, reuses: { step: 0, call: 0 } },
    ]);
  });

  it('nor when the arguments are known only in the middle of the plan', async () => {
    const book = till('once');
    const of = (id: string): Partial<PlanStep> => ({ input: { to: 'ana', amount: { $from: id, path: '/amount' } } });
    await played(
      makerOf([
        [price('a'), pay('p', of('a')), { ...broken, after: ['p'] }],
        [price('b'), pay('q', of('b')), end('end')],
      ]),
      book,
    );
    expect(book.paid).toHaveLength(1);
  });

  it.each<[string, JsonObject, JsonObject]>([
    ['fills in later', { to: 'ana', amount: 5 }, { to: 'ana', amount: 5, currency: 'EUR' }],
    ['filled in before', { to: 'ana', amount: 5, currency: 'EUR' }, { to: 'ana', amount: 5 }],
    ['leaves out', { to: 'ana', amount: 5 }, { to: 'ana', amount: 5, note: 'now' }],
  ])('nor when the tool gets the same of other arguments: what its schema %s', async (_what, first, second) => {
    const book = till('once');
    const input = z.object({ to: z.string(), amount: z.number(), currency: z.string().default('EUR') });
    const tools = book.tools.map((each) => (each.name === 'pay' ? { ...each, inputSchema: input } : each));
    const plans = [
      [pay('p', { input: first }), broken],
      [pay('q', { input: second }), end('end')],
    ];
    await played(makerOf(plans), { ...book, tools });
    expect(book.paid).toHaveLength(1);
    const others = [
      [pay('p', { input: first }), broken],
      [pay('q', { input: { ...second, currency: 'USD' } }), end('end')],
    ];
    await played(makerOf(others), { ...book, tools });
    expect(book.paid).toHaveLength(3);
  });

  it('nor what a person has changed, whether the plan names what was planned or what was done', async () => {
    for (const amount of [5, 7]) {
      const book = till('once');
      const tools = book.tools.map((each) => (each.name === 'pay' ? { ...each, needsApproval: true } : each));
      const plans = [
        [pay('p'), broken],
        [pay('q', { input: { to: 'ana', amount } }), end('end', { $from: 'q' })],
      ];
      const run = await start(world({ planner: makerOf(plans), tools }));
      const paused = await run.result();
      const token = paused.status === 'paused' ? (paused.pauses[0]?.token ?? '') : '';
      await run.approve(token, { args: { amount: 7, to: 'ana' } });
      expect(await run.result()).toMatchObject({ status: 'finished', payload: { receipt: 1 } });
      expect(book.paid).toMatchObject([{ args: { amount: 7, to: 'ana' } }]);
    }
  });

  it('does it again when the plan says so, and what it has not done', async () => {
    const book = till('once');
    const other = pay('other', { input: { to: 'ana', amount: 6 } });
    await played(
      makerOf([
        [pay('p'), broken],
        [pay('q', { again: true }), other, end('end')],
      ]),
      book,
    );
    expect(book.paid.map(({ args }) => (args as JsonObject)['amount']).sort()).toEqual([5, 5, 6]);
    expect(new Set(book.paid.map(({ key }) => key)).size).toBe(3);
  });

  it('two equal steps of one plan are two acts', async () => {
    const book = till('once');
    await played(makerOf([[pay('p'), pay('q'), end('end')]]), book);
    expect(book.paid).toHaveLength(2);
  });

  it('and both are the one that is done, in a later plan', async () => {
    const book = till('once');
    const { run } = await played(
      makerOf([
        [pay('p'), broken],
        [pay('q'), pay('r'), end('end')],
      ]),
      book,
    );
    expect(book.paid).toHaveLength(1);
    expect((await run.state()).steps[1]?.calls.slice(0, 2)).toMatchObject([
      { reuses: { step: 0, call: 0 } },
      { reuses: { step: 0, call: 0 } },
    ]);
  });

  it.each<[string, (before: number, signal: AbortSignal) => unknown]>([
    ['did not end in time', (before, signal) => (before === 0 ? aborted(signal) : undefined)],
    ['failed', (before) => (before === 0 ? Promise.reject(new Error('The line went dead.')) : undefined)],
  ])('a keyed call that %s is made under its key, in plan after plan', async (_what, fails) => {
    const book = till('keyed', fails);
    const plans = [
      [pay('p'), broken],
      [pay('q'), { ...broken, id: 'broken2' }],
      [pay('r'), end('end')],
    ];
    const { run } = await played(makerOf(plans), book);
    expect(book.paid.map(({ key }) => key)).toEqual(['0.0', '0.0']);
    expect((await run.state()).steps.map(({ calls }) => calls[0]?.reuses)).toEqual([
      undefined,
      { step: 0, call: 0 },
      { step: 0, call: 0 },
    ]);
  });

  it('a keyed call that is to be made again has a key of its own', async () => {
    const book = till('keyed', (before) => (before === 0 ? Promise.reject(new Error('Declined.')) : undefined));
    await played(
      makerOf([
        [pay('p'), broken],
        [pay('q', { again: true }), end('end')],
      ]),
      book,
    );
    expect(book.paid.map(({ key }) => key)).toEqual(['0.0', '1.0']);
  });

  it('a once call that failed did not happen, and is made', async () => {
    const book = till('once', (before) => (before === 0 ? Promise.reject(new Error('No funds.')) : undefined));
    await played(
      makerOf([
        [pay('p'), broken],
        [pay('q'), end('end')],
      ]),
      book,
    );
    expect(book.paid).toHaveLength(2);
  });

  it('a once call whose value could not be taken has happened, and is not made again', async () => {
    const book = till('once', () => ({ receipt: 1n }));
    const { run } = await played(
      makerOf([
        [pay('p'), broken],
        [pay('q'), { ...end('end'), after: [] }],
      ]),
      book,
    );
    expect(book.paid).toHaveLength(1);
    expect((await run.state()).steps[1]?.calls[0]).toMatchObject({
      outcome: { kind: 'error', error: { code: 'unserializable' } },
      reuses: { step: 0, call: 0 },
    });
  });

  it('other effects are had as often as they are planned', async () => {
    const book = till('read');
    await played(
      makerOf([
        [pay('p'), broken],
        [pay('q'), end('end')],
      ]),
      book,
    );
    expect(book.paid).toHaveLength(2);
  });
});

describe('a once call in doubt', () => {
  const plans = (again: boolean) => [
    submitted(pay('p'), broken),
    submitted(pay('q', again ? { again: true } : {}), { ...end('end', 'the end'), after: [] }),
  ];
  const slow = (tells: boolean): Till => {
    const book = till('once', (before, signal) => (before === 0 ? aborted(signal) : undefined));
    const tools = book.tools.map((each) =>
      each.name === 'pay' && tells ? { ...each, inDoubt: 'tell' as const } : each,
    );
    return { ...book, tools };
  };

  it('of which the planner is told is not made again by the next plan, unless that says so', async () => {
    const book = slow(true);
    const { run } = await played(pipeline({ model: scriptedModel(plans(false)), replans: 1 }), book);
    expect(book.paid).toHaveLength(1);
    expect((await run.state()).steps[1]?.calls[0]).toMatchObject({
      outcome: { kind: 'unknown' },
      attempts: 0,
      reuses: { step: 0, call: 0 },
    });
    const other = slow(true);
    await played(pipeline({ model: scriptedModel(plans(true)), replans: 1 }), other);
    expect(other.paid).toHaveLength(2);
  });

  it('that somebody settles is done for the plans behind it', async () => {
    const book = slow(false);
    const made = world({ planner: pipeline({ model: scriptedModel(plans(false)), replans: 1 }), tools: book.tools });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await run.state()).pauses.length > 0);
    const [pause] = (await run.state()).pauses;
    await run.settle(pause?.token, { happened: true, value: { receipt: 'found' } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(book.paid).toHaveLength(1);
    expect((await run.state()).steps[1]?.calls[0]).toMatchObject({
      outcome: { kind: 'value', value: { receipt: 'found' } },
      reuses: { step: 0, call: 0 },
    });
  });
});

it('a model that plans anew is shown what a person has changed, and may name it under the same id', async () => {
  const book = till('once');
  const tools = book.tools.map((each) => (each.name === 'pay' ? { ...each, needsApproval: true } : each));
  const model = scriptedModel([
    submitted(pay('p'), broken),
    submitted(pay('p', { input: { to: 'ana', amount: 7 } }), end('end', { $from: 'p' })),
  ]);
  const run = await start(world({ planner: pipeline({ model }), tools }));
  const paused = await run.result();
  const token = paused.status === 'paused' ? (paused.pauses[0]?.token ?? '') : '';
  await run.approve(token, { args: { amount: 7, to: 'ana' } });
  expect(await run.result()).toMatchObject({ status: 'finished', payload: { receipt: 1 } });
  const [, anew] = model.calls;
  expect(JSON.stringify(anew?.prompt)).toContain(String.raw`\"args\":{\"amount\":7,\"to\":\"ana\"}`);
  expect(model.calls).toHaveLength(2);
  expect(book.paid).toHaveLength(1);
});

it('the rest of an interrupted stream repeats nothing, and leaves out no second act', async () => {
  const book = till('once');
  const asked: number[] = [];
  const planner = graph({
    async *plan(run): AsyncGenerator<PlanYield> {
      asked.push(run.trajectory.count);
      // The same plan each time, but for one id: the maker was to be pure, and was not.
      yield pay(run.trajectory.count === 0 ? 'p' : 'p2') as PlanStep;
      yield pay('second') as PlanStep;
      yield end('end') as PlanStep;
    },
  });
  const interrupting: Planner = {
    name: 'cut',
    next: (run, signal) => {
      const { trajectory } = run;
      if (trajectory.count === 0) {
        const args = { to: 'ana', amount: 5 };
        return { kind: 'call_parallel', plan: 'p', branches: [{ id: 'p', tool: 'pay', args }] };
      }
      const error = { code: 'plan_interrupted', message: 'cut' };
      const first = { ...trajectory.step(0), error } as NonNullable<ReturnType<typeof trajectory.step>>;
      const step = (at: number) => (at === 0 ? first : trajectory.step(at));
      return planner.next({ ...run, trajectory: { ...trajectory, count: trajectory.count, step } }, signal);
    },
  };
  await played(interrupting, book);
  expect(asked).toEqual([1]);
  // `p2` is what was done as `p`; `second` is another act, which the maker has planned beside it.
  expect(book.paid).toHaveLength(2);
});

describe('htn', () => {
  const yes = (): boolean => true;
  const planner = (lazy: boolean, methods: readonly (readonly string[])[], todo: readonly string[] = ['go']) =>
    htn({
      domain: htnDomain({
        operators: { pay: yes, broken: yes, price: yes },
        tasks: { go: methods.map((tasks) => () => tasks.map((name) => [name] as const)) },
      }),
      lazy,
      state: () => ({}),
      todo: () => todo.map((name) => [name] as const),
      step: ([name]) => ({ type: 'tool', toolId: name, input: name === 'pay' ? { to: 'ana', amount: 5 } : {} }),
    });

  it.each([false, true])('the next method repeats nothing that the one before has done (lazy: %s)', async (lazy) => {
    const book = till('once');
    const { run } = await played(
      planner(lazy, [
        ['pay', 'broken'],
        ['pay', 'price'],
      ]),
      book,
    );
    // Lazily the first method is what comes first in every round, and its payment is not made again.
    expect(await run.result()).toMatchObject({ reason: lazy ? 'max_steps' : 'goal' });
    expect(book.paid).toHaveLength(1);
  });

  it.each([false, true])('what is planned twice from the beginning is done twice (lazy: %s)', async (lazy) => {
    const book = till('once');
    const ways = [['broken'], ['price']];
    const { run } = await played(planner(lazy, ways, ['pay', 'go', 'pay']), book);
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    expect(book.paid).toHaveLength(2);
  });
});
